#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of the readers on one workload in every format.

usage: bench/run formats [--megabytes N] [--repeats N] [--keep DIR] [--json OUT]

A generated training step is repeated until its PyTorch trace has --megabytes
(default 200) and written as each profiler would write it. Printed are seconds,
events, kernels and nanoseconds per event and per kernel of the reader alone
(stages read, events and index), the best of --repeats (default 3) runs with one
thread. Formats count different things as events: flows and metadata of Chrome
JSON, begins and ends of Perfetto, rows of a database; kernels are the same in
all, so their column compares readers.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/checks"))
import profilers  # noqa: E402

BUILD = ROOT / "build" / os.environ.get("LAMINA_PRESET", "release")
LAMINA = BUILD / "lamina"
SAMPLE = ROOT / "samples/train_step.json.gz"
# Stages of a report that are the reader.
READER = ("read", "events", "index")


def write_kineto(work, path):
    """As PyTorch writes it, launch flows included."""
    def span(cat, name, pid, tid, start, end, args):
        return json.dumps({"ph": "X", "cat": cat, "name": name, "pid": pid,
                           "tid": tid, "ts": start / 1000,
                           "dur": (end - start) / 1000, "args": args})

    def flow(phase, correlation, pid, tid, at):
        return json.dumps({"ph": phase, "id": correlation, "pid": pid,
                           "tid": tid, "ts": at / 1000, "cat": "ac2g",
                           "name": "ac2g"} | ({"bp": "e"} if phase == "f"
                                              else {}))

    pid = profilers.PID
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        first = True
        def put(text):
            nonlocal first
            file.write(text if first else ",\n" + text)
            first = False
        for start, end, text, tid in work.ranges:
            name, _, rest = text.partition(", op_id = ")
            args = {"External id": int(rest.split(",")[0])} if rest else {}
            if ", sizes = " in rest:
                args["Input Dims"] = json.loads(rest.split(", sizes = ")[1])
            put(span("cpu_op" if rest else "user_annotation", name, pid,
                     work.tid[tid], start, end, args))
        for start, end, name, tid, correlation in work.calls:
            put(span("cuda_runtime", name, pid, work.tid[tid], start, end,
                     {"correlation": correlation}))
            if correlation:
                put(flow("s", correlation, pid, work.tid[tid], start))
        for start, end, cat, name, args in work.device:
            put(span(cat, name, 0, args["stream"], start, end, args))
            put(flow("f", args["correlation"], 0, args["stream"], start))
        file.write("\n]}\n")


def write_pftrace(work, path):
    subprocess.run([LAMINA, "convert", path.parent / "a.kineto.json", "-o",
                    path], check=True, stdout=subprocess.DEVNULL)


FORMATS = {"kineto": ("a.kineto.json", write_kineto),
           "pftrace": ("a.pftrace", write_pftrace),
           "xplane": ("a.xplane.pb", profilers.write_xplane),
           **{n: profilers.FORMATS[n] for n in ("nsys", "rocprof", "rocpd",
                                                "rpd", "rocprof_csv")}}


def read(path):
    """Seconds of the reader, events, peak memory."""
    run = subprocess.run([LAMINA, "report", path, "--only", "trace_health",
                          "--format", "json", "--timing", "--threads", "1"],
                         capture_output=True, text=True, check=True)
    stages = dict(re.findall(r"^(\w+) +([\d.]+) s$", run.stderr, re.M))
    health = json.loads(run.stdout)["tables"]["trace_health"]
    events = next(r["count"] for r in health if r["check"] == "events")
    return sum(float(stages.get(s, 0)) for s in READER), events


def size(path):
    files = path.iterdir() if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files)


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    ap.add_argument("--megabytes", type=float, default=200)
    ap.add_argument("--repeats", type=int, default=3)
    ap.add_argument("--keep")
    ap.add_argument("--json")
    args = ap.parse_args()
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="lamina_bench"))
    folder.mkdir(parents=True, exist_ok=True)
    one = profilers.Work(SAMPLE)
    write_kineto(one, folder / "one.json")
    copies = max(1, round(args.megabytes * 1e6 / size(folder / "one.json")))
    work = one.repeated(copies)
    kernels = sum(e[2] == "kernel" for e in work.device)
    print(f"{copies} steps, {kernels:,} kernels, {len(work.calls):,} calls, "
          f"{len(work.ranges):,} ranges")
    print(f"{'format':12} {'MB':>7} {'events':>11} {'seconds':>8} "
          f"{'ns/event':>9} {'ns/kernel':>10} {'to kineto':>10}")
    results = {}
    for name, (file, write) in FORMATS.items():
        path = folder / file
        if not path.exists():
            write(work, path)
        runs = [read(path) for _ in range(args.repeats)]
        seconds, events = min(runs)
        results[name] = {"bytes": size(path), "events": events,
                         "seconds": seconds, "kernels": kernels}
        print(f"{name:12} {size(path) / 1e6:7.1f} {events:11,} {seconds:8.3f} "
              f"{seconds / events * 1e9:9.0f} {seconds / kernels * 1e9:10.0f} "
              f"{seconds / results['kineto']['seconds']:10.2f}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
