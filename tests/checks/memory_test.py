#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina memory: the truths of snapshots, invariants on every file, and
pickles that could run code."""
import gzip
import io
import json
import os
import pathlib
import pickle
import random
import sqlite3
import struct

from common import ROOT, SAMPLES, Checks, lamina, temporary
from profilers import Work, write_rocpd

MEASURES = ("requested", "allocated", "active", "reserved")


def shared_folder():
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    return folder if (folder / "memory").is_dir() else None


def tables(*args, status=0):
    return json.loads(lamina("memory", *args, "--format", "json",
                             status=status).stdout)["tables"]


def of(rows, device):
    return [r for r in rows if r.get("device_index", device) == device]


def peaks(t, device):
    return {r["measure"]: (r["peak_bytes"], r["peak_moment"])
            for r in of(t["memory_summary"], device)}


def rows(t, kind, device):
    return {r["key"]: (r["bytes"], r["requested_bytes"], r["blocks"])
            for r in of(t["memory_peak_" + kind], device)
            if r["key"] != "(cached, free)"}


def health(t, device):
    return {r["check"]: r["amount"] for r in of(t["memory_health"], device)}


def last(t, device):
    return next(r for r in of(t["memory_fragmentation"], device)
                if r["class"] == "all")


def invariants(c, name, t):
    """Of section 14 of the specification of the tables: on every file."""
    devices = {r.get("device_index", 0) for r in t["memory_summary"]}
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
                                                peak["reserved"][0]) and
                   0 <= r["percent"] <= 100)
        if not h.get("lost_free") and t["memory_timeline"] and \
                not h.get("events oom"):
            pass
        for r in of(t["memory_timeline"], d):
            c.true(f"{name}: timeline", r["requested"] <= r["allocated"] <=
                   r["active"])
            c.equal(f"{name}: categories of the timeline", r["active"],
                    sum(v for k, v in r.items() if k not in (
                        "device_index", "moment", "time_us", "requested",
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
                       ("no memo", unshared(value)),
                       ("popped", unshared(value, pop=5))]:
        out.write_bytes(data)
        got = lamina("memory", out, "--format", "json", cwd=folder).stdout
        c.equal(f"{what}: the same tables", json.loads(got)["tables"],
                json.loads(want)["tables"])
    # A list takes in early what waits behind one mark, and what was to be a
    # tuple is put back.
    many = {**value, "device_traces": [value["device_traces"][0] * (
        1 + 5000 // len(value["device_traces"][0]))]}
    events = tuple(many["device_traces"][0])
    for what, one, other in [
            ("one mark", many, unshared(many)),
            ("one mark, popped", many, unshared(many, pop=3000)),
            ("a tuple behind a list", {**many, "device_traces": [[], ()]},
             unshared({**many, "device_traces": [[], events]}))]:
        c.true(f"{what}: many events", len(events) > 3000)
        got = []
        for data in (pickle.dumps(one), other):
            out.write_bytes(data)
            got.append(tables(out))
        c.equal(f"{what}: the same tables", *got)
    # Segments that can grow say so without settings, too.
    for segment in value["segments"]:
        segment["is_expandable"] = True
    value.pop("allocator_settings", None)
    out.write_bytes(pickle.dumps(value))
    c.equal("no advice of what is on", [
        r["change"] for r in tables(out)["memory_savings"]
        if r["change"] == "expandable_segments"], [])
    for threads in (1, 4):
        c.equal(f"{threads} threads", lamina(
            "memory", path, "--format", "json", "--threads", threads).stdout,
            want)


def unshared(value, pop=None):
    """The opcodes of a C++ writer: protocol 2, no memo, one SETITEM each. None
    is put behind that item of each list, and taken away."""
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
            for i, x in enumerate(v):
                put(x)
                if i == pop:
                    out.write(b"N0")
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


def check_drivers(c, folder):
    """What nsys and rocprofv3 record of the driver is reserved, not allocated;
    memory of the host, virtual and scratch memory are rows of their own."""
    path = folder / "driver.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value)")
        db.execute("INSERT INTO StringIds VALUES (1, 'k')")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, "
                   "deviceId, contextId, streamId, correlationId, globalPid, "
                   "demangledName, shortName)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                   "(1000, 2000, 0, 1, 7, 1, 16777216, 1, 1)")
        db.execute("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, "
                   "globalPid, deviceId, contextId, address, bytes, memKind, "
                   "memoryOperationType)")
        db.executemany(
            "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES "
            "(?, 16777216, ?, 1, ?, ?, ?, ?)",
            [(100, 0, 4096, 20 << 20, 2, 0), (200, 0, 1 << 30, 2 << 20, 2, 0),
             (300, 0, 1 << 40, 512, 1, 0), (400, 0, 4096, 20 << 20, 2, 1),
             (500, 1, 8192, 7 << 20, 2, 0), (600, 0, 1 << 40, 512, 1, 1)])
    t = tables(path)
    c.equal("nsys: peaks", {
        (r["device"], r["measure"]): (r["peak_bytes"], r["peak_moment"],
                                      r["at_end_bytes"])
        for r in t["memory_summary"]}, {
            ("cuda:0", "reserved"): (22 << 20, 2, 2 << 20),
            ("cuda:0 pinned", "reserved"): (512, 1, 0),
            ("cuda:1", "reserved"): (7 << 20, 1, 7 << 20)})
    c.equal("nsys: nothing is said of what is allocated",
            {r["allocated"] for r in t["memory_timeline"]}, {None})
    c.equal("nsys: one device", {r["device"] for r in tables(
        path, "--device", "1")["memory_summary"]}, {"cuda:1"})
    path = folder / "driver.db"
    write_rocpd(Work(SAMPLES / "train_step.json.gz"), path)
    with sqlite3.connect(path) as db:
        name = "rocpd_memory_allocate_0000000a_1b2c"
        db.execute(f"CREATE TABLE {name} (start, end, pid, agent_id, type, "
                   "level, address, size)")
        db.executemany(f"INSERT INTO {name} VALUES (?, ?, 1, 3, ?, ?, ?, ?)", [
            (100, 110, "ALLOC", "REAL", 4096, 1000),
            (200, 210, "ALLOC", "REAL", 8192, 500),
            (300, 310, "FREE", "REAL", 4096, 0),   # of unknown size
            (400, 410, "ALLOC", "REAL", 4096, 300),
            (500, 510, "ALLOC", "SCRATCH", 1 << 20, 77),
            (600, 610, "FREE", "REAL", 1 << 33, 0)])  # from before
    t = tables(path)
    c.equal("rocpd: peaks", {
        r["device"]: (r["peak_bytes"], r["peak_moment"], r["at_end_bytes"])
        for r in t["memory_summary"]},
        {"cuda:0": (1500, 2, 800), "cuda:0 scratch": (77, 1, 77)})


def check_convert(c, folder):
    """A snapshot as a Perfetto trace: its counters have the peaks and ends of
    the tables, its slices every allocation."""
    for name in ("train", "oom", "random"):
        path = SAMPLES / f"memory/{name}.pickle"
        out, back = folder / "snapshot.pftrace", folder / "snapshot.json"
        lamina("convert", path, "-o", out)
        lamina("convert", out, "-o", back)
        events = json.loads(back.read_text())["traceEvents"]
        series, slices = {}, []
        for e in sorted((e for e in events if e.get("ph") == "C"),
                        key=lambda e: e["ts"]):
            series.setdefault(e["name"], []).append(e["args"]["value"])
        t = tables(path, "--all")
        for r in t["memory_summary"]:
            if r["measure"] == "viewer":
                continue
            have = series[r["measure"]]
            c.equal(f"{name}: {r['measure']}", (max(have), have[0], have[-1]),
                    (r["peak_bytes"], r["at_start_bytes"], r["at_end_bytes"]))
        ends = rows(tables(path, "--at", "end"), "category", 0)
        for category, (size, _, _) in ends.items():
            c.equal(f"{name}: {category} at the end", series[category][-1],
                    size)
        slices = [e for e in events if e.get("ph") == "X"]
        # "1.00 MiB model.py:30 forward"
        c.equal(f"{name}: slices", sorted(e["name"].split(" ", 2)[2]
                                          for e in slices),
                sorted(r["line"] for r in t["memory_allocations"]))
        lamina("convert", path, "-o", back, status=2)


class Data(pickle.Unpickler):
    """Reads values alone: whatever a pickle names is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def segments_of(value):
    return value if isinstance(value, list) else value["segments"]


