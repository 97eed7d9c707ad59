#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of many makers against a truth that was computed without lamina:
device events, busy and idle time, steps, ops of the host. On the samples, where
nobody else has counted, the host tables are held against a slow twin."""
import collections
import decimal
import gzip
import json
import os
import pathlib

from common import ROOT, SAMPLES, Checks, lamina, report

# By the maker of the truth: formats that are read; others are documents that
# are no timeline.
READ = {"kineto", "nsys", "rocprof_csv", "rpd", "mtia", "aiu", "rpd_json",
        "ascend", "ascend_trace_view"}
ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)")


def device_truth(truth):
    busy = truth.get("busy_ns", 0)
    span = truth.get("span_ns", 0)
    return {"busy_time": busy, "total_time": span, "idle_time": span - busy}


def check_device(checks, name, tables, truth):
    rows = {r["type"]: r["time_us"].ns for r in tables["gpu_timeline"]
            if r["device"] == "all"}
    for kind, ns in device_truth(truth).items():
        checks.equal(f"{name}: {kind}", rows[kind], ns)
    if "device_time_ns" in truth:
        checks.equal(f"{name}: sum of device events",
                     sum(r["kernel_time_us"].ns for r in tables["kernels"]),
                     truth["device_time_ns"])
    if "device_events" in truth:
        checks.equal(f"{name}: device events",
                     sum(r["count"] for r in tables["kernels"]),
                     truth["device_events"])
    if "linked_device_events" in truth and truth.get("device_events"):
        linked = [r["count"] for r in tables["trace_health"]
                  if r["check"] == "linked_device_time"]
        checks.true(f"{name}: at least {truth['linked_device_events']} linked",
                    linked and linked[0] >= truth["linked_device_events"])


def check_steps(checks, name, tables, truth):
    found = {r["name"]: r["host_us"].ns for r in tables["steps"]
             if r["step"] is not None}
    checks.equal(f"{name}: steps", found, truth["steps"])
    if truth["steps"] and tables["gpu_timeline"]:
        devices = collections.Counter()
        for row in tables["steps"]:
            if row["device"]:
                devices[row["device"]] += row["idle_us"].ns
        idle = {r["device"]: r["time_us"].ns for r in tables["gpu_timeline"]
                if r["type"] == "idle_time"}
        if len(devices) == 1:
            checks.equal(f"{name}: idle of steps adds up",
                         sum(devices.values()), idle["all"])


def check_host(checks, name, tables, host):
    ops = tables["host_ops"]
    checks.equal(f"{name}: calls of ops", sum(r["calls"] for r in ops),
                 host["calls"])
    checks.equal(f"{name}: names of ops", len(ops), host["names"])
    checks.equal(f"{name}: self time", sum(r["self_us"].ns for r in ops),
                 host["self_sum_ns"])
    threads = {f"{r['process']}/{r['thread']}": r for r in tables["threads"]}
    for thread, expected in host["threads"].items():
        row = threads[thread]
        checks.equal(f"{name}: ops of thread {thread}",
                     (row["calls"], row["self_us"].ns),
                     (expected["ops"], expected["ops_union_ns"]))
    by_name = {r["op"]: r for r in ops}
    for top in host["top"]:
        row = by_name.get(top["op"])
        checks.equal(
            f"{name}: {top['op']}",
            row and (row["calls"], row["total_us"].ns, row["self_us"].ns),
            (top["calls"], top["total_ns"], top["self_ns"]))


def check_shared(checks, folder):
    for truth_file in sorted(folder.glob("*.truth.json")):
        path = truth_file.with_name(truth_file.name[:-len(".truth.json")])
        truth = json.loads(truth_file.read_text())
        name, source = path.name, truth.get("source")
        if source in READ and source != "rocprof_csv":
            tables, notes = report(path)
            if truth.get("device_events"):
                check_device(checks, name, tables, truth)
            if "steps" in truth:
                check_steps(checks, name, tables, truth)
            if truth.get("host_ops", {}).get("calls"):
                check_host(checks, name, tables, truth["host_ops"])
        else:
            found = lamina("report", path, status=None)
            checks.true(f"{name}: read, or refused with a word",
                        found.returncode in (0, 3) and
                        (found.returncode == 0 or "error" in found.stderr))


def nested(events):
    """Self time by op of one thread, event by event (quadratic)."""
    self_ns = collections.Counter()
    calls = collections.Counter()
    events = sorted(events, key=lambda e: (e[0], -(e[1] - e[0])))
    for i, (start, end, op) in enumerate(events):
        covered = []
        for s, e, _ in events[i + 1:]:
            if s >= end:
                break
            covered.append((s, min(e, end)))
        union, at = 0, start
        for s, e in covered:
            union += max(0, e - max(s, at))
            at = max(at, e)
        self_ns[op] += end - start - union
        calls[op] += 1
    return self_ns, calls


def check_samples(checks):
    for name in ("train_step", "serve", "moe"):
        path = SAMPLES / f"{name}.json.gz"
        document = json.loads(gzip.decompress(path.read_bytes()),
                              parse_float=decimal.Decimal)
        threads = collections.defaultdict(list)
        for e in document["traceEvents"]:
            if e.get("ph") != "X" or e.get("cat") != "cpu_op" or \
                    e["name"].startswith(ANNOTATIONS):
                continue
            start = round(decimal.Decimal(e["ts"]) * 1000)
            dur = round(decimal.Decimal(e["dur"]) * 1000)
            threads[e["pid"], e["tid"]].append((start, start + dur, e["name"]))
        self_ns, calls = collections.Counter(), collections.Counter()
        for events in threads.values():
            own, count = nested(events)
            self_ns.update(own)
            calls.update(count)
        tables, _ = report(path, "--only", "host_ops,threads,steps,"
                           "gpu_timeline")
        checks.equal(f"{name}: calls", {r["op"]: r["calls"]
                                        for r in tables["host_ops"]},
                     dict(calls))
        found = {r["op"]: r["self_us"].ns for r in tables["host_ops"]}
        checks.equal(f"{name}: self time", found,
                     {op: self_ns[op] for op in calls})
        checks.equal(f"{name}: threads add up",
                     sum(r["self_us"].ns for r in tables["threads"]),
                     sum(found.values()))
        idle = sum(r["idle_us"].ns for r in tables["steps"])
        expected = [r["time_us"].ns for r in tables["gpu_timeline"]
                    if r["type"] == "idle_time" and r["device"] == "all"]
        if tables["steps"]:
            checks.equal(f"{name}: idle of steps adds up", idle, expected[0])


def main():
    checks = Checks()
    check_samples(checks)
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "inputs"
    if folder.is_dir():
        check_shared(checks, folder)
    else:
        print(f"without files of other makers: none in {folder}")
    checks.finish()


main()
