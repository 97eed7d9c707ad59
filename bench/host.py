#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory that idle causes, launches and the critical path take beyond
loading.

usage: bench/run host [--events N] [--repeats N] [--keep FILE] [--threads N]

A trace of N events (default 10,000,000): two threads of ops with their calls,
kernels on two streams that copy and wait, a sync every few thousand launches.
All figures are medians of --repeats (default 3) runs, by the stages of
--timing:

  causes and launches  the model of host and device, idle time by cause, and the
                       tables of launches and queues
  path                 that model, the graph, the chain and the verdict of every
                       step
  what-if              one scenario that moves some 100,000 nodes
  memory               peak of lamina path above that of a run that only reads the
                       trace, per node of the graph
  report               a report with causes and verdicts over one without

CPU time is that of the whole run less that of one that reads the trace and
links it: on a machine that does other work, too, it says more.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAMINA = pathlib.Path(os.environ.get(
    "LAMINA", ROOT / "build" / os.environ.get("LAMINA_PRESET", "release") /
    "lamina"))

OP = ('{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":%d,"ts":%d.%03d,'
      '"dur":%d.%03d,"args":{}}')
CALL = ('{"ph":"X","cat":"cuda_runtime","name":"%s","pid":1,"tid":%d,'
        '"ts":%d.%03d,"dur":%d.%03d,"args":{"correlation":%d}}')
WORK = ('{"ph":"X","cat":"%s","name":"%s","pid":0,"tid":%d,"ts":%d.%03d,'
        '"dur":%d.%03d,"args":{"device":0,"stream":%d,"correlation":%d%s}}')
OPS = ("aten::linear", "aten::layer_norm", "aten::gelu", "aten::matmul",
       "aten::softmax", "aten::add")
INNER = ("aten::addmm", "aten::native_layer_norm", "aten::gelu", "aten::mm",
         "aten::_softmax", "aten::add_")


def parts(ns):
    return divmod(ns, 1000)


