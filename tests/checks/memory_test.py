#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina memory: the truths of snapshots, invariants on every file, and
pickles that could run code."""
import io
import json
import os
import pathlib
import pickle
import random
import struct

from common import ROOT, SAMPLES, Checks, lamina, temporary

MEASURES = ("requested", "allocated", "active", "reserved")


def shared_folder():
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    return folder if (folder / "memory").is_dir() else None


def tables(*args, status=0):
    return json.loads(lamina("memory", *args, "--format", "json",
                             status=status).stdout)["tables"]


def of(rows, device):
    return [r for r in rows if r.get("device", device) == device]


def peaks(t, device):
    return {r["measure"]: (r["peak_bytes"], r["peak_moment"])
            for r in of(t["memory_summary"], device)}


def rows(t, kind, device):
    return {r["key"]: (r["bytes"], r["requested_bytes"], r["blocks"])
            for r in of(t["memory_peak_" + kind], device)
            if r["key"] != "(cached, free)"}


def health(t, device):
    return {r["check"]: r["value"] for r in of(t["memory_health"], device)}


def last(t, device):
    return next(r for r in of(t["memory_fragmentation"], device)
                if r["class"] == "all")


def invariants(c, name, t):
    """Of section 14 of the specification of the tables: on every file."""
    devices = {r.get("device", 0) for r in t["memory_summary"]}
    for d in devices:
        h = health(t, d)
        at = {r["measure"]: r["at_peak_bytes"]
              for r in of(t["memory_summary"], d)}
        if "inconsistent" not in h:
            c.true(f"{name}: order of measures",
                   at["requested"] <= at["allocated"] <= at["active"] <=
                   at["reserved"])
        for kind in ("category", "module", "op", "line", "stack"):
            everything = of(t["memory_peak_" + kind], d)
            c.equal(f"{name}: sum by {kind}",
                    sum(r["bytes"] for r in everything), at["reserved"])
        c.equal(f"{name}: root of the tree",
                of(t["memory_tree"], d)[0]["bytes"] if at["active"] else 0,
                at["active"])
        c.equal(f"{name}: replayed sizes", h.get("replay_differs", 0), 0)
        c.equal(f"{name}: stated active", h.get("snapshot_differs", 0), 0)
        c.equal(f"{name}: stated sums", h.get("stated_sizes", 0), 0)
        peak = peaks(t, d)
        for r in of(t["memory_savings"], d):
            c.true(f"{name}: saving {r['change']}",
                   0 <= r["saves_bytes"] <= max(peak["active"][0],
                                                peak["reserved"][0]))
        if not h.get("lost_free") and t["memory_timeline"] and \
                not h.get("events oom"):
            pass
        for r in of(t["memory_timeline"], d):
            c.true(f"{name}: timeline", r["requested"] <= r["allocated"] <=
                   r["active"])
            c.equal(f"{name}: categories of the timeline", r["active"],
                    sum(v for k, v in r.items() if k not in (
                        "device", "moment", "time_us", "requested",
                        "allocated", "active", "reserved")))


def check_sample(c, name):
    path = SAMPLES / "memory" / f"{name}.pickle"
    truth = json.loads(path.with_suffix("").with_suffix(".truth.json")
                       .read_text())
    t = tables(path, "--all")
    invariants(c, name, t)
    got = peaks(t, 0)
    for m in MEASURES:
        c.equal(f"{name}: peak {m}", got[m],
                (truth["peak"][m]["bytes"], truth["peak"][m]["moment"]))
    for r in t["memory_summary"]:
        if r["measure"] in truth["at_end"]:
            c.equal(f"{name}: at the end {r['measure']}", r["at_end_bytes"],
                    truth["at_end"][r["measure"]])
    sizes = [r["bytes"] for r in sorted(t["memory_allocations"],
                                        key=lambda r: r["start_event"])]
    c.equal(f"{name}: sizes of blocks", sizes, truth["block_sizes"])
    end = last(tables(path, "--at", "end"), 0)
    for key in ("free_bytes", "free_ranges", "largest_free_bytes"):
        c.equal(f"{name}: {key}", end[key], truth[key])
    if "cause" in truth:
        c.equal(f"{name}: cause", t["memory_oom"][0]["cause"], truth["cause"])
    if "leak" in truth:
        c.equal(f"{name}: leak", [(r["line"], r["class"], r["confidence"])
                                  for r in t["memory_leaks"]],
                [(truth["leak"]["line"], "leak", "high")])
        lamina("memory", path, "--fail-leaks", status=1)
    if "categories_at_end" in truth:
        e = rows(tables(path, "--at", "end"), "category", 0)
        for k, v in truth["categories_at_end"].items():
            c.equal(f"{name}: {k} at the end", e[k][0], v)


def check_encodings(c, folder):
    """Protocol and order of keys change nothing."""
    path = SAMPLES / "memory/train.pickle"
    value = pickle.loads(path.read_bytes())  # our own file
    want = lamina("memory", path, "--format", "json").stdout
    def turned(v):
        if isinstance(v, dict):
            return {k: turned(v[k]) for k in reversed(v)}
        return [turned(x) for x in v] if isinstance(v, list) else v
    out = folder / "train.pickle"
    for what, data in [*((f"protocol {p}", pickle.dumps(value, protocol=p))
                         for p in (2, 3, 4, 5)),
                       ("turned keys", pickle.dumps(turned(value), protocol=4)),
                       ("no memo", unshared(value))]:
        out.write_bytes(data)
        got = lamina("memory", out, "--format", "json", cwd=folder).stdout
        c.equal(f"{what}: the same tables", json.loads(got)["tables"],
                json.loads(want)["tables"])
    for threads in (1, 4):
        c.equal(f"{threads} threads", lamina(
            "memory", path, "--format", "json", "--threads", threads).stdout,
            want)


def unshared(value):
    """The opcodes of a C++ writer: protocol 2, no memo, one SETITEM each."""
    out = io.BytesIO(b"")
    out.write(b"\x80\x02")

    def put(v):
        if v is None:
            out.write(b"N")
        elif isinstance(v, bool):
            out.write(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            raw = v.to_bytes(9, "little", signed=True)
            out.write(b"\x8a\x09" + raw)
        elif isinstance(v, str):
            raw = v.encode()
            out.write(b"X" + struct.pack("<I", len(raw)) + raw)
        elif isinstance(v, tuple):
            out.write(b"(")
            for x in v:
                put(x)
            out.write(b"t")
        elif isinstance(v, list):
            out.write(b"](")
            for x in v:
                put(x)
            out.write(b"e")
        else:
            out.write(b"}")
            for k, x in v.items():
                put(k)
                put(x)
                out.write(b"s")
    put(value)
    out.write(b".")
    return out.getvalue()


def trace_of(snapshot, sizes, shift_us=0, spoil=0.0):
    """A Kineto trace of the same run: an op with a name of its own around
    every alloc, [memory] instants for it and for requests of a free."""
    rng = random.Random(3)
    events, total, ops = [], 0, {}
    open_at = {}
    first = min(e["time_us"] for e in snapshot["device_traces"][0])
    for i, e in enumerate(snapshot["device_traces"][0]):
        if e["action"] not in ("alloc", "free_requested"):
            continue
        alloc = e["action"] == "alloc"
        if alloc:
            open_at[e["addr"]] = sizes[i]
        size = open_at.get(e["addr"], e["size"])
        if rng.random() < spoil:
            size += 512
        total += size if alloc else -size
        # Events of one microsecond keep their order.
        at = e["time_us"] - first + shift_us + i * 0.001
        if alloc:
            ops[i] = f"aten::joined_{i % 5}"
            events.append({"ph": "X", "cat": "cpu_op", "name": ops[i],
                           "pid": 1, "tid": 1, "ts": at - 0.0004,
                           "dur": 0.0008, "args": {"External id": i + 1}})
        events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event",
                       "name": "[memory]", "pid": 1, "tid": 1, "ts": at,
                       "args": {"Device Type": 1, "Device Id": 0,
                                "Addr": e["addr"],
                                "Bytes": size if alloc else -size,
                                "Total Allocated": total,
                                "Total Reserved": 1 << 30, "Ev Idx": i}})
    end = max(e["ts"] for e in events) + 1
    events.append({"ph": "X", "cat": "user_annotation", "name":
                   "ProfilerStep#7", "pid": 1, "tid": 1, "ts": shift_us - 1,
                   "dur": end - shift_us + 2, "args": {}})
    return {"schemaVersion": 1, "baseTimeNanoseconds": first * 1000,
            "deviceProperties": [], "traceEvents": events}, ops


def check_join(c, folder):
    """A snapshot and a trace of one run; of another run nothing is joined."""
    path = SAMPLES / "memory/train.pickle"
    snapshot = pickle.loads(path.read_bytes())  # our own file
    plain = tables(path, "--all")
    sizes = {r["start_event"]: r["bytes"] for r in plain["memory_allocations"]
             if r["start_event"] is not None}
    trace = folder / "joined.json"
    for shift, spoil, whole in ((0, 0, True), (7_300_000, 0, True),
                                (0, 0.04, True), (0, 0.5, False)):
        value, ops = trace_of(snapshot, sizes, shift, spoil)
        trace.write_text(json.dumps(value))
        t = tables(path, "--all", "--trace", trace)
        (join,) = t["memory_join"]
        where = f"trace shifted {shift}, spoilt {spoil}"
        c.equal(f"{where}: joined", join["joined"], whole)
        if not whole:
            c.equal(f"{where}: ops stay", t["memory_peak_op"],
                    plain["memory_peak_op"])
            continue
        if not spoil:
            c.equal(f"{where}: all pairs", join["percent"], 100)
            c.true(f"{where}: offset", abs(join["offset_us"] - shift) < 200)
        known = 0
        for r in t["memory_allocations"]:
            want = ops.get(r["start_event"])
            if want is None or (spoil and not r["op"].startswith(
                    "aten::joined")):
                continue
            known += 1
            c.equal(f"{where}: op of event {r['start_event']}", r["op"], want)
            c.equal(f"{where}: step", r["trace_step"], "ProfilerStep#7")
        c.true(f"{where}: {known} known", known > 0.9 * len(ops))
        c.equal(f"{where}: sum by op",
                sum(r["bytes"] for r in t["memory_peak_op"]),
                sum(r["bytes"] for r in plain["memory_peak_op"]))
    # The trace may stand among the files.
    value, _ = trace_of(snapshot, sizes)
    trace.write_text(json.dumps(value))
    both = tables(trace, path)
    c.equal("a trace among the files", both["memory_join"][0]["percent"], 100)
    lamina("memory", trace, "--trace", trace, status=2)


class Touch:
    """A pickle of it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def refused(path):
    r = lamina("memory", path, status=3)
    text = r.stderr.split("lamina: error: ", 1)[1]
    place = text[len(str(path)) + 1:].split(":", 1)[0]
    return int(place) if place.isdigit() else None, text


