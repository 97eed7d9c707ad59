#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work grows as the trace does. Counted are the parts of idle time, which do not
depend on the machine: of many devices that one thread launches for, and of many
ranks in one file, each a process with a device. Both were a product of devices
and events. The parts of each device add up to its idle time all the same."""
import json
import pathlib

from common import Checks, lamina, temporary

OPS = ("aten::mm", "aten::add", "aten::mul", "aten::softmax")


def event(cat, name, pid, tid, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
            "ts": ts, "dur": dur, "args": args}


def trace(units, devices, processes, wait_every=0):
    """Units of an op with its launch and kernel; unit i is of device i %
    devices, launched by the only process or by that of the device."""
    events = []
    for i in range(units):
        at, device = 10 * i, i % devices
        pid = 1000 + (device if processes else 0)
        name = OPS[i % len(OPS)]
        events += [
            event("cpu_op", name, pid, pid, at, 9, **{"External id": i + 1}),
            event("cuda_runtime", "cudaLaunchKernel", pid, pid, at + 2, 5,
                  correlation=i + 1),
            event("kernel", f"kernel_{i % 5}", device, 7, at + 8, 5,
                  device=device, stream=7, correlation=i + 1)]
        if wait_every and i % wait_every == 0:
            events.append(event("cuda_runtime", "cudaDeviceSynchronize", pid,
                                pid, at + 9, 5, correlation=units + i + 1))
    return {"schemaVersion": 1, "traceEvents": events}


def parts(path):
    tables = json.loads(lamina(
        "host", path, "--only", "idle_parts,idle_causes,idle_gaps", "--format",
        "json").stdout)["tables"]
    return tables


def main():
    check = Checks()
    with temporary() as folder:
        path = pathlib.Path(folder) / "trace.json"
        # Of one device each gap has what the thread did in it; of many devices
        # each has the sums, and of others' processes nothing.
        shapes = {
            "devices of one thread": lambda n: trace(n, n // 10, False),
            "devices of a thread that waits":
                lambda n: trace(n, n // 10, False, 3),
            "a rank each": lambda n: trace(n, n // 10, True),
            "64 ranks": lambda n: trace(n, 64, True)}
        for what, make in shapes.items():
            counts = []
            for units in (1000, 2000, 4000):
                path.write_text(json.dumps(make(units)))
                tables = parts(path)
                rows = tables["idle_parts"]
                counts.append(len(rows))
                idle = {}
                for row in rows:
                    idle[row["device"]] = (idle.get(row["device"], 0) +
                                           row["dur_us"])
                causes = {}
                for row in tables["idle_causes"]:
                    if row["scope"] == "device":
                        causes[row["device"]] = (causes.get(row["device"], 0) +
                                                 row["time_us"])
                check.equal(f"{what}, {units}: idle time of each device",
                            {d: round(us) for d, us in idle.items()},
                            {d: round(us) for d, us in causes.items()})
            print(f"{what}: {counts} parts of idle time")
            check.true(f"{what}: {counts} parts of 1000, 2000, 4000 units",
                       counts[2] <= 2.3 * counts[1] and
                       counts[1] <= 2.3 * counts[0] and
                       counts[2] <= 40 * 4000)
    check.finish()


main()