def check_invariants(c, path, folder):
    """Of section 14: what the final state says, the way of the viewer, a ring
    that lost its start, devices in files of their own."""
    value = Data(io.BytesIO(path.read_bytes())).load()
    name = path.stem
    t = tables(path, "--all")
    devices = sorted({s["device"] for s in segments_of(value)})
    for d in devices:
        h = health(t, d)
        segments = [s for s in segments_of(value) if s["device"] == d]
        at_end = {r["measure"]: r["at_end_bytes"]
                  for r in of(t["memory_summary"], d)}
        if "history" not in str(h) and not h.get("not_in_final_state"):
            blocks = [b for s in segments for b in s["blocks"]]
            active = [b for b in blocks if b["state"] != "inactive"]
            allocated = [b for b in blocks
                         if b["state"] == "active_allocated"]
            c.equal(f"{name} {d}: final state",
                    [at_end[k] for k in ("allocated", "active", "reserved")],
                    [sum(b["size"] for b in allocated),
                     sum(b["size"] for b in active),
                     sum(s["total_size"] for s in segments)])
            if all("requested_size" in b for b in allocated):
                asked = sum(b["requested_size"] for b in allocated)
                c.equal(f"{name} {d}: requested", at_end["requested"], asked)
                free = last(tables(path, "--at", "end"), d)
                inside = sum(b["size"] - b["requested_size"] for b in active)
                c.equal(f"{name} {d}: inner and outer free",
                        (free["rounding_bytes"], free["free_bytes"]),
                        (inside, at_end["reserved"] - at_end["active"]))
        events = sum(v for k, v in h.items() if k.startswith("events "))
        if not h.get("lost_free") and events:
            steps = {}
            level = 0
            for a in of(t["memory_allocations"], d):
                start, end = a["start_event"], a["end_event"]
                if start is None:
                    level += a["requested_bytes"]
                else:
                    steps[start] = steps.get(start, 0) + a["requested_bytes"]
                if end is not None:
                    steps[end] = steps.get(end, 0) - a["requested_bytes"]
            highest = None
            for i in sorted(steps):
                level += steps[i]
                highest = max(level, highest or 0)
            if highest is not None and not h.get("not_in_final_state"):
                c.equal(f"{name} {d}: maximum of the viewer",
                        peaks(t, d)["viewer"][0], highest)
    if isinstance(value, list) or not any(value["device_traces"]):
        return
    if len(devices) > 1:
        for d in devices:
            alone = dict(value, segments=[s for s in value["segments"]
                                          if s["device"] == d],
                         device_traces=[x if i == d else [] for i, x in
                                        enumerate(value["device_traces"])])
            part = folder / "one.pickle"
            part.write_bytes(pickle.dumps(alone))
            one = tables(part, "--all")
            for table, rows in t.items():
                if table in ("memory_settings",) or table not in one:
                    continue
                c.equal(f"{name} {d}: {table} of a file of its own",
                        [{k: v for k, v in r.items() if k != "device_index"}
                         for r in one[table]],
                        [{k: v for k, v in r.items() if k != "device_index"}
                         for r in of(rows, d)])
        return
    full = tables(path, "--full")["memory_timeline"]
    levels = {r["moment"]: r for r in full}
    events = value["device_traces"][devices[0]]
    for k in {len(events) // 3, len(events) * 3 // 4}:
        if not k or len(events) > 3000:
            continue
        cut = dict(value, device_traces=[e[k:] if i == devices[0] else e
                   for i, e in enumerate(value["device_traces"])])
        ring = folder / "ring.pickle"
        ring.write_bytes(pickle.dumps(cut))
        r = tables(ring, "--full")
        slack = health(r, devices[0]).get("uncertain_bytes", 0)
        for row in r["memory_timeline"]:
            whole = levels[row["moment"] + k]
            where = f"{name}: without {k} events, moment {row['moment']}"
            c.equal(where, (row["requested"], row["reserved"]),
                    (whole["requested"], whole["reserved"]))
            c.true(f"{where}: active", whole["active"] - slack <=
                   row["active"] <= whole["active"])
        # Ages are events of the file, and categories go by lifetimes.
        state = [[{key: v for key, v in r.items() if key in (
            "address", "total_bytes", "active_bytes", "requested_bytes",
            "blocks", "free_bytes", "free_ranges", "largest_free_bytes",
            "stuck_bytes", "rounding_bytes")}
                  for r in tables(p, "--at", "end")["memory_segments"]]
                 for p in (ring, path)]
        c.equal(f"{name}: final state without {k} events", *state)


TIMELINE = ("parameter", "optimizer_state", "input", "temporary",
            "activation", "gradient", "temporary", "unknown")


def timeline_truth(rows):
    """Of a raw timeline: highest sum, first row that has it, and its parts."""
    total, best, at, parts, peak = 0, None, 0, {}, {}
    for i, (_, _, size, category) in enumerate(rows):
        total += size
        parts[TIMELINE[category]] = parts.get(TIMELINE[category], 0) + size
        if best is None or total > best:
            best, at, peak = total, i, dict(parts)
    return best, at, {k: v for k, v in peak.items() if v}, total


def check_timeline(c, folder):
    """Files of export_memory_timeline, in both forms, packed and plain."""
    rng = random.Random(5)
    rows, live, now = [], [], 10**15
    for i in range(700):
        now += rng.randrange(1, 5000)
        before = i < 9
        if live and rng.random() < 0.45:
            size, category = live.pop(rng.randrange(len(live)))
            rows.append([now, 4, -size, category])
            continue
        size, category = 512 * rng.randrange(1, 9000), rng.randrange(8)
        live.append((size, category))
        rows.append([-1 if before else now, 1 if before else 2, size, category])
        if rng.random() < 0.1:  # a new version: the old one goes
            rows += [[now, 3, -size, category], [now, 3, size, category]]
    made = {"raw": rows}
    if (shared := shared_folder()):
        path = shared / "inputs/hta-memory-timeline.raw.gz"
        if path.is_file():
            made["reference"] = json.loads(gzip.decompress(path.read_bytes()))
    for name, rows in made.items():
        best, at, parts, last = timeline_truth(rows)
        path = folder / f"{name}.raw.json.gz"
        path.write_bytes(gzip.compress(json.dumps(rows).encode()))
        t = tables(path, "--full")
        (s,) = t["memory_summary"]
        c.equal(f"{name}: peak", (s["measure"], s["peak_bytes"],
                                  s["peak_moment"], s["at_end_bytes"]),
                ("allocated", best, at, last))
        c.equal(f"{name}: categories", {r["key"]: r["bytes"]
                                        for r in t["memory_peak"]}, parts)
        c.equal(f"{name}: confidence", {r["confidence"]
                                        for r in t["memory_peak"]}, {"fact"})
        c.equal(f"{name}: rows", len(t["memory_timeline"]), len(rows))
        # The same as a series of sums.
        times, sizes, sums = [], [], [0] * 9
        for time, _, size, category in rows:
            sums[category + 1] += size
            times.append(time // 1000 if time >= 0 else -1)
            sizes.append(list(sums))
        path = folder / f"{name}.json"
        path.write_text(json.dumps([times, sizes]))
        other = tables(path, "--full")
        c.equal(f"{name}: as a series", [
            {k: v for k, v in r.items() if k != "time_us"}
            for r in other["memory_timeline"]], [
            {k: v for k, v in r.items() if k != "time_us"}
            for r in t["memory_timeline"]])
        c.equal(f"{name}: peak of the series", other["memory_peak"],
                t["memory_peak"])
        path.write_text(json.dumps([times, sizes])[:-9])
        lamina("memory", path, status=3)
    page = folder / "timeline.html"
    page.write_text("<html><body><img src='data:image/png;base64,iV'/>")
    text = lamina("memory", page, status=3).stderr
    c.true(f"a picture: {text}", "holds a picture" in text and
           ".raw.json" in text)


def check_made_kineto(c, folder):
    """[memory] events whose truth is known: that of the snapshot which they
    were made of."""
    path = SAMPLES / "memory/train.pickle"
    snapshot = pickle.loads(path.read_bytes())  # our own file
    plain = tables(path, "--all")
    sizes = {r["start_event"]: r["bytes"] for r in plain["memory_allocations"]
             if r["start_event"] is not None}
    value, ops = trace_of(snapshot, sizes)
    trace = folder / "kineto.json"
    trace.write_text(json.dumps(value))
    t = tables(trace)
    have = {r["measure"]: r for r in t["memory_summary"]}
    want = {r["measure"]: r for r in plain["memory_summary"]}
    for key in ("peak_bytes", "at_start_bytes", "at_end_bytes"):
        c.equal(f"trace of a snapshot: {key}", have["allocated"][key],
                want["allocated"][key])
    # Who was allocated at the peak, from the events alone.
    live, total, best, peak, moment, when = {}, 0, -1, {}, 0, 0
    for i, e in enumerate(snapshot["device_traces"][0]):
        if e["action"] == "alloc":
            live[e["addr"]] = (sizes[i], ops[i])
            total += sizes[i]
        elif e["action"] == "free_requested":
            total -= live.pop(e["addr"])[0]
        else:
            continue
        moment += 1
        if total > best:
            best, when, peak = total, moment, {}
            for size, op in live.values():
                peak[op] = peak.get(op, 0) + size
    c.equal("trace of a snapshot: moment", have["allocated"]["peak_moment"],
            when)
    c.equal("trace of a snapshot: ops", {
        r["key"]: r["bytes"] for r in t["memory_peak_op"]
        if r["key"] != "(cached, free)"}, peak)
    report = json.loads(lamina("report", trace, "--format",
                               "json").stdout)["tables"]
    c.equal("a report has the summary", report["memory_summary"],
            t["memory_summary"])


def check_diff(c, folder, paths):
    """Deltas sum to what is reserved; a file against itself has no change, and
    the other way round every sign turns."""
    by_key = {}
    for a in paths:
        same = tables("--diff", a, a)["memory_diff"]
        c.equal(f"{a.name}: against itself", {r["change"] for r in same} -
                {"same"}, set())
    for a, b in zip(paths, paths[1:] + paths[:1]):
        there, back = (tables("--diff", *pair)["memory_diff"]
                       for pair in ((a, b), (b, a)))
        where = f"{a.name} to {b.name}"
        at = [sum(r["at_peak_bytes"] for r in tables(p)["memory_summary"]
                  if r["measure"] == "reserved") for p in (a, b)]
        c.equal(f"{where}: sum", sum(r["delta_bytes"] for r in there),
                at[1] - at[0])
        for rows in (there, back):
            by_key = {}
            for r in rows:
                k = (r["line"], r["op"], r["change"] == "moved" or r["module"])
                by_key[k] = by_key.get(k, 0) + r["delta_bytes"]
            if rows is there:
                want = {k: -v for k, v in by_key.items()}
        c.equal(f"{where}: and back", by_key, want)
    shared = shared_folder()
    if not shared:
        return
    folder = shared / "memory"
    truth = json.loads((folder / "diff-inference-training.truth.json")
                       .read_text())
    rows = tables("--diff", folder / "cs336-medium-inference-128.pickle",
                  folder / "cs336-medium-training-512.pickle")["memory_diff"]
    # A row that moved to another module has no single one of the truth's keys.
    have = {(r["line"], r["op"], r["module"] or ""): r for r in rows
            if r["change"] != "moved"}
    for w in truth["rows"]:
        r = have.get((w["line"], w["op"], w["module"]))
        c.equal(f"diff: {w['line']} {w['op']} {w['module']}",
                r and [r[k] for k in ("change", "bytes_a", "bytes_b",
                                      "delta_bytes")],
                [w[k] for k in ("change", "bytes_a", "bytes_b",
                                "delta_bytes")])
    c.equal("diff: sum", sum(r["delta_bytes"] for r in rows),
            truth["total_b"] - truth["total_a"])


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
                h = {r["check"]: r["amount"] for r in t["memory_health"]}
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
        check_drivers(c, folder)
        check_timeline(c, folder)
        check_made_kineto(c, folder)
        check_convert(c, folder)
        for n in ("train", "oom", "random"):
            check_invariants(c, SAMPLES / f"memory/{n}.pickle", folder)
        check_diff(c, folder, [SAMPLES / f"memory/{n}.pickle"
                               for n in ("train", "oom", "random")])
    folder = shared_folder()
    if folder is None:
        print("without reference snapshots")
    else:
        for path in sorted((folder / "memory").glob("*.pickle")):
            check_truth(c, path)
            with temporary() as space:
                check_invariants(c, path, pathlib.Path(space))
        offsets = json.loads((folder / "memory/bad/offsets.json").read_text())
        for path in sorted((folder / "memory/bad").glob("*.pickle")):
            at, _ = refused(path)
            want = offsets[path.name[:-len(".pickle")]]
            if want is not None:
                c.equal(f"{path.name}: offset", at, want)
        check_kineto(c, folder)
    c.finish()


main()