def check_hostile(c, folder):
    made = folder / "made-by-a-pickle"
    evil = folder / "evil.pickle"
    for p in (2, 3, 4, 5):
        data = pickle.dumps({"segments": Touch(made)}, protocol=p)
        evil.write_bytes(data)
        offset, text = refused(evil)
        name = "GLOBAL" if p < 4 else "STACK_GLOBAL"
        op = b"c" if p < 4 else b"\x93"
        c.true(f"protocol {p}: {name} is refused", name in text)
        c.equal(f"protocol {p}: at its offset", data[offset:offset + 1], op)
        c.true(f"protocol {p}: nothing was made", not made.exists())
    own = {"GLOBAL": (b"\x80\x02cos\nsystem\n.", 2),
           "REDUCE": (b"\x80\x02}}R.", 4), "BUILD": (b"\x80\x02}}b.", 4),
           "NEWOBJ": (b"\x80\x02}}\x81.", 4), "INST": (b"\x80\x02(ios\nx\n.", 3),
           "OBJ": (b"\x80\x02(o.", 3), "PERSID": (b"\x80\x02Pabc\n.", 2),
           "BINPERSID": (b"\x80\x02NQ.", 3), "EXT1": (b"\x80\x02\x82\x01.", 2),
           "EXT2": (b"\x80\x02\x83\x01\x00.", 2),
           "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", 2),
           "NEWOBJ_EX": (b"\x80\x04NNN\x92.", 5),
           "unknown opcode 0x96": (b"\x80\x05\x96" + bytes(9) + b".", 2),
           "memo 5 is not set": (b"\x80\x02}h\x05.", 3),
           "no mark": (b"\x80\x02}u.", 3), "stack is empty": (b"\x80\x02a.", 2),
           "odd number": (b"\x80\x02}(Nu.", 5),
           "stack not empty": (b"\x80\x02NN.", 4),
           "protocol 9": (b"\x80\x09}.", 0), "holds itself":
           (b"\x80\x02]q\x00h\x00a.", 7),
           "cut off": (b"\x80\x02}", 3), "string of": (
               b"\x80\x04\x8d" + b"\xff" * 7 + b"\x0f.", 2),
           "integer of": (b"\x80\x02\x8b\x00\x00\x10\x00" + b"x" * 40, 2),
           "nested deeper": (b"\x80\x02" + b"](" * 100, None)}
    for what, (data, offset) in own.items():
        evil.write_bytes(data)
        at, text = refused(evil)
        c.true(f"{what} is said: {text.strip()}", what in text)
        if offset is not None:
            c.equal(f"{what}: offset", at, offset)
    # Bytes flipped, one at a time: a message or a result, never a crash.
    data = (SAMPLES / "memory/oom.pickle").read_bytes()
    rng = random.Random(7)
    for _ in range(60):
        bad = bytearray(data)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        evil.write_bytes(bad)
        r = lamina("memory", evil, "--format", "json", status=None)
        c.true(f"status {r.returncode}", r.returncode in (0, 3))
    evil.write_bytes(data[:len(data) * 2 // 3])
    lamina("memory", evil, status=3)
    whole = health(tables(SAMPLES / "memory/oom.pickle"), 0)
    part = health(tables(evil, "--salvage"), 0)
    c.true("salvaged events", 0 < part["events alloc"] <= whole["events alloc"])
    c.equal("salvage is said", part["truncated"], 1)


def check_truth(c, path):
    name = path.name[:-len(".pickle")]
    truth = json.loads(path.with_name(name + ".truth.json").read_text())
    t = tables(path)
    invariants(c, name, t)
    end = tables(path, "--at", "end")
    for number, w in enumerate(truth["devices"]):
        d = w.get("device", number)
        got, h = peaks(t, d), health(t, d)
        for m in MEASURES:
            c.equal(f"{name}: peak {m}", got[m],
                    (w["peak"][m]["bytes"], w["peak"][m]["moment"]))
        events = sum(v for k, v in h.items() if k.startswith("events "))
        c.equal(f"{name}: events", events, w["events"])
        before = h.get("before_bytes", 0)
        if w["events"]:
            c.true(f"{name}: before", before <= w["before_bytes"] <=
                   before + h.get("uncertain_bytes", 0))
        free = last(end, d)
        w_free = w.get("fragmentation", w)
        for key in ("free_bytes", "largest_free_bytes"):
            if key in w_free:
                c.equal(f"{name}: {key}", free[key], w_free[key])
        ooms = w.get("oom", w.get("ooms", []))
        c.equal(f"{name}: out of memory",
                [(r["event"], r["asked_bytes"]) for r in of(t["memory_oom"], d)],
                [(o["event"], o["asked_bytes"]) for o in ooms])
        for kind, wanted in w.get("composition", {}).items():
            have = rows(t, kind, d)
            for r in wanted:
                c.equal(f"{name}: {kind} {r['key']}", have.get(r["key"]),
                        (r["bytes"], r["requested_bytes"], r["blocks"]))
        if "official" in w:
            c.equal(f"{name}: maximum of the viewer", got["viewer"][0],
                    w["official"]["viz"]["max_size"])
        if "savings" in w:
            have = {(r["change"], r["where"]): r["saves_bytes"]
                    for r in of(t["memory_savings"], d)}
            for r in w["savings"]:
                c.equal(f"{name}: {r['change']} {r['where']}",
                        have.get((r["change"], r["where"])), r["saves_bytes"])
        if "replay" in w:
            c.equal(f"{name}: replay", h.get("replay_checked", 0),
                    w["replay"]["checked"])
        if "steps" in w:
            c.equal(f"{name}: leaks", len([r for r in of(t["memory_leaks"], d)])
                    if w["steps"] else 0, len(w["leaks"]))
    if "oom_cause" in truth:
        c.equal(f"{name}: cause", t["memory_oom"][0]["cause"],
                truth["oom_cause"])
    if "room" in truth:
        r = t["memory_room"][0]
        c.equal(f"{name}: room", {k: r[k] for k in truth["room"]},
                truth["room"])
    if isinstance(truth.get("leaks"), list):
        c.equal(f"{name}: leaks", [r["line"] for r in t["memory_leaks"]],
                [r["line"] for r in truth["leaks"]])
    if "block_sizes" in truth:
        sizes = [r["bytes"] for r in sorted(
            (r for r in tables(path, "--all")["memory_allocations"]
             if r["start_event"] is not None),
            key=lambda r: r["start_event"])]
        c.equal(f"{name}: sizes of blocks", sizes, truth["block_sizes"])


def check_kineto(c, folder):
    for path in sorted((folder / "memory/kineto").glob("*.truth.json")):
        for name, devices in json.loads(path.read_text()).items():
            found = sorted(p for p in folder.rglob(name) if p.is_file())
            if not found:
                print(f"without {name}: not among the reference traces")
                continue
            for w in devices:
                kind = w["device_type"]
                device = "cpu" if kind == "cpu" else f"{kind}:{w['device']}"
                t = tables(found[0], "--device", device)
                s = {r["measure"]: r for r in t["memory_summary"]}
                where = f"{name} {device}"
                c.equal(f"{where}: peak", (s["allocated"]["peak_bytes"],
                                           s["allocated"]["peak_moment"],
                                           s["allocated"]["at_start_bytes"]),
                        (w["peak_allocated_bytes"], w["moment"],
                         w["before_bytes"]))
                if "reserved" in s:
                    c.equal(f"{where}: reserved", s["reserved"]["peak_bytes"],
                            w["peak_reserved_bytes"])
                h = {r["check"]: r["value"] for r in t["memory_health"]}
                c.equal(f"{where}: chain", (h["events"],
                                            h.get("chain_breaks", 0),
                                            h.get("unmatched_frees", 0)),
                        (w["events"], w["chain_breaks"],
                         w["unmatched_frees"]))
                have = {r["key"]: (r["bytes"], r["blocks"])
                        for r in t["memory_peak_op"]}
                for r in w["composition"]:
                    c.equal(f"{where}: {r['op']}", have.get(r["op"]),
                            (r["bytes"], r["blocks"]))


def main():
    c = Checks()
    for name in ("train", "oom", "random"):
        check_sample(c, name)
    with temporary() as folder:
        folder = pathlib.Path(folder)
        check_encodings(c, folder)
        check_hostile(c, folder)
        check_join(c, folder)
    folder = shared_folder()
    if folder is None:
        print("without reference snapshots")
    else:
        for path in sorted((folder / "memory").glob("*.pickle")):
            check_truth(c, path)
        offsets = json.loads((folder / "memory/bad/offsets.json").read_text())
        for path in sorted((folder / "memory/bad").glob("*.pickle")):
            at, _ = refused(path)
            want = offsets[path.name[:-len(".pickle")]]
            if want is not None:
                c.equal(f"{path.name}: offset", at, want)
        check_kineto(c, folder)
    c.finish()


main()
