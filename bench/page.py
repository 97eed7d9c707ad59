#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size and time of report pages, against the budgets.

usage: bench/page.py [--steps 177,1770] [--keep DIR] [LAMINA]

Makes traces of a training run with the generator (177 steps of 24 layers hold
1e5 device events, 1770 hold 1e6), writes each as CSV and as a page, opens the
page in headless Chromium and prints one line per figure with its budget.
Times are medians; the exit status does not depend on them.
"""
import argparse
import gzip
import json
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KIB = 1024


PATTERN_STEPS = 4


def run(*args):
    """Wall time in seconds and peak memory in bytes of a command.

    Linux counts the memory of the process that starts a command into the peak
    of the command, so this script must stay small.
    """
    begin = time.monotonic()
    process = subprocess.Popen([str(a) for a in args])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{args}: status {status}")
    return time.monotonic() - begin, usage.ru_maxrss * KIB


def template(events):
    """The events as JSON with holes "@t:NS@" for times, "@d:NS:NS@" for
    lengths and where they begin, "@i:ID@" for ids; and the time and the ids
    that they span."""
    span, ids = 0, 0
    for event in events:
        start = round(event["ts"] * 1000)
        event["ts"] = f"@t:{start}@"
        span = max(span, start)
        if "dur" in event:
            length = round(event["dur"] * 1000)
            event["dur"] = f"@d:{start}:{length}@"
            span = max(span, start + length)
        args = event.get("args", {})
        for where, key in ((event, "id"), (args, "correlation"),
                           (args, "External id")):
            if key in where:
                ids = max(ids, where[key])
                where[key] = f"@i:{where[key]}@"
    return ",\n".join(json.dumps(e) for e in events), span, ids


class Warp:
    """Time that runs faster and slower at random, every GRAIN ns anew: what
    was nested stays so, and no repetition equals the one before."""
    GRAIN = 4096

    def __init__(self, span, begin, chance):
        self.starts, self.speeds = [], []
        for _ in range(span // self.GRAIN + 2):
            self.starts.append(begin)
            self.speeds.append(0.7 + 0.6 * chance.random())
            begin += int(self.speeds[-1] * self.GRAIN)
        self.end = begin

    def __call__(self, ns):
        grain, rest = divmod(ns, self.GRAIN)
        return self.starts[grain] + int(rest * self.speeds[grain])


def make_trace(steps, path):
    """A run of many steps: a few of the generator, repeated with new ids and
    other times. Never whole in memory."""
    pattern = path.with_name("pattern.json.gz")
    subprocess.run(["python3", ROOT / "tools/generator/make_trace.py", "train",
                    "--steps", str(PATTERN_STEPS), "--layers", "24",
                    "--no-stacks", "-o", pattern], check=True)
    with gzip.open(pattern) as f:
        trace = json.load(f)
    events = trace.pop("traceEvents")
    text, span, ids = template([e for e in events if e["ph"] != "M"])
    chance = random.Random(1)

    def fill(match):
        kind, *numbers = match[0][2:-2].split(":")
        number = int(numbers[0])
        if kind == "i":
            return str(number + turn * ids)
        ns = warp(number)
        if kind == "d":
            ns = warp(number + int(numbers[1])) - ns
        return f"{ns // 1000}.{ns % 1000:03d}"

    with gzip.open(path, "wt", compresslevel=1) as f:
        f.write(json.dumps(trace)[:-1] + ',"traceEvents":[\n')
        f.write(",\n".join(json.dumps(e) for e in events if e["ph"] == "M"))
        end = 0
        for turn in range(-(-steps // PATTERN_STEPS)):
            warp = Warp(span, end, chance)
            f.write(",\n" + re.sub(r'"@[tdi]:[0-9:]+@"', fill, text))
            end = warp.end
        f.write("\n]}\n")


def median(values):
    return sorted(values)[len(values) // 2]


def measure(lamina, steps, folder, rounds):
    trace = folder / f"steps{steps}.json.gz"
    part = folder / f"part{steps}.json.gz"
    if not trace.exists():
        # In a process of its own, which takes its memory with it.
        maker = multiprocessing.Process(target=make_trace,
                                        args=(steps, part))
        maker.start()
        maker.join()
        if maker.exitcode:
            raise SystemExit("the trace could not be made")
        part.rename(trace)
    page, tables = folder / f"steps{steps}.html", folder / f"steps{steps}"
    csv = [run(lamina, "report", trace, "--format", "csv", "-o", f"{tables}/")
           for _ in range(rounds)]
    html = [run(lamina, "report", trace, "--format", "html", "-o", page)
            for _ in range(rounds)]
    figures = json.loads(subprocess.run(
        ["node", str(ROOT / "bench/page.mjs"), str(lamina), str(page)],
        check=True, capture_output=True, text=True).stdout)
    figures["trace_bytes"] = trace.stat().st_size
    figures["page_bytes"] = page.stat().st_size
    figures["csv_s"], figures["html_s"] = (median([t for t, _ in r])
                                           for r in (csv, html))
    figures["csv_peak_bytes"], figures["html_peak_bytes"] = (
        median([m for _, m in r]) for r in (csv, html))
    figures["load"] = os.getloadavg()[0]
    return figures


def show(figures):
    million = figures["device_events"] > 500_000
    events = figures["device_events"]
    rows = [
        ("device events", f"{events:,}", ""),
        ("host events in the page", f"{figures['host_events']:,}", ""),
        ("page", f"{figures['page_bytes'] / 1e6:.1f} MB", "25 MB"),
        ("page per device event",
         f"{(figures['page_bytes'] - 200e3) / events:.1f} B", ""),
        ("writing, against CSV",
         f"{figures['html_s']:.1f} s / {figures['csv_s']:.1f} s = "
         f"{figures['html_s'] / figures['csv_s']:.2f}", "1.5"),
        ("peak memory of writing, against CSV",
         f"{figures['html_peak_bytes'] / 1e6:.0f} MB / "
         f"{figures['csv_peak_bytes'] / 1e6:.0f} MB", ""),
        ("first screen", f"{figures['overview_ready_ms']:.0f} ms",
         "2500 ms" if million else "1000 ms"),
        ("timeline from the start", f"{figures['timeline_ready_ms']:.0f} ms",
         "2500 ms" if million else "1000 ms"),
        ("script heap with the timeline, collected",
         f"{figures['timeline_heap_bytes'] / 1e6:.0f} MB",
         "200 MB" if million else "60 MB"),
        ("the same before a collection",
         f"{figures['timeline_full_bytes'] / 1e6:.0f} MB", ""),
        ("filter change", f"{figures['filter_ms']:.1f} ms", "100 ms"),
        ("pyramid", f"{figures['pyramid_ms']:.0f} ms", "400 ms"),
        ("frame, median", f"{figures['frame_p50_ms']:.1f} ms", ""),
        ("frame, 95th percentile", f"{figures['frame_p95_ms']:.1f} ms",
         "16 ms"),
        ("load of the machine", f"{figures['load']:.1f}", ""),
    ]
    print("| figure | measured | budget |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", default="177,1770")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("lamina", nargs="?", type=pathlib.Path,
                        default=ROOT / "build/release/lamina")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lamina_bench_") as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for steps in args.steps.split(","):
            show(measure(args.lamina.resolve(), int(steps), folder,
                         args.rounds))


if __name__ == "__main__":
    main()
