#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of lamina side by side: bytes, CPU time, memory.

usage: bench/programs.py A B [--repeats N] [TRACE...]

Each command runs N times (default 9) with A and B in turn, without the cache of
snapshots; the figures are the least CPU time (user and system) of each, their
ratio, and the peak memory. TRACE: reported too. Reference traces are looked
for in ../shared or $LAMINA_SHARED; without them the samples alone are measured.
"""
import argparse
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))


def commands(traces):
    train = ROOT / "samples/train_step.json.gz"
    yield "--version", ["--version"]
    yield "report, a sample", ["report", train]
    for trace in traces:
        yield f"report {pathlib.Path(trace).name}", ["report", trace, "--format",
                                                     "csv"]
    owlv2 = SHARED / "traces/h100-owlv2.json.gz"
    qwen = SHARED / "traces/h100-qwen1.5-0.5b.json.gz"
    snapshot = SHARED / "memory/cs336-medium-training-512.pickle"
    if owlv2.exists():
        yield "report owlv2", ["report", owlv2, "--format", "csv"]
        yield "query owlv2", ["query", owlv2, "SELECT count(*), sum(dur_ns) "
                              "FROM slice", "--format", "csv"]
        yield "layers qwen", ["layers", qwen, "--format", "json"]
        yield "diagnose qwen", ["diagnose", qwen, "--format", "json"]
        yield "memory cs336", ["memory", snapshot, "--format", "json"]


def run(program, arguments):
    child = subprocess.Popen([program, *map(str, arguments)],
                             stdout=subprocess.DEVNULL,
                             env=dict(os.environ, LAMINA_CACHE="off"))
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{program} {arguments}: failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs=2)
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    sizes = [os.path.getsize(p) for p in given.programs]
    print(f"{'bytes':24} {sizes[0]:>12,} {sizes[1]:>12,}  "
          f"{sizes[1] / sizes[0]:.3f}")
    for name, arguments in commands(given.traces):
        seen = {p: [] for p in given.programs}
        for turn in range(given.repeats):
            for program in given.programs[::1 if turn % 2 else -1]:
                seen[program].append(run(program, arguments))
        (a, a_size), (b, b_size) = (
            (min(r[0] for r in seen[p]), min(r[1] for r in seen[p]) / 1024)
            for p in given.programs)
        print(f"{name[:24]:24} {a:10.4f} s {b:10.4f} s  {b / a:.3f}  "
              f"{a_size:7.1f} MiB {b_size:7.1f} MiB", flush=True)


main()
