#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Size and time of report pages, against the budgets.

usage: bench/page.py [--steps 177,1770] [--keep DIR] [LAMINA]

Makes traces of a training run with the generator (177 steps of 24 layers hold
1e5 device events, 1770 hold 1e6), writes each as CSV and as a page, opens the
page in headless Chromium and prints one line per figure with its budget.
Times are medians of five; the exit status does not depend on them.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KIB = 1024


def run(*args):
    """Wall time in seconds and peak memory in bytes of a command."""
    begin = time.monotonic()
    process = subprocess.Popen([str(a) for a in args])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{args}: status {status}")
    return time.monotonic() - begin, usage.ru_maxrss * KIB


def median(values):
    return sorted(values)[len(values) // 2]


def measure(lamina, steps, folder, rounds):
    trace = folder / f"steps{steps}.json.gz"
    if not trace.exists():
        command = ["python3", ROOT / "tools/generator/make_trace.py", "train",
                   "--steps", str(steps), "--layers", "24", "-o", trace]
        if steps > 500:
            command.append("--no-stacks")
        subprocess.run([str(a) for a in command], check=True)
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
    figures["html_peak_bytes"] = max(m for _, m in html)
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
        ("peak memory of writing",
         f"{figures['html_peak_bytes'] / 1e6:.0f} MB", ""),
        ("first screen", f"{figures['overview_ready_ms']:.0f} ms",
         "2500 ms" if million else "1000 ms"),
        ("timeline from the start", f"{figures['timeline_ready_ms']:.0f} ms",
         "2500 ms" if million else "1000 ms"),
        ("script heap with the timeline",
         f"{figures['timeline_heap_bytes'] / 1e6:.0f} MB",
         "200 MB" if million else "60 MB"),
        ("filter change", f"{figures['filter_ms']:.1f} ms", "100 ms"),
        ("pyramid", f"{figures['pyramid_ms']:.0f} ms", "400 ms"),
        ("frame, median", f"{figures['frame_p50_ms']:.1f} ms", ""),
        ("frame, 95th percentile", f"{figures['frame_p95_ms']:.1f} ms",
         "16 ms"),
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
