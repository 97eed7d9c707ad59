#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report --layout hta: that the frames are consistent on the samples, and every
cell of HTA's own frames on the reference traces."""
import csv
import json
import os
import pathlib

from common import ROOT, SAMPLES, Checks, lamina


def frames(trace, layout, *args):
    document = json.loads(lamina("report", trace, "--layout", layout,
                                 "--format", "json", *args).stdout)
    return document["tables"]


def check_sample(checks, trace):
    tables = frames(trace, "hta:exact")
    row = tables["temporal_breakdown"][0]
    parts = (row["idle_time(us)"] + row["compute_time(us)"] +
             row["non_compute_time(us)"])
    checks.true(f"{trace.name}: parts add up",
                abs(parts - row["kernel_time(us)"]) < 1e-6 * parts)
    checks.equal(f"{trace.name}: statistics",
                 [r["statistic"] for r in tables["launch_stats_describe"]],
                 ["count", "mean", "std", "min", "25%", "50%", "75%", "max"])
    if trace.name.startswith("train"):
        return  # HTA leaves out the last of its steps
    native = json.loads(lamina("report", trace, "--format", "json", "--only",
                               "gpu_timeline").stdout)["tables"]
    total = [r["time_us"] for r in native["gpu_timeline"]
             if r["device"] == "all" and r["type"] == "total_time"][0]
    checks.true(f"{trace.name}: kernel time is the window of the report",
                abs(total - row["kernel_time(us)"]) < 0.01)


def number(cell):
    if cell is None or cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def equal(table, a, b):
    a, b = number(a), number(b)
    if not (isinstance(a, float) and isinstance(b, float)):
        return a == b
    # HTA leaves the order of equal times open: queue lengths may differ.
    if table == "queue_length_summary":
        whole = 1 if a == int(a) else 1e-9
        return abs(a - b) <= whole + 0.02 * abs(a)
    return abs(a - b) <= 1e-9 + 1e-6 * abs(a)


def check_golden(checks, path, trace, exact):
    stem, table = path.name[:-len(".csv")].rsplit(".", 1)
    with path.open(newline="") as file:
        _, *expected = csv.reader(file)
    layout = "hta:exact" if exact else "hta"
    found = [list(r.values())
             for r in frames(trace, layout, "--only", table)[table]]
    label = f"{stem} {table}"
    if table == "memory_bw_summary" and [r[2] for r in expected] != \
            [str(float(r[2])) for r in found]:
        # Residues of running sums pass HTA's filter: the maximum alone counts.
        expected = [(r[0], r[1], r[-1]) for r in expected]
        found = [(r[0], r[1], r[-1]) for r in found]
    if table == "kernel_breakdown":
        expected.sort(key=lambda r: (r[6], r[0]))
        found.sort(key=lambda r: (r[6], r[0]))
    checks.equal(f"{label}: rows", len(found), len(expected))
    for a, b in zip(expected, found):
        checks.equal(f"{label}: columns of {a[:3]}", len(b), len(a))
        for x, y in zip(a, b):
            checks.true(f"{label}: {a[:3]} {x} found {y}", equal(table, x, y))


def main():
    checks = Checks()
    for name in ("serve", "train_step", "moe"):
        check_sample(checks, SAMPLES / f"{name}.json.gz")
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    goldens = folder / "goldens/hta"
    if not goldens.is_dir():
        print(f"without HTA's frames: none in {folder}")
    for path in sorted(goldens.glob("*.csv")):
        if "critical_path" in path.name:
            continue
        stem = path.name.split(".")[0]
        trace = folder / "traces" / f"{stem}.json.gz"
        if stem == "ddp-2ranks":
            trace = folder / "traces" / stem
        if stem == "event-sync":
            trace = goldens / "traces/event-sync.trace.gz"
        check_golden(checks, path, trace, ".exact." in path.name)
    checks.finish()


main()
