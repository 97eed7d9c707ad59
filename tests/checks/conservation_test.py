# SPDX-License-Identifier: Apache-2.0
"""Every nanosecond is accounted for, on every sample and reference trace.

Truth is computed here from the events of the file, with integers, by the
simplest code that is right.
"""
import gzip
import json
import sys
from decimal import Decimal

from common import Checks, SAMPLES, report, shared, traces

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


def nanoseconds(value):
    return int(Decimal(str(value)) * 1000)


def union(intervals):
    total, end = 0, None
    for start, stop in sorted(intervals):
        if end is None or start > end:
            total += stop - start
            end = stop
        elif stop > end:
            total += stop - end
            end = stop
    return total


def truth(path):
    with gzip.open(path, "rb") as f:
        document = json.load(f, parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    intervals = []
    for e in events:
        if e.get("ph") != "X" or e.get("cat") not in DEVICE:
            continue
        start, dur = nanoseconds(e["ts"]), nanoseconds(e.get("dur", 0))
        if dur >= 0:
            intervals.append((start, start + dur))
    return intervals


def check(checks, path):
    name = path.name if path.name != "replay.json.gz" else path.parent.name
    intervals = truth(path)
    tables, notes = report(path)
    total = sum(b - a for a, b in intervals)
    timeline = {r["type"]: r["time_us"].ns for r in tables["gpu_timeline"]
                if r["device"] == "all"}
    checks.equal(f"{name}: busy", timeline["busy_time"], union(intervals))
    window = (max(b for _, b in intervals) - min(a for a, _ in intervals)
              if intervals else 0)
    checks.equal(f"{name}: total", timeline["total_time"], window)
    checks.equal(f"{name}: busy + idle",
                 timeline["busy_time"] + timeline["idle_time"], window)
    checks.equal(f"{name}: parts of the timeline",
                 timeline["computation_time"] + timeline["exposed_comm_time"]
                 + timeline["exposed_memcpy_time"] + timeline["idle_time"],
                 window)

    def total_of(table, column="kernel_time_us"):
        return sum(r[column].ns for r in tables[table])

    def of_kind(kind):
        return sum(r["kernel_time_us"].ns for r in tables["op_categories"]
                   if r["kind"] == kind)

    checks.equal(f"{name}: categories + collectives + unlinked",
                 of_kind("category") + of_kind("collective")
                 + of_kind("unlinked"), total)
    checks.equal(f"{name}: device events",
                 sum(r["kernels"] for r in tables["op_categories"]),
                 len(intervals))
    checks.equal(f"{name}: kernels", total_of("kernels"), total)
    checks.equal(f"{name}: ops", total_of("ops"), of_kind("category"))
    checks.equal(f"{name}: op_shapes", total_of("op_shapes"),
                 of_kind("category"))
    checks.equal(f"{name}: launchers", total_of("launchers"),
                 of_kind("category"))
    linked = of_kind("category") + of_kind("collective")
    if tables["modules"]:
        checks.equal(f"{name}: self times of modules",
                     total_of("modules", "self_kernel_time_us"), linked)
    if tables["steps"]:
        checks.equal(f"{name}: steps", total_of("steps"), total)
    checks.equal(f"{name}: collectives",
                 total_of("collectives") >= of_kind("collective"), True)
    checks.true(f"{name}: a verdict",
                [n for n in notes if n["severity"] == "verdict"])


def main():
    checks = Checks()
    for path in traces(SAMPLES):
        check(checks, path)
    if "--samples" not in sys.argv:
        for path in traces(shared() / "traces"):
            check(checks, path)
    checks.finish()


main()
