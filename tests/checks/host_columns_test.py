#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Columns that tables of lamina host and lamina path take from elsewhere: the
chain of last arrivals, layers, modules, threads and links. What must hold of
any trace: parts add up, bounds are kept, two tables say the same."""
import json
import os
import pathlib

from common import ROOT, SAMPLES, Checks, Exact, lamina, temporary

WORK = {"compute", "fill", "comm", "copy"}


def tables(command, trace, *args):
    return json.loads(
        lamina(command, trace, "--format", "json", *args).stdout,
        parse_float=Exact)["tables"]


def rows_of(trace, sql):
    run = lamina("query", trace, sql, "--format", "json")
    return next(iter(json.loads(run.stdout)["tables"].values()))


def known(rows, column):
    return [r[column].ns for r in rows if r[column] is not None]


def check_comm(checks, name, host, path):
    """Every collective once, and the groups are their sums."""
    groups, events = host["comm_exposure"], host["comm_events"]
    for column in ("time_us", "hidden_us", "exposed_alone_us", "exposed_us",
                   "critical_us"):
        checks.equal(f"{name}: {column} of collectives",
                     sum(known(events, column)), sum(known(groups, column)))
    checks.equal(f"{name}: collectives", len(events),
                 sum(r["count"] for r in groups))
    kinds = {r["kind"]: r["time_us"].ns for r in path["path_summary"]}
    checks.equal(f"{name}: critical time is that of the path",
                 sum(known(events, "critical_us")), kinds.get("comm", 0))
    for row in events:
        what = f"{name}: collective {row['uid']}"
        checks.true(f"{what}: critical",
                    0 <= row["critical_us"].ns <= row["time_us"].ns)
        checks.equal(f"{what}: hidden and exposed",
                     row["hidden_us"].ns + row["exposed_alone_us"].ns,
                     row["time_us"].ns)
        # Nothing is known of other ranks.
        checks.equal(f"{what}: other ranks",
                     (row["wait_us"], row["transfer_us"]), (None, None))
        if row["busbw_gb_per_s"] is not None:
            size = max(row["in_bytes"], row["out_bytes"] or 0)
            rate = float(str(row["busbw_gb_per_s"]))
            checks.true(f"{what}: at most twice its bytes per time",
                        0 < rate <= 2 * size / row["time_us"].ns + 1e-9)
    steps = {}
    for row in events:
        key = (row["device"], row["stream"], row["collective"], row["kernel"],
               row["process_group"], row["in_bytes"])
        steps.setdefault(key, set()).add((row["step"], row["layer_name"]))
    for row in groups:
        key = (row["device"], row["stream"], row["collective"], row["kernel"],
               row["process_group"], row["in_bytes"])
        for i, column in enumerate(("step", "layer_name")):
            if row[column] is not None:
                checks.true(f"{name}: {column} of a group",
                            row[column] in {s[i] for s in steps[key]})


def check_overlapped(checks, name, host, trace):
    """What runs beside a collective, by a look at every kernel."""
    work = rows_of(trace, "SELECT uid, name, start_ns AS b, end_ns AS e, kind, "
                   "bucket FROM kernel")
    start = {r["uid"]: (r["b"], r["e"]) for r in work}
    computes = [r for r in work if r["bucket"] == "compute"]

    def text(times):
        order = sorted(times.items(), key=lambda t: (-t[1], t[0]))[:3]
        return "; ".join(f"{n} {ns // 1000}.{ns % 1000:03} us"
                         for n, ns in order) or None

    groups = {}
    for row in host["comm_events"]:
        begin, end = start[row["uid"]]
        times = {}
        for w in computes:
            own = min(end, w["e"]) - max(begin, w["b"])
            if own > 0:
                times[w["name"]] = times.get(w["name"], 0) + own
        checks.equal(f"{name}: beside collective {row['uid']}",
                     row["overlapped_by"], text(times))
        key = (row["stream"], row["collective"], row["kernel"],
               row["process_group"], row["in_bytes"])
        sums = groups.setdefault(key, {})
        for what, ns in times.items():
            sums[what] = sums.get(what, 0) + ns
    for row in host["comm_exposure"]:
        key = (row["stream"], row["collective"], row["kernel"],
               row["process_group"], row["in_bytes"])
        if key in groups and row["in_bytes"] is not None:
            checks.equal(f"{name}: beside collectives {key}",
                         row["overlapped_by"], text(groups[key]))


def within(intervals, begin, end):
    return sum(max(0, min(e, end) - max(b, begin)) for b, e in intervals)


def union(intervals):
    out = []
    for begin, end in sorted(intervals):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def check_evidence(checks, name, host, path, trace):
    """What the verdicts say of idle time, by the parts of the gaps, all kernels
    and all launches."""
    work = rows_of(trace, "SELECT uid, start_ns, end_ns, device, kind "
                   "FROM kernel")
    start = {r["uid"]: r["start_ns"] for r in work}
    devices = {}
    for r in work:
        devices.setdefault(r["device"], []).append(
            (r["start_ns"], r["end_ns"]))
    busy = [i for of in devices.values() for i in union(of)]
    called = {r["uid"]: r["start_ns"] for r in rows_of(
        trace, "SELECT uid, start_ns FROM slice "
        "WHERE kind IN ('runtime', 'driver')")}
    # Without launches nothing is known of a queue.
    launched = {r["device_uid"] for r in host["launch_events"]}
    linked = 10 * sum(r["end_ns"] - r["start_ns"] for r in work
                      if r["uid"] in launched) >= 9 * sum(
                          r["end_ns"] - r["start_ns"] for r in work)
    waits = union((called[r["call_uid"]], start[r["device_uid"]])
                  for r in host["launch_events"]
                  if called[r["call_uid"]] < start[r["device_uid"]])
    parts = {}
    for r in host["idle_parts"]:
        begin = r["start_us"].ns
        parts.setdefault(r["cause"], []).append(
            (begin, begin + r["dur_us"].ns))
    for row in path["verdicts"]:
        what = f"{name}: evidence of {row['scope']} {row['name']}"
        begin = row["start_us"].ns
        end = begin + row["window_us"].ns
        for column, cause in (("host_bound_idle_us", "host_bound"),
                              ("launch_overhead_us", "launch_overhead"),
                              ("submitted_wait_us", "submitted_wait")):
            checks.equal(f"{what}: {cause}", row[column].ns,
                         within(parts.get(cause, []), begin, end))
        for column, expected in (
                ("device_busy_percent",
                 within(busy, begin, end) / len(devices)),
                ("empty_queue_percent",
                 end - begin - within(waits, begin, end))):
            if column == "empty_queue_percent" and not linked:
                checks.equal(f"{what}: {column}", row[column], None)
                continue
            share = 100 * expected / (end - begin)
            checks.true(f"{what}: {column} {row[column]} for {share}",
                        abs(float(str(row[column])) - share) < 1e-6)
    # Of all that is recorded they are the sums that lamina host has.
    for column, cause in (("host_bound_idle_us", "host_bound"),
                          ("submitted_wait_us", "submitted_wait")):
        checks.equal(f"{name}: {cause} of the window",
                     path["verdicts"][0][column].ns,
                     sum(r["time_us"].ns for r in host["idle_causes"]
                         if r["scope"] == "device" and r["cause"] == cause))


def check_steps(checks, name, path, trace):
    """Steps of a report have the classes that lamina path has."""
    steps = tables("report", trace, "--only", "steps").get("steps", [])
    verdicts = {(r["name"], r["start_us"].ns): r for r in path["verdicts"]
                if r["scope"] == "step"}
    for row in steps:
        if row["step"] is None:
            checks.equal(f"{name}: work of no step", row["path_host_us"], None)
            continue
        other = verdicts.get((row["name"], row["start_us"].ns))
        if other is None:
            continue
        for column in ("host", "device", "comm", "copy", "wait"):
            checks.equal(f"{name}: {column} of step {row['step']}",
                         row[f"path_{column}_us"], other[f"{column}_us"])
    flags = {r["step"]: r for r in rows_of(
        trace, "SELECT step, warmup, cut, outlier FROM step_flags")}
    for row in steps:
        if row["step"] is None:
            continue
        own = flags[row["step"]]
        checks.equal(f"{name}: flag of step {row['step']}",
                     row["flag"],
                     next((f for f in ("warmup", "cut", "outlier")
                           if own[f]), None))


def check_doubtful(checks):
    """A host that waits for the device unrecorded looks like the bound: the
    device that worked all the time says otherwise. With the waits recorded
    there is no doubt, nor where the device hardly works."""
    for case, kernel_us, recorded, verdict, confidence in (
            ("unrecorded waits", 90, False, "host_bound", "weak"),
            ("recorded waits", 90, True, "device_bound", "recorded"),
            ("little work", 5, False, "host_bound", "recorded")):
        events, at = [], 1000
        for i in range(30):
            events += [
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                 "pid": 1, "tid": 1, "ts": at, "dur": 4,
                 "args": {"correlation": i + 1}},
                {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
                 "ts": at + 6, "dur": kernel_us,
                 "args": {"device": 0, "stream": 7, "correlation": i + 1}}]
            if recorded:
                events.append({
                    "ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1,
                    "name": "cudaDeviceSynchronize", "ts": at + 5,
                    "dur": kernel_us + 2, "args": {"correlation": 100 + i}})
            at += 8 + max(kernel_us, 40)
        with temporary() as folder:
            path = pathlib.Path(folder) / "made.json"
            path.write_text(json.dumps({"traceEvents": events}))
            document = json.loads(
                lamina("path", path, "--format", "json").stdout)
        row = document["tables"]["verdicts"][0]
        checks.equal(f"{case}: verdict", (row["verdict"], row["confidence"]),
                     (verdict, confidence))
        checks.equal(f"{case}: said", any(
            "may have waited" in n["text"] for n in document["notes"]),
            confidence == "weak")


def check_slow_steps(checks):
    """One step of many takes longer, by what is planted in it: the cause, the
    class and the name are those, and the step is flagged in the report."""
    cases = {"data loader": ("host_bound/data_loader", "wait",
                             "enumerate(DataLoader)#_MultiProcessingDataLoader"
                             "Iter.__next__"),
             "kernel": ("busy", "device", "gemm_1"),
             "copy": ("busy", "copy", "Memcpy HtoD (Pinned -> Device)")}
    for planted, (cause, chain, what) in cases.items():
        events, at, number = [], 1000, 0
        for step in range(12):
            begin = at
            slow = step == 8
            if slow and planted == "data loader":
                events.append({"ph": "X", "cat": "user_annotation", "pid": 1,
                               "tid": 1, "name": what, "ts": at,
                               "dur": 5000})
                at += 5010
            for i in range(20):
                number += 1
                copy = i == 10
                dur = 90 if not copy else 40
                if slow and (planted == "copy" and copy or
                             planted == "kernel" and i == 7):
                    dur += 5000
                name = "Memcpy HtoD (Pinned -> Device)" if copy else \
                    f"gemm_{i % 3}"
                events += [
                    {"ph": "X", "cat": "cpu_op", "name": "aten::op", "pid": 1,
                     "tid": 1, "ts": at, "dur": 9},
                    {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1,
                     "name": "cudaMemcpyAsync" if copy else "cudaLaunchKernel",
                     "ts": at + 2, "dur": 5, "args": {"correlation": number}},
                    {"ph": "X", "cat": "gpu_memcpy" if copy else "kernel",
                     "name": name, "pid": 0, "tid": 7, "ts": at + 12,
                     "dur": dur, "args": {"device": 0, "stream": 7,
                                          "correlation": number}},
                    {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1,
                     "name": "cudaDeviceSynchronize", "ts": at + 9,
                     "dur": 4 + dur, "args": {"correlation": 10_000 + number}}]
                at += 14 + dur
            events.append({"ph": "X", "cat": "user_annotation", "pid": 1,
                           "tid": 1, "name": f"ProfilerStep#{step}",
                           "ts": begin, "dur": at - begin})
        with temporary() as folder:
            path = pathlib.Path(folder) / "made.json"
            path.write_text(json.dumps({"traceEvents": events}))
            rows = tables("host", path, "--only", "slow_steps")["slow_steps"]
            checks.equal(f"slow step by {planted}",
                         [(r["step"], r["cause"], r["class"], r["name"])
                          for r in rows], [(8, cause, chain, what)])
            steps = tables("report", path, "--only", "steps")["steps"]
            checks.equal(f"flags of steps, {planted}",
                         [r["step"] for r in steps if r["flag"] == "outlier"],
                         [8])


def check_copies(checks, name, host, path):
    kinds = {r["kind"]: r["time_us"].ns for r in path["path_summary"]}
    critical = 0
    for row in host["copies"]:
        checks.true(f"{name}: critical copies",
                    0 <= row["critical_us"].ns <= row["time_us"].ns)
        critical += row["critical_us"].ns
    # A call may feed on a copy beyond its end: that is on the path, too.
    checks.true(f"{name}: not more than the path has",
                critical <= kinds.get("copy", 0))
    for row in host["kernel_sequences"]:
        checks.true(f"{name}: sequence on the path",
                    0 <= row["on_path_us"].ns <= row["kernel_time_us"].ns)


def check_layers(checks, name, host, trace):
    """The layer of work in every table is that of SQL."""
    layer = {r["uid"]: f"{r['layer_stack']} {r['layer']}" for r in rows_of(
        trace, "SELECT uid, layer, layer_stack FROM kernel "
        "WHERE layer IS NOT NULL")}
    for row in host["launch_events"]:
        checks.equal(f"{name}: layer of a launch", row["layer_name"],
                     layer.get(row["device_uid"]))
    for row in host["comm_events"]:
        checks.equal(f"{name}: layer of a collective", row["layer_name"],
                     layer.get(row["uid"]))
    for row in host["launch_runs"]:
        checks.equal(f"{name}: layer of a run", row["layer_name"],
                     layer.get(row["first_uid"]))
    return layer


def check_path(checks, name, host, path, layer):
    steps = {r["step"] for r in host["launch_events"]} | {None}
    for row in path["path_segments"]:
        what = f"{name}: segment at {row['start_us']}"
        checks.true(f"{what}: thread or stream",
                    row["thread"] is None or row["stream"] is None)
        if row["kind"] in WORK:
            checks.true(f"{what}: work has a stream",
                        row["stream"] is not None)
            checks.equal(f"{what}: layer", row["layer_name"],
                         layer.get(row["uid"]))
        if row["kind"] in ("host", "host_gap", "sync"):
            checks.true(f"{what}: the host has a thread",
                        row["thread"] is not None and row["layer_name"] is None)
            checks.equal(f"{what}: track", row["track"], row["thread"])
        elif row["step"] is not None:
            checks.true(f"{what}: step", row["step"] in steps)
    module = {}
    for row in host["launch_events"]:
        module[row["device_uid"]] = (row["op"], row["module"])
    for row in path["path_segments"]:
        if row["kind"] in WORK and row["uid"] in module:
            checks.equal(f"{name}: op and module of work {row['uid']}",
                         (row["op"], row["module"]), module[row["uid"]])
    owners = {(r["kind"], r["name"]): r for r in path["path_owners"]}
    seen = set()
    for row in path["path_segments"]:
        key = row["kind"], row["name"] or "-"
        if key in owners and key not in seen:  # its first segment
            seen.add(key)
            checks.equal(f"{name}: owner {key}",
                         (owners[key]["op"], owners[key]["module"]),
                         (row["op"], row["module"]))


def check_edges(checks, name, host, path):
    call = {r["device_uid"]: r["call_uid"] for r in host["launch_events"]}
    for row in path["path_edges"]:
        what = f"{name}: {row['kind']} {row['from_uid']} to {row['to_uid']}"
        checks.true(f"{what}: sides", all(
            row[side] in ("start", "end", "inside", None)
            for side in ("from_side", "to_side")))
        if row["kind"] == "launch":
            checks.equal(f"{what}: begins at its work", row["to_side"],
                         "start")
            checks.true(f"{what}: comes from its call",
                        row["from_side"] in ("start", "inside") and
                        (row["from_uid"] == call.get(row["to_uid"])))
        elif row["kind"] == "sync":
            checks.equal(f"{what}: from the end of work to that of the call",
                         (row["from_side"], row["to_side"]), ("end", "end"))
        elif row["kind"] == "stream_order":
            checks.equal(f"{what}: between two works",
                         (row["from_side"], row["to_side"]),
                         ("end", "start"))


def check(checks, trace, label):
    host, path = tables("host", trace), tables("path", trace)
    if "path_summary" not in path:
        return
    check_comm(checks, label, host, path)
    check_overlapped(checks, label, host, trace)
    check_evidence(checks, label, host, path, trace)
    check_steps(checks, label, path, trace)
    check_copies(checks, label, host, path)
    layer = check_layers(checks, label, host, trace)
    check_path(checks, label, host, path, layer)
    check_edges(checks, label, host, path)
    for command, tables_of in (("host", host), ("path", path)):
        checks.equal(f"{label}: {command}, one thread",
                     tables(command, trace, "--threads", "1"), tables_of)


def check_ranks(checks, files, label):
    """With the other ranks, waits and transfers are those of lamina ranks."""
    joined = json.loads(lamina("ranks", *files, "--format", "json").stdout,
                        parse_float=Exact)["tables"]
    transfer = {r["id"]: r["transfer_us"] for r in joined["collectives"]}
    for number, file in enumerate(files):
        wanted = sorted(
            (r["dur_us"].ns, r["wait_us"].ns, transfer[r["id"]].ns)
            for r in joined["collective_waits"]
            if r["rank"] == number and r["wait_us"] is not None)
        host = tables("host", file, "--ranks", *files)
        found = sorted(
            (r["time_us"].ns, r["wait_us"].ns, r["transfer_us"].ns)
            for r in host["comm_events"] if r["wait_us"] is not None)
        checks.equal(f"{label}: waits of rank {number}", found, wanted)
        if label == "samples/ranks":  # elsewhere clocks may not be known
            checks.true(f"{label}: rank {number} has some", len(found) > 0)
        for column in ("wait_us", "transfer_us"):
            checks.equal(f"{label}: {column} of groups",
                         sum(known(host["comm_exposure"], column)),
                         sum(known(host["comm_events"], column)))
        alone = tables("host", file)
        for row, own in zip(host["comm_events"], alone["comm_events"]):
            checks.true(f"{label}: transfer and wait within the time",
                        row["wait_us"] is None or
                        (0 <= row["wait_us"].ns <= row["time_us"].ns and
                         0 < row["transfer_us"].ns <= row["time_us"].ns))
            if row["busbw_gb_per_s"] is not None:
                checks.true(f"{label}: alone the bandwidth is a lower bound",
                            float(str(own["busbw_gb_per_s"])) <=
                            float(str(row["busbw_gb_per_s"])) + 1e-9)
    lamina("host", files[0], "--ranks", files[0], status=2)
    # Of a rank that is not there nobody knows whether it came last.
    rows = tables("host", files[0], "--ranks", files[1])["comm_events"]
    checks.true(f"{label}: some ranks are not enough", all(
        row["wait_us"] is None and row["transfer_us"] is None
        for row in rows if (row["group_size"] or 0) > 2))
    with open(files[0], "rb") as pipe:
        lamina("host", "-", "--ranks", files[1], status=2, stdin=pipe)


def check_mixed(checks):
    """Collectives of one row that are not alike: what differs is of none."""
    sizes = [("Float", 1000, 4000), ("BFloat16", 1000, 4000),
             ("Float", 1000, 8000)]
    for count, dtype, size, out in ((1, "Float", 4000, 16000),
                                    (2, None, None, None),
                                    (3, None, None, None)):
        events = [{"ph": "X", "cat": "kernel", "pid": 0, "tid": 7,
                   "name": "ncclDevKernel_AllGather_RING_LL", "ts": 100 * i,
                   "dur": 50, "args": {
                       "device": 0, "stream": 7, "Collective name":
                       "_allgather_base", "dtype": kind, "Group size": 4,
                       "In msg nelems": nelems, "Out msg nelems": whole}}
                  for i, (kind, nelems, whole) in enumerate(sizes[:count])]
        with temporary() as folder:
            path = pathlib.Path(folder) / "made.json"
            path.write_text(json.dumps({"traceEvents": events}))
            rows = tables("host", path)["comm_exposure"]
        checks.equal(f"{count} unlike collectives", [
            (r["count"], r["dtype"], r["in_bytes"], r["group_size"])
            for r in rows], [(count, dtype, size, 4)])
        checks.equal(f"{count}: out", rows[0]["out_bytes"], out)


def check_resolution(checks):
    """A recording of whole microseconds is said to be one; a nanosecond in one
    event is enough to take that back, and a few events say nothing."""
    def notes(events):
        with temporary() as folder:
            path = pathlib.Path(folder) / "made.json"
            path.write_text(json.dumps({"traceEvents": events}))
            document = json.loads(
                lamina("host", path, "--format", "json").stdout)
            return any(n["id"] == "time_resolution"
                       for n in document["notes"])

    for base in (0, 1234567, 8.5):
        events = []
        for i in range(20):
            at = base + 40 * i
            events += [{"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1,
                        "name": "cudaLaunchKernel", "ts": at, "dur": 5,
                        "args": {"correlation": i + 1}},
                       {"ph": "X", "cat": "kernel", "name": "k", "pid": 0,
                        "tid": 7, "ts": at + 8, "dur": 10,
                        "args": {"device": 0, "stream": 7,
                                 "correlation": i + 1}}]
        checks.equal(f"whole microseconds from {base}", notes(events), True)
        checks.equal(f"a few from {base}", notes(events[:10]), False)
        for which, key in ((21, "dur"), (20, "ts"), (39, "ts")):
            changed = [dict(e) for e in events]
            changed[which][key] += 0.125
            checks.equal(f"a fraction in {key} of {which} from {base}",
                         notes(changed), False)


# Ops with their inputs, and what each passes to the next: None where that
# cannot be told.
BF16, FLOAT = "c10::BFloat16", "float"
CHAINS = [
    # A product, a bias, an activation.
    ([("aten::mm", [[64, 32], [32, 128]], BF16),
      ("aten::add", [[64, 128], [128]], BF16),
      ("aten::gelu", [[64, 128]], BF16)], 2 * 64 * 128 * 2),
    ([("aten::linear", [[4, 16, 32], [128, 32]], BF16),
      ("aten::silu", [[64, 128]], BF16)], 64 * 128 * 2),
    # A norm: square, mean over the last dimension, its root, the product.
    ([("aten::pow", [[8, 256]], FLOAT), ("aten::mean", [[8, 256]], FLOAT),
      ("aten::rsqrt", [[8, 1]], FLOAT),
      ("aten::mul", [[8, 256], [8, 1]], FLOAT)],
     4 * (8 * 256 + 8) + 4 * 8),
    # The second does not read what the first may have made.
    ([("aten::add", [[64, 128]], BF16), ("aten::mul", [[7, 7]], BF16)], None),
    ([("aten::add", [[64, 128]], BF16), ("aten::mul", None, BF16)], None),
    ([("aten::add", [[64, 128]], BF16), ("aten::mul", [[64, 128]], "")], None),
    # Lists of thousands, as optimizers have them, take no time.
    ([("aten::_foreach_add_", [[[8, 8]] * 3000, [[8, 8]] * 3000], "TensorList"),
      ("aten::_foreach_mul_", [[[8, 8]] * 3000], "TensorList")], None),
]


def check_passed(checks):
    """Bytes between the ops of a sequence by shapes."""
    with temporary() as folder:
        path = pathlib.Path(folder) / "made.json"
        for number, (chain, wanted) in enumerate(CHAINS):
            events, host, ident = [], 1000, 0
            for turn in range(6):
                for op, dims, kind in chain + [(f"other::op{turn}", None, "")]:
                    ident += 1
                    args = {} if dims is None else {
                        "Input Dims": dims, "Input type": [kind] * len(dims)}
                    events += [
                        {"ph": "X", "cat": "cpu_op", "name": op, "pid": 1,
                         "tid": 1, "ts": host, "dur": 28, "args": args},
                        {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1,
                         "name": "cudaLaunchKernel", "ts": host + 20, "dur": 4,
                         "args": {"correlation": ident}},
                        {"ph": "X", "cat": "kernel", "name": f"{op} kernel",
                         "pid": 0, "tid": 7, "ts": host + 28, "dur": 3,
                         "args": {"device": 0, "stream": 7,
                                  "correlation": ident}}]
                    host += 32
            path.write_text(json.dumps({"traceEvents": events}))
            rows = [r for r in tables("host", path)["kernel_sequences"]
                    if r["length"] == len(chain)]
            checks.equal(f"bytes between the ops of chain {number}",
                         [r["tensors_between_bytes"] for r in rows[:1]],
                         [wanted])


def main():
    checks = Checks()
    check_passed(checks)
    check_mixed(checks)
    check_slow_steps(checks)
    check_doubtful(checks)
    check_resolution(checks)
    check_ranks(checks, sorted((SAMPLES / "ranks").glob("rank?.json.gz")),
                "samples/ranks")
    for name in ("train_step", "moe", "serve", "ranks/rank0"):
        check(checks, SAMPLES / f"{name}.json.gz", name)
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "traces"
    for name in ("nccl-fields", "queue-length", "ddp-2ranks/rank-0", "alexnet",
                 "h100-bert-small", "vllm-prefilldecode-piecewise/replay"):
        if (folder / f"{name}.json.gz").exists():
            check(checks, folder / f"{name}.json.gz", name)
    if (folder / "ddp-2ranks").is_dir():
        check_ranks(checks, sorted((folder / "ddp-2ranks").glob("*.json.gz")),
                    "ddp-2ranks")
    if not folder.is_dir():
        print(f"left out: no reference traces in {folder}")
    checks.finish()


main()
