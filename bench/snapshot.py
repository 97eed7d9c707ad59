#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keeping a trace costs, and what opening it again saves.

usage: bench/run snapshot [--trace FILE] [--megabytes N] [--repeats N]
                          [--keep DIR]

Without --trace a trace of --megabytes (default 1000) is made by repeating the
reference traces (make_big_trace.py in $LAMINA_SHARED/tools). The full report as
CSV is made --repeats times (default 5) in three ways, one after the other in
each round, so that what else the machine does falls on all of them:

  off    without a cache
  first  with an empty one: the trace is parsed and kept
  again  with that one: the trace is mapped

"read", "keep" and "map" are stages of --timing. Ratios are those of medians;
every output is compared with the first one. The cache is a temporary folder.
"""
import argparse
import filecmp
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from loading import LAMINA, SHARED, make, warm


def run(trace, out, cache):
    """Wall time and the times of stages."""
    environment = dict(os.environ, LAMINA_CACHE="on" if cache else "off",
                       LAMINA_CACHE_LIMIT="100G")
    if cache:
        environment["LAMINA_CACHE_DIR"] = str(cache)
    start = time.perf_counter()
    result = subprocess.run(
        [LAMINA, "report", trace, "--format", "csv", "-o", out, "--timing"],
        env=environment, check=True, text=True, stderr=subprocess.PIPE)
    stages = {name: float(seconds) for name, seconds in re.findall(
        r"^(\S+) +([0-9.]+) s$", result.stderr, re.M)}
    stages["wall"] = time.perf_counter() - start
    return stages


def same(a, b):
    names = sorted(p.name for p in a.iterdir())
    return (names == sorted(p.name for p in b.iterdir()) and
            not any(filecmp.cmpfiles(a, b, names, shallow=False)[1:]))


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    ap.add_argument("--trace")
    ap.add_argument("--megabytes", type=int, default=1000)
    ap.add_argument("--repeats", type=int, default=5)
    ap.add_argument("--keep")
    args = ap.parse_args()
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="lamina_bench"))
    folder.mkdir(parents=True, exist_ok=True)
    trace = pathlib.Path(args.trace or folder / "big.json")
    if not trace.exists():
        make(trace, args.megabytes,
             [SHARED / "traces" / f"{n}.json.gz" for n in
              ("h100-owlv2", "sglang-qwen3-8b-prefilldecode")])
    # What was changed just now is not kept.
    time.sleep(max(0, trace.stat().st_ctime + 4 - time.time()))
    warm(trace)
    cache = folder / "cache"
    runs = {"off": [], "first": [], "again": []}
    equal = True
    for _ in range(args.repeats):
        shutil.rmtree(cache, ignore_errors=True)
        for name, of in runs.items():
            of.append(run(trace, folder / name,
                          None if name == "off" else cache))
            equal &= same(folder / "off", folder / name)
    kept = sum(p.stat().st_size for p in cache.iterdir())
    size = trace.stat().st_size

    def median(way, stage):
        if any(stage not in r for r in runs[way]):
            sys.exit(f"no stage {stage}: is the trace too small to be kept?")
        return statistics.median(r[stage] for r in runs[way])

    read, mapped = median("off", "read"), median("again", "map")
    off, first, again = (median(way, "wall") for way in runs)
    print(f"trace {size / 1e6:,.0f} MB, snapshot {kept / 1e6:,.0f} MB: "
          f"{kept / size:.3f} of it")
    print(f"read  {read * 1e3:7.0f} ms")
    print(f"map   {mapped * 1e3:7.0f} ms   1/{read / mapped:.0f} of read")
    print(f"keep  {median('first', 'keep') * 1e3:7.0f} ms")
    print(f"report without a cache {off:6.2f} s")
    print(f"  that keeps the trace {first:6.2f} s   {first / off:.2f} x")
    print(f"  of the kept trace    {again:6.2f} s   {again / off:.2f} x")
    print("outputs are equal" if equal else "OUTPUTS DIFFER")
    if not args.keep:
        shutil.rmtree(folder)
    return not equal


if __name__ == "__main__":
    sys.exit(main())
