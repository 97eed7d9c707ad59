#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Idle causes, launches and the critical path: on the samples what must hold of
any trace, on the reference traces every number of the truth files."""
import json
import os
import pathlib
import random
import re

from common import ROOT, SAMPLES, Checks, Exact, lamina, temporary

NONE = ("unlinked", "graph", "memcpy", "sync", "no_work", "host_bound",
        "launch_overhead", "dependency", "kernel_wait", "submitted_wait")


def tables(command, trace, *args):
    document = json.loads(
        lamina(command, trace, "--format", "json", *args).stdout,
        parse_float=Exact)
    return document["tables"]


def check_any(checks, trace):
    """Parts tile their gaps, sums agree, the path tiles its window."""
    name = trace.name
    host = tables("host", trace, "--by", "stream")
    parts = {}
    for part in host["idle_parts"]:
        parts.setdefault((part["device"], part["gap"]), []).append(part)
    sums = {}
    for (device, _), own in parts.items():
        at = own[0]["start_us"].ns
        for part in own:
            checks.equal(f"{name}: parts touch", part["start_us"].ns, at)
            at += part["dur_us"].ns
            key = device, part["cause"]
            sums[key] = sums.get(key, 0) + part["dur_us"].ns
    rows = {}
    for row in host["idle_causes"]:
        if row["scope"] == "device":
            key = row["device"], row["cause"]
            rows[key] = rows.get(key, 0) + row["time_us"].ns
        checks.true(f"{name}: {row['cause']} is a cause", row["cause"] in NONE)
        checks.true(f"{name}: above zero", row["time_us"].ns > 0)
    checks.equal(f"{name}: parts add up to causes", sums, rows)
    # Calls that wait are fewer than their work, and none without work. Where
    # each call has one event they are the same.
    several = {}
    for row in host["launch_events"]:
        several[row["call_uid"]] = several.get(row["call_uid"], 0) + 1
    single = all(count == 1 for count in several.values())
    for row in host["queue_depth_series"]:
        checks.true(f"{name}: depth {row}", row["depth"] >= 0 and
                    (row["launches"] > 0) == (row["depth"] > 0) and
                    (row["launches"] == row["depth"] if single
                     else row["launches"] <= row["depth"]))
    other = tables("host", trace, "--by", "stream", "--threads", "1")
    checks.equal(f"{name}: one thread", other, host)

    path = tables("path", trace, "--what-if", "scale:class=compute:1",
                  "--what-if", "scale:class=host:1",
                  "--what-if", "scale:class=compute:0.5",
                  "--what-if", "zero:gaps")
    segments = path["path_segments"]
    window = path["verdicts"][0]["window_us"].ns
    checks.equal(f"{name}: segments add up",
                 sum(s["dur_us"].ns for s in segments), window)
    for a, b in zip(segments, segments[1:]):
        checks.equal(f"{name}: segments touch",
                     a["start_us"].ns + a["dur_us"].ns, b["start_us"].ns)
    for row in path["what_if"][:2]:
        checks.equal(f"{name}: {row['spec']} saves nothing",
                     row["saved_us"].ns, 0)
    kinds = {r["kind"]: r["time_us"].ns for r in path["path_summary"]}
    checks.true(f"{name}: half the work saves at most half of it",
                0 <= path["what_if"][2]["saved_us"].ns
                <= kinds.get("compute", 0))
    verdicts = tables("path", trace, "--by", "layer")["verdicts"]
    layers = [row for row in verdicts if row["scope"] == "layer"]
    checks.true(f"{name}: layers have verdicts", len(layers) > 2)
    for part in ("window_us", "host_us", "device_us", "comm_us", "copy_us",
                 "wait_us", "before_trace_us"):
        checks.equal(f"{name}: {part} of the layers, before and behind them",
                     sum(row[part].ns for row in layers),
                     verdicts[0][part].ns)
    # The table layers says the same of a layer that another one follows.
    cut = {row["name"]: row for row in layers}
    found = tables("layers", trace, "--only", "layers")["layers"]
    for row, behind in zip(found, found[1:]):
        part = cut.get(f"{row['stack']} {row['layer']} of pass {row['pass']}")
        if row["pass"] != behind["pass"] or part is None:
            continue
        checks.equal(f"{name}: what bounds layer {row['layer']}",
                     (row["verdict"], row["strength_percent"]),
                     (part["verdict"], part["strength_percent"]))


def check_layers(checks, trace):
    """--by layer: the rows of the layers, and of work outside of them, add up
    to the idle time of the device, and a third of it at least is of layers."""
    name = f"{trace.name}: by layer"
    rows = tables("host", trace, "--by", "layer",
                  "--only", "idle_causes")["idle_causes"]
    sums = {}
    for row in rows:
        key = row["scope"], row["name"] == "(outside)"
        sums[key] = sums.get(key, 0) + row["time_us"].ns
    layers = {row["name"] for row in rows if row["scope"] == "layer"}
    checks.true(f"{name}: {len(layers)} names", len(layers) > 2)
    checks.equal(f"{name}: adds up", sums[("layer", False)] +
                 sums.get(("layer", True), 0), sums[("device", False)])
    checks.true(f"{name}: layers have a third",
                3 * sums[("layer", False)] >= sums[("device", False)])


def check_links(checks):
    """Copies say what their link carries, where the device is known."""
    mib = 1 << 20
    copies = [("HtoD (Pinned -> Device)", 64 * mib, 1 << 21),
              ("DtoH (Device -> Pageable)", 32 * mib, 1 << 23),
              ("DtoD (Device -> Device)", 1024 * mib, 1 << 21),
              ("PtoP (Device -> Device)", 256 * mib, 1 << 20)]
    events = []
    for i, (what, size, ns) in enumerate(copies, 1):
        at = i * 20_000
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync",
                    "pid": 1, "tid": 1, "ts": at, "dur": 5,
                    "args": {"correlation": i}},
                   {"ph": "X", "cat": "gpu_memcpy", "name": f"Memcpy {what}",
                    "pid": 0, "tid": 7, "ts": at + 8, "dur": ns / 1000,
                    "args": {"device": 0, "stream": 7, "correlation": i,
                             "bytes": size}}]
    # PCIe 5.0 x16, NVLink 4 and HBM3 in one direction, 1e9 bytes per second.
    peaks = {"HtoD": 64, "DtoH": 64, "PtoP": 450, "DtoD": 3350 / 2}
    with temporary() as folder:
        path = pathlib.Path(folder) / "copies.json"
        for device, known in (("NVIDIA H100 80GB HBM3", True),
                              ("Nobody's GPU", False)):
            path.write_text(json.dumps({
                "deviceProperties": [{"id": 0, "name": device,
                                      "totalGlobalMem": 85_520_809_984,
                                      "numSms": 132}],
                "traceEvents": events}))
            rows = {r["direction"]: r for r in
                    tables("host", path, "--only", "copies")["copies"]}
            checks.equal(f"copies: {device}", len(rows), len(copies))
            for what, size, ns in copies:
                row = rows[what[:4]]
                peak = peaks[what[:4]] if known else None
                found = row["link_peak_gb_per_s"], row["peak_percent"]
                if known:
                    checks.true(
                        f"copies: {what}: {found}",
                        abs(float(str(found[0])) - peak) < 1e-9 and
                        abs(float(str(found[1])) - 100 * size / ns / peak)
                        < 1e-6)
                else:
                    checks.equal(f"copies: {device} {what}", found,
                                 (None, None))
        # Beside another device DtoD may be a copy between the two.
        path.write_text(json.dumps({
            "deviceProperties": [{"id": i, "name": "NVIDIA H100 80GB HBM3",
                                  "totalGlobalMem": 85_520_809_984,
                                  "numSms": 132} for i in (0, 1)],
            "traceEvents": events + [
                {**events[1], "args": {**events[1]["args"], "device": 1,
                                       "correlation": 99}}]}))
        rows = tables("host", path, "--only", "copies")["copies"]
        checks.equal("copies: two devices", {
            r["direction"]: r["link_peak_gb_per_s"] is not None
            for r in rows}, {"HtoD": True, "DtoH": True, "DtoD": False,
                             "PtoP": True})


def check_other_thread(checks):
    """A thread that works while the launching one records nothing is named,
    also where all that it recorded is a range."""
    launches = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1,
         "tid": 10, "ts": at, "dur": 5, "args": {"correlation": at}}
        for at in (10, 4010)] + [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
         "ts": at + 10, "dur": 10,
         "args": {"device": 0, "stream": 7, "correlation": at}}
        for at in (10, 4010)]
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 11,
            "args": {"name": "autograd"}}
    with temporary() as folder:
        path = pathlib.Path(folder) / "threads.json"
        for cat in ("user_annotation", "python_function", "cpu_op"):
            path.write_text(json.dumps({"traceEvents": [name] + launches + [
                {"ph": "X", "cat": cat, "name": "## backward ##", "pid": 1,
                 "tid": 11, "ts": 60, "dur": 9000}]}))
            found, = tables("query", path, "SELECT detail, dur_ns FROM "
                            "idle_parts WHERE activity = 'other_thread'"
                            ).values()
            checks.equal(f"other thread with {cat}", [
                (r["detail"], r["dur_ns"]) for r in found],
                [("autograd", 3_950_000)])


def check_overlay(checks, trace):
    """The overlay as JSON and as a Perfetto trace: the same spans and arrows,
    and whoever reads the file again finds the path of the trace."""
    name = f"{trace.name}: overlay"
    with temporary() as folder:
        folder = pathlib.Path(folder)
        plain, text, packed = (folder / "plain.pftrace", folder / "over.json",
                               folder / "over.pftrace")
        lamina("convert", trace, "-o", plain)
        for out in (text, packed):
            segments = tables("path", trace, "--overlay", out)["path_segments"]
        own = [e for e in json.loads(text.read_text())["traceEvents"]
               if e.get("cat") == "lamina_critical_path"]
        arrows = sum(e["ph"] == "s" for e in own)
        checks.equal(f"{name}: spans", sum(e["ph"] == "X" for e in own),
                     len(segments))
        checks.true(f"{name}: {arrows} arrows", arrows > 0)

        def ask(path, sql):
            done = lamina("query", path, sql, "--format", "json")
            return next(iter(json.loads(done.stdout)["tables"].values()))

        count = "select count(*) as n from flow"
        checks.equal(f"{name}: ends of arrows in the Perfetto trace",
                     ask(packed, count)[0]["n"] - ask(plain, count)[0]["n"],
                     2 * arrows)
        for command, table in (("path", "path_summary"),
                               ("host", "idle_causes"),
                               ("host", "launch_apis")):
            checks.equal(f"{name}: {table} of what was written",
                         [{k: v for k, v in row.items() if "uid" not in k}
                          for row in tables(command, packed)[table]],
                         [{k: v for k, v in row.items() if "uid" not in k}
                          for row in tables(command, plain)[table]])


# --- the truth files ---


def sums_by_scope(rows):
    out = {}
    for row in rows:
        scope = (row["scope"], row["device"], row["stream"])
        causes = out.setdefault(scope, {})
        causes[row["cause"]] = causes.get(row["cause"], 0) + row["time_us"].ns
    return out


def check_path_truth(checks, folder, truth_path):
    truth = json.loads(truth_path.read_text())
    label = truth_path.stem
    trace = folder / "traces" / truth["trace"]
    if not trace.exists():
        stem = truth["trace"].split(".")[0]
        trace = folder / f"goldens/hta/traces/{stem}.trace.gz"
    extra = ["--no-sync-records"] if "no-sync" in label else []
    host = tables("host", trace, "--by", "stream", *extra)
    found = sums_by_scope(host["idle_causes"])
    for scope, expected in truth["idle"].items():
        kind, where = scope.split()
        device, stream = where.split("/")
        matches = [v for k, v in found.items()
                   if k[0] == kind and k[1].split(":")[-1] == device and
                   (kind == "device" or str(k[2]) == stream)]
        causes = matches[0] if len(matches) == 1 else {}
        # The truth has an older model of waits (shared spec/path-model.md,
        # section 0): times move between causes of waiting, none is lost.
        truths = expected["causes_ns"]
        total = sum(truths.values())
        checks.equal(f"{label}: {scope}", sum(causes.values()), total)
        for cause in ("host_bound", "sync", "graph", "unlinked", "no_work"):
            checks.true(f"{label}: {scope}: {cause}", abs(
                causes.get(cause, 0) - truths.get(cause, 0)) <= total / 50)
    floors = {}
    for row in host["launch_apis"]:
        where = row["device"].split(":")[-1] + " " + row["api"]
        if row["floor_us"] is not None:
            floors[where] = row["floor_us"].ns
        if row["graph_floor_us"] is not None:
            floors[where + " graph"] = row["graph_floor_us"].ns
    checks.equal(f"{label}: floors", floors, truth["launch_floor_ns"])

    # What the path is made of and what would change it: cases_test.py.
    args = ["--window", truth["window"]] if "window" in truth else []
    path = tables("path", trace, *extra, *args)
    checks.equal(f"{label}: window", path["verdicts"][0]["window_us"].ns,
                 truth["critical_path"]["window_ns"])
    checks.equal(f"{label}: the path tiles the window",
                 sum(r["dur_us"].ns for r in path["path_segments"]),
                 path["verdicts"][0]["window_us"].ns)


def check_numbers(checks, folder, truth_path):
    truth = json.loads(truth_path.read_text())
    label = truth_path.stem
    stem = label.removeprefix("numbers-")
    trace = {"ddp-2ranks-0": "ddp-2ranks/rank-0",
             "vllm-prefilldecode-piecewise":
             "vllm-prefilldecode-piecewise/replay"}.get(stem, stem)
    trace = folder / "traces" / f"{trace}.json.gz"
    host = tables("host", trace)
    apis = {r["device"].split(":")[-1] + " " + r["api"]: r
            for r in host["launch_apis"]}
    for where, expected in truth["launches"].items():
        row = apis.get(where)
        checks.true(f"{label}: {where}", row is not None)
        for key, value in expected.items():
            column = re.sub("_ns$", "_us", key)
            found = row[column] if row else None
            found = found.ns if isinstance(found, Exact) else found
            # A start before its call is clock noise: latency 0.
            checks.equal(f"{label}: {where} {key}", found,
                         max(0, value) if key == "latency_min_ns" else value)
    depths = {f"{r['device'].split(':')[-1]}/{r['stream']}": r
              for r in host["queue_depth"]}
    for where, expected in truth["queue_depth"].items():
        row = depths[where]
        checks.equal(f"{label}: queue {where}",
                     (row["span_us"].ns, row["max_depth"], row["empty_us"].ns),
                     (expected["span_ns"], expected["max"],
                      expected["empty_ns"]))
        if expected["mean_time_weighted"] is not None:
            checks.true(f"{label}: mean depth {where}",
                        abs(row["mean"] - expected["mean_time_weighted"])
                        <= 0.00005001)
    if "comm_exposure" in host:
        for device, expected in truth["collectives"].items():
            rows = [r for r in host["comm_exposure"]
                    if r["device"].split(":")[-1] == device]
            checks.equal(f"{label}: collectives",
                         sum(r["count"] for r in rows),
                         expected["collectives"])
            checks.equal(f"{label}: exposed",
                         sum(r["exposed_us"].ns for r in rows),
                         expected["exposed_ns"])
            for group in expected["groups"]:
                if group["collective"] is None:
                    # The truth tells them apart by kernel alone, lamina by
                    # what the host asked for.
                    own = [r for r in rows if r["stream"] == group["stream"]
                           and r["kernel"].startswith(group["kernel"])]
                    checks.equal(
                        f"{label}: group {group}",
                        (sum(r["count"] for r in own),
                         sum(r["time_us"].ns for r in own)),
                        (group["count"], group["time_ns"]))
                    continue
                checks.true(
                    f"{label}: group {group}",
                    any(r["stream"] == group["stream"] and
                        r["count"] == group["count"] and
                        r["time_us"].ns == group["time_ns"] and
                        r["exposed_alone_us"].ns == group["exposed_alone_ns"]
                        and r["exposed_us"].ns == group["exposed_ns"]
                        for r in rows))


def launch_trace(rng, names, kernel_us, host_us):
    """One stream; the host prepares each launch for a while."""
    events, host, stream = [], 1000.0, 0.0
    for ident, name in enumerate(names, 1):
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::op",
                       "pid": 1, "tid": 1, "ts": host, "dur": host_us + 5,
                       "args": {}})
        events.append({"ph": "X", "cat": "cuda_runtime",
                       "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                       "ts": host + host_us, "dur": 4,
                       "args": {"correlation": ident}})
        start = max(stream, host + host_us + 6)
        dur = kernel_us + rng.randrange(3)
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0,
                       "tid": 7, "ts": start, "dur": dur,
                       "args": {"device": 0, "stream": 7,
                                "correlation": ident}})
        stream, host = start + dur, host + host_us + 5
    return {"traceEvents": events}


# Ops of calls, each as (outer op, ops inside it), and the fusion rule for it.
RULES = [
    ([("aten::pow", []), ("aten::mean", []), ("aten::add", []),
      ("aten::rsqrt", []), ("aten::mul", []), ("aten::mul", [])],
     "match_rmsnorm_pattern"),
    # Copies between the ops, as a norm in float32 has them.
    ([("aten::to", ["aten::copy_"]), ("aten::pow", []), ("aten::mean", []),
      ("aten::add_", []), ("aten::rsqrt", []), ("aten::mul", []),
      ("aten::to", ["aten::copy_"]), ("aten::mul", [])],
     "match_rmsnorm_pattern"),
    # The op of the rule is not the innermost one, and has two kernels.
    ([("aten::matmul", ["aten::bmm", "aten::add_"]), ("aten::div", []),
      ("aten::softmax", ["aten::_softmax"]), ("aten::matmul", ["aten::bmm"])],
     "match_eager_attention"),
    ([("aten::silu", []), ("aten::mul", [])], "fuse_silu_mul"),
    # Other order, other ops, a part of a rule.
    ([("aten::rsqrt", []), ("aten::pow", []), ("aten::mean", [])], "new"),
    ([("aten::mul", []), ("aten::silu", [])], "new"),
    ([("aten::pow", []), ("aten::mean", []), ("aten::sin", []),
      ("aten::rsqrt", []), ("aten::mul", []), ("aten::mul", [])], "new"),
    ([("my::silu", []), ("aten::mul", [])], "new"),
]


def check_sequence_rules(checks):
    """What the ops of a sequence look like by the rules of fusions; time
    between its kernels; no layers, no share."""
    with temporary() as folder:
        path = pathlib.Path(folder) / "made.json"
        for number, (calls, rule) in enumerate(RULES):
            events, host, ident = [], 1000, 0
            for turn in range(5):
                for outer, inner in calls + [(f"other::op{turn}", [])]:
                    begin = host
                    for name in inner or [None]:
                        if name:
                            events.append({
                                "ph": "X", "cat": "cpu_op", "name": name,
                                "pid": 1, "tid": 1, "ts": host + 2,
                                "dur": 28, "args": {}})
                        ident += 1
                        events += [
                            {"ph": "X", "cat": "cuda_runtime",
                             "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                             "ts": host + 20, "dur": 4,
                             "args": {"correlation": ident}},
                            {"ph": "X", "cat": "kernel",
                             "name": f"{name or outer} kernel", "pid": 0,
                             "tid": 7, "ts": host + 28, "dur": 3,
                             "args": {"device": 0, "stream": 7,
                                      "correlation": ident}}]
                        host += 32
                    events.append({"ph": "X", "cat": "cpu_op", "name": outer,
                                   "pid": 1, "tid": 1, "ts": begin,
                                   "dur": host - begin - 1, "args": {}})
            path.write_text(json.dumps({"traceEvents": events}))
            rows = tables("host", path, "--only",
                          "kernel_sequences")["kernel_sequences"]
            length = sum(max(1, len(inner)) for _, inner in calls)
            own = [r for r in rows if r["length"] == length]
            checks.equal(f"rule of sequence {number}",
                         [r["rule"] for r in own[:1]], [rule])
            for row in own[:1]:
                checks.equal(f"sequence {number}: time between kernels",
                             row["inner_gap_us"].ns,
                             row["count"] * (length - 1) * 29_000)
                checks.equal(f"sequence {number}: no layers, no share",
                             row["layers_percent"], None)


def check_sequence_layers(checks, trace):
    """The share of layers against layers and kernels by SQL."""
    run = lamina("query", trace, "SELECT name, layer, layer_stack, pass "
                 "FROM kernel ORDER BY stream, start_ns, uid",
                 "--format", "json")
    kernels = next(iter(json.loads(run.stdout)["tables"].values()))
    layer_of = [(k["pass"], k["layer_stack"], k["layer"])
                if k["layer"] is not None else None for k in kernels]
    total = len(set(layer_of) - {None})
    rows = tables("host", trace, "--only", "kernel_sequences")[
        "kernel_sequences"]
    names = [k["name"] for k in kernels]
    shown = 0
    for row in rows:
        if row["layers_percent"] is None:
            continue
        wanted = row["names"].split(" + ")
        # Wherever it stands, launch-bound or not: at least what the row says.
        begins = {layer_of[i] for i in range(len(names))
                  if names[i:i + len(wanted)] == wanted} - {None}
        shown += 1
        checks.true(f"{trace.name}: sequence {row['sequence']} in layers",
                    0 <= float(row["layers_percent"]) <=
                    100 * len(begins) / max(1, total) + 1e-6)
    checks.true(f"{trace.name}: shares of layers", shown > 0)


def check_sequences(checks):
    """A sequence that is planted among random kernels is found with its count;
    where the device is the bound there is none."""
    with temporary() as folder:
        for seed in range(10):
            rng = random.Random(seed)
            length, count = rng.randrange(2, 8), rng.randrange(3, 9)
            planted = [f"planted_{i}" for i in range(length)]
            names = []
            for i in range(count):
                # Every other kernel has a name of its own.
                names += [f"other_{i}_{k}" for k in range(rng.randrange(1, 6))]
                names += planted
            path = pathlib.Path(folder) / "made.json"
            for kernel_us, host_us, bound in ((4, 25, True), (90, 8, False)):
                path.write_text(json.dumps(
                    launch_trace(rng, names, kernel_us, host_us)))
                host = tables("host", path)
                rows = host["kernel_sequences"]
                what = f"sequence, seed {seed}, {'host' if bound else 'device'}"
                if not bound:
                    checks.equal(what, rows, [])
                    continue
                # The first may stand before the launch-bound run.
                found = [(r["names"], r["length"]) for r in rows
                         if r["count"] in (count, count - 1)]
                checks.equal(what, found[:1], [(" + ".join(planted), length)])
                idle = sum(r["time_us"].ns for r in host["idle_causes"]
                           if r["scope"] == "device")
                checks.true(f"{what}: not above idle time", 0 < sum(
                    r["exclusive_us"].ns for r in rows) <= idle)
                fused = tables("path", path, "--what-if", "fuse:1",
                               "graph:run=7/0")["what_if"]
                checks.true(f"{what}: fusing and a graph save time",
                            all(r["saved_us"].ns > 0 for r in fused))


def main():
    checks = Checks()
    check_sequence_rules(checks)
    check_sequences(checks)
    check_links(checks)
    check_other_thread(checks)
    for name in ("serve", "train_step", "moe"):
        check_any(checks, SAMPLES / f"{name}.json.gz")
        check_overlay(checks, SAMPLES / f"{name}.json.gz")
        check_layers(checks, SAMPLES / f"{name}.json.gz")
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    if (folder / "goldens/host").is_dir():
        for path in sorted((folder / "goldens/host").glob("hostpath-*.json")):
            check_path_truth(checks, folder, path)
        for path in sorted((folder / "goldens/host").glob("numbers-*.json")):
            check_numbers(checks, folder, path)
        check_sequence_layers(checks,
                              folder / "traces/h100-falconsai-vit.json.gz")
    else:
        print(f"without truth files: none in {folder}")
    checks.finish()


main()
