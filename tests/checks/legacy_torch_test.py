#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The profile of a PyTorch without Kineto, as Debian's python3-torch writes it:
calls, sums and self times of ops, and steps by the user's ranges, against a
slow walk over the raw events.

tests/recordings holds two real ones, made by `legacy_torch_test.py record
FOLDER`. Where python3-torch is installed new ones are recorded and checked
too; it is large, so the tests do not install it."""
import collections
import gzip
import json
import pathlib
import subprocess
import sys

from common import ROOT, Checks, lamina, report, temporary

PYTHON = "/usr/bin/python3"  # of Debian, which has Debian's modules
STEPS = 6
# Ranges of the user and of the optimizer, and what an op calls its inner part.
NO_OPS = {"load batch", "Optimizer.step#SGD.step",
          "Optimizer.zero_grad#SGD.zero_grad", "detach",
          *(f"step {i}" for i in range(STEPS))}


def record(folder):
    """Trains a small model twice; the second waits for each batch and reads
    the loss back in each step."""
    import time
    import torch
    for name, waits in (("debian_torch", False), ("debian_torch_loader", True)):
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                    torch.nn.Linear(512, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
        annotate = torch.autograd.profiler.record_function
        with torch.autograd.profiler.profile(record_shapes=True) as profile:
            for step in range(STEPS):
                with annotate(f"step {step}"):
                    with annotate("load batch"):
                        if waits:
                            time.sleep(0.01)
                        x = torch.randn(64, 256)
                        y = torch.randint(0, 10, (64,))
                    loss = torch.nn.functional.cross_entropy(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    if waits:
                        loss.item()
        profile.export_chrome_trace(str(folder / f"{name}.json"))


def has_legacy_torch():
    if not pathlib.Path(PYTHON).exists():
        return False
    asked = subprocess.run(
        [PYTHON, "-c", "import torch; from torch.profiler import "
         "kineto_available as k; raise SystemExit(k())"], capture_output=True)
    return asked.returncode == 0


def slow_sums(events):
    """Calls, time and self time of ops by name, in microseconds. Events are
    written when they begin, so the caller of each is the last one before it
    that has not ended. Times are whole microseconds: what ends later than its
    caller ends with it."""
    found = collections.defaultdict(lambda: [0, 0, 0])
    before = []  # name, end
    for event in events:
        name, begin = event["name"], event["ts"]
        end = begin + event["dur"]
        for caller, last in reversed(before):
            if last > begin:
                end = min(end, last)
                found[caller][2] -= end - begin
                break
        sums = found[name]
        sums[0] += 1
        sums[1] += event["dur"]
        sums[2] += end - begin
        before.append((name, end))
    return found


def check(checks, path):
    name = path.name.split(".")[0]
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    events = json.loads(data)
    truth = slow_sums([e for e in events if e["name"] not in NO_OPS])
    tables, _ = report(path, "--only", "host_ops,steps,gpu_timeline")
    ops = {row["op"]: (row["calls"], row["total_us"].ns, row["self_us"].ns)
           for row in tables["host_ops"]}
    checks.equal(f"{name}: names of ops", set(ops) - NO_OPS, set(truth))
    for op, (calls, total, own) in sorted(truth.items()):
        checks.equal(f"{name}: {op}: calls, time, self time", ops.get(op),
                     (calls, total * 1000, own * 1000))
    checks.equal(f"{name}: steps", [row["name"] for row in tables["steps"]],
                 [f"step {i}" for i in range(STEPS)])
    checks.equal(f"{name}: begin and time of steps on the host",
                 [row["host_us"].ns for row in tables["steps"]],
                 [e["dur"] * 1000 for e in events
                  if e["name"].startswith("step ")])
    checks.equal(f"{name}: no device event",
                 sum(row["time_us"].ns for row in tables["gpu_timeline"]), 0)
    text = lamina("report", path).stdout
    checks.true(f"{name}: it is said that the GPU is not in it",
                "No GPU work" in text and "most aten::" in text)


def main():
    if sys.argv[1] == "record":
        record(pathlib.Path(sys.argv[2]))
        return
    checks = Checks()
    recorded = sorted((ROOT / "tests/recordings").glob("debian_torch*"))
    checks.equal("recordings", len(recorded), 2)
    for path in recorded:
        check(checks, path)
    if has_legacy_torch():
        with temporary() as folder:
            subprocess.run([PYTHON, __file__, "record", folder], check=True)
            for path in sorted(pathlib.Path(folder).glob("*.json")):
                check(checks, path)
    checks.finish()


main()