def make(path, count):
    """A loop of layers on one thread, their gradients on another."""
    rng = random.Random(1)
    written = 0
    host = 1_000_000
    free = [host, host]  # ends of the streams
    number = 0
    with open(path, "w", buffering=1 << 22) as out:
        out.write('{"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3",'
                  '"totalGlobalMem":85000000000,"numSms":132,'
                  '"computeMajor":9,"computeMinor":0}],"traceEvents":[\n')
        lines = []
        while written < count:
            # Of 5,000 launches a step; the second half on the other thread.
            step = host
            for i in range(5000):
                tid = 10 if i < 2500 else 11
                kind = i % 6
                number += 1
                before = 1500 + rng.randrange(3000)
                call = host + before
                took = 2500 + rng.randrange(1500)
                end = call + took + 800
                stream = 1 if i % 50 == 49 else 0
                lines.append(OP % (OPS[kind], tid, *parts(host),
                                   *parts(end - host)))
                lines.append(OP % (INNER[kind], tid, *parts(host + 400),
                                   *parts(end - 300 - host - 400)))
                copy = i % 100 == 99
                lines.append(CALL % (
                    "cudaMemcpyAsync" if copy else "cudaLaunchKernel", tid,
                    *parts(call), *parts(took), number))
                # One wide layer in four takes longer than its launches.
                length = (2000 + rng.randrange(3000) if (i // 500) % 4
                          else 6000 + rng.randrange(9000))
                start = max(call + 5500 + rng.randrange(800),
                            free[stream] + 900 + rng.randrange(400))
                free[stream] = start + length
                lines.append(WORK % (
                    "gpu_memcpy" if copy else "kernel",
                    "Memcpy DtoH (Device -> Pinned)" if copy
                    else f"gemm_{kind}_{i % 500 // 25}", 7 + stream,
                    *parts(start), *parts(length), 7 + stream, number,
                    ',"bytes":65536' if copy else ""))
                host = end + 300 + rng.randrange(500)
                written += 4
            number += 1
            done = max(host + 2000, max(free) + 500)
            lines.append(CALL % ("cudaDeviceSynchronize", 10, *parts(host),
                                 *parts(done - host), number))
            host = done + 20000
            lines.append('{"ph":"X","cat":"user_annotation","name":'
                         '"ProfilerStep#%d","pid":1,"tid":10,"ts":%d.%03d,'
                         '"dur":%d.%03d,"args":{}}' % (
                             written // 20000, *parts(step - 100),
                             *parts(host - step - 100)))
            written += 2
            out.write(",\n".join(lines))
            out.write(",\n" if written < count else "\n]}\n")
            lines.clear()
    return written


class Run:
    """One run: seconds by stage, peak bytes, what it printed."""

    def __init__(self, *args, status=0):
        with tempfile.TemporaryFile("w+") as said:
            start = time.perf_counter()
            child = subprocess.Popen([LAMINA, *args, "--timing"], text=True,
                                     stdout=subprocess.PIPE, stderr=said)
            self.out = child.stdout.read()
            _, ended, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(ended)
            self.wall = time.perf_counter() - start
            said.seek(0)
            text = said.read()
        if child.returncode != status:
            sys.exit(f"failed: {args}\n{text}")
        self.cpu = usage.ru_utime + usage.ru_stime
        self.peak = usage.ru_maxrss * 1024
        self.stages = {name: float(s) for name, s in
                       re.findall(r"^(\S.*?)\s+([\d.]+) s$", text, re.M)}

    def stage(self, *names):
        return sum(self.stages.get(name, 0) for name in names)


# What stands on each other, each timed by itself.
PATH = ("host model", "path graph", "path")


def median(values):
    return statistics.median(values)


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    ap.add_argument("--events", type=int, default=10_000_000)
    ap.add_argument("--repeats", type=int, default=3)
    ap.add_argument("--keep", help="the trace: made unless it is there")
    ap.add_argument("--threads",
                    default=str(len(os.sched_getaffinity(0))))
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="lamina_bench") as folder:
        path = pathlib.Path(args.keep or pathlib.Path(folder) / "host.json")
        if not path.exists():
            make(path, args.events)

        def runs(*what, status=0):
            return [Run(what[0], path, "--threads", args.threads, *what[1:],
                        status=status) for _ in range(args.repeats)]

        # A step that is not there: read and linked, then wrong usage.
        load = runs("host", "--step", "none", status=2)
        host = runs("host", "--only", "idle_causes,idle_gaps,launch_apis,"
                    "launch_verdicts,queue_depth,launch_runs")
        way = runs("path", "--only", "verdicts,path_summary,path_owners")
        graph = Run("path", path, "--only", "path_graph", "--format", "json")
        # Three steps before the end: what they move is theirs and what follows.
        rows = {r["what"]: r["count"] for r in
                json.loads(graph.out)["tables"]["path_graph"]}
        step = rows["edges: call"] - 2  # each step ends with a wait
        what = runs("path", "--only", "what_if", "--what-if",
                    f"graph:step={step}", "--format", "json")
        report = runs("report", "--format", "csv", "-o", folder)
    touched = json.loads(what[0].out)["tables"]["what_if"][0]["touched_nodes"]
    read = median(r.wall for r in load)
    cpu = median(r.cpu for r in load)
    model = [r.stage("host model", "idle causes", "host tables") for r in host]
    print(f"loading                 {read:7.2f} s")
    print(f"causes and launches     {median(model):7.2f} s, "
          f"{median(r.cpu for r in host) - cpu:.2f} s of CPU time")
    print("path                    "
          f"{median(r.stage(*PATH) for r in way):7.2f} s, "
          f"{median(r.cpu for r in way) - cpu:.2f} s of CPU time")
    what_if = 1000 * median(r.stage("what-if") for r in what)
    print(f"what-if                 {what_if:7.0f} ms, {touched:,} nodes touched")
    nodes = rows["nodes"]
    more = median(r.peak for r in way) - median(r.peak for r in load)
    print(f"memory of the path      {more / nodes:7.1f} bytes for each of "
          f"{nodes:,} nodes, beyond a run without it")
    causes = [r.wall / (r.wall - r.stage("causes", "verdicts"))
              for r in report]
    print(f"report with causes      {median(causes):7.2f} x one without")


if __name__ == "__main__":
    main()
