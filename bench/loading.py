#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of loading and of the full report.

usage: bench/run [--trace FILE.json] [--megabytes N] [--repeats N] [--huge]
                 [--python] [--keep DIR] [--json OUT]

Without --trace a trace of --megabytes (default 1000) is made by repeating the
reference traces (make_big_trace.py in $LAMINA_SHARED/tools). Each figure is
the median of --repeats (default 5) runs, all in one session, files in the page
cache:

  iterate     simdjson merely iterating over events and fields, one thread
  report      lamina report, all tables as CSV
  report .gz  the same from the gzip file
  tenth       the same on a tenth of the trace
  python      json.load of the same file, once (with --python)
  huge        a trace above 4.3 GB (with --huge)

The floor of reading, from profiles of `report --only trace_health` (perf, warm
page cache): 22 % of its CPU time is simdjson's index (12) and the search for
record ends (10), 35 % parsing of events, times and numbers, 11 % interning,
5 % the copy from the page cache and 8 % page faults. None of the last two is to
be had: huge pages, one heap, and fewer larger blocks of the allocator change CPU
time by 3 % at most and cost up to a fifth more memory; eight digits at a time
save a sixth of parsing times, which is below 1 %, and a carry-less multiplication
in place of shifts nothing. Memory: of 86 bytes per event above what the program
itself needs, 61 are the trace as a snapshot has it, 12 tree and views, 13 chunks
that are under way. The peak of a full report is in its findings. Of 334 MB
in use there (heaptrack, 1.86 million events) 124 are the trace, 14 the tree, 47
tables that rules ask, 32 of them idle_parts from the first rule to the last, 48
their lists of rows and indexes, 24 the graph of the path, 26 the times of a
what-if, 9 causes of idle time.
"""
import argparse
import gzip
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / os.environ.get("LAMINA_PRESET", "release")
LAMINA = BUILD / "lamina"
SHARED = pathlib.Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))


def run(command):
    """Seconds and peak memory in bytes of one run."""
    start = time.perf_counter()
    # Reading is measured, not what the cache gives back (bench/run snapshot).
    child = subprocess.Popen([str(c) for c in command],
                             stdout=subprocess.DEVNULL,
                             env={**os.environ, "LAMINA_CACHE": "off"})
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"failed: {command}")
    return seconds, usage.ru_maxrss * 1024


def median(command, repeats):
    runs = [run(command) for _ in range(repeats)]
    return (statistics.median(r[0] for r in runs),
            max(r[1] for r in runs))


def make(path, megabytes, sources):
    subprocess.run([sys.executable, SHARED / "tools/make_big_trace.py", path,
                    str(megabytes), *sources], check=True,
                   stdout=subprocess.DEVNULL)


def warm(path):
    with open(path, "rb") as f:
        while f.read(1 << 24):
            pass


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    ap.add_argument("--trace")
    ap.add_argument("--megabytes", type=int, default=1000)
    ap.add_argument("--repeats", type=int, default=5)
    ap.add_argument("--huge", action="store_true")
    ap.add_argument("--python", action="store_true")
    ap.add_argument("--keep")
    ap.add_argument("--json")
    args = ap.parse_args()
    folder = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="lamina_bench"))
    folder.mkdir(parents=True, exist_ok=True)
    sources = [SHARED / "traces" / f"{n}.json.gz" for n in
               ("h100-owlv2", "sglang-qwen3-8b-prefilldecode")]
    big = pathlib.Path(args.trace or folder / "big.json")
    if not big.exists():
        make(big, args.megabytes, sources)
    packed = folder / "big.json.gz"
    if not packed.exists():
        with open(big, "rb") as a, gzip.open(packed, "wb", 6) as b:
            shutil.copyfileobj(a, b, 1 << 22)
    tenth = folder / "tenth.json"
    if not tenth.exists() and not args.trace:
        make(tenth, args.megabytes / 10, sources)
    out = folder / "csv"
    report = lambda trace: [LAMINA, "report", trace, "--format", "csv", "-o",
                            out]
    result = {"bytes": big.stat().st_size}
    events = json.loads(subprocess.run(
        [LAMINA, "report", big, "--only", "trace_health", "--format", "json"],
        capture_output=True, check=True).stdout)["tables"]["trace_health"]
    result["events"] = next(r["count"] for r in events
                            if r["check"] == "events")
    warm(big)
    result["iterate_s"], _ = median([BUILD / "bench/simdjson_iterate", big],
                                    args.repeats)
    result["report_s"], result["report_bytes"] = median(report(big),
                                                        args.repeats)
    warm(packed)
    result["gz_s"], _ = median(report(packed), args.repeats)
    if tenth.exists():
        warm(tenth)
        result["tenth_s"], result["tenth_bytes"] = median(report(tenth),
                                                          args.repeats)
    small = SHARED / "traces/h100-bert-small.json.gz"
    if small.exists():
        result["small_s"], _ = median(report(small), args.repeats * 4)
    if args.python:
        result["python_s"], result["python_bytes"] = run(
            [sys.executable, "-c",
             f"import json; json.load(open({str(big)!r}))"])
    if args.huge:
        huge = folder / "huge.json"
        make(huge, 4700, sources)
        result["huge_bytes"] = huge.stat().st_size
        result["huge_s"], result["huge_peak_bytes"] = run(report(huge))
        huge.unlink()
    gb = result["bytes"] / 1e9
    print(f"trace: {gb:.2f} GB, {result['events']:,} events")
    print(f"iterate (simdjson, 1 thread)   {result['iterate_s']:7.3f} s")
    print(f"report, all tables, CSV        {result['report_s']:7.3f} s   "
          f"{result['report_s'] / result['iterate_s']:.2f} x iterate, "
          f"{result['report_bytes'] / 1e6:.0f} MB peak, "
          f"{result['report_bytes'] / result['events']:.0f} bytes/event")
    print(f"the same from .gz              {result['gz_s']:7.3f} s   "
          f"{result['gz_s'] / result['report_s']:.2f} x plain")
    if "tenth_s" in result:
        print(f"a tenth of the trace           {result['tenth_s']:7.3f} s   "
              f"1 : {result['report_s'] / result['tenth_s']:.1f}")
    if "small_s" in result:
        print(f"h100-bert-small                {result['small_s'] * 1e3:7.1f}"
              " ms")
    if "python_s" in result:
        print(f"python json.load               {result['python_s']:7.3f} s   "
              f"{result['python_s'] / result['report_s']:.0f} x report, "
              f"{result['python_bytes'] / 1e9:.1f} GB peak")
    if "huge_s" in result:
        print(f"{result['huge_bytes'] / 1e9:.2f} GB                        "
              f"{result['huge_s']:7.3f} s   "
              f"{result['huge_peak_bytes'] / 1e6:.0f} MB peak")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1))
    if not args.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
