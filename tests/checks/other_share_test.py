#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The family "other" of every trace at hand: its share of the device time, of
kernels and of ops, is 2 % at most; what there is of it is printed."""
import os
import pathlib

from common import ROOT, SAMPLES, Checks, report

LIMIT_PERCENT = 2

SUFFIXES = (".json.gz", ".trace.gz", ".sqlite", ".sqlite.gz", ".db", ".rpd.gz",
            ".pb", ".pftrace", ".pftrace.gz", ".csv.gz")


def shares(path):
    """Per table: percent of "other", and its rows, the largest first."""
    tables, _ = report(path, "--only", "kernels,ops")
    out = {}
    for table in ("kernels", "ops"):
        rows = tables[table]
        total = sum(r["kernel_time_us"].ns for r in rows)
        other = [r for r in rows if r["family"] == "other"]
        other.sort(key=lambda r: -r["kernel_time_us"].ns)
        if total:
            out[table] = (100 * sum(r["kernel_time_us"].ns for r in other)
                          / total, other)
    return out


def main():
    checks = Checks()
    folder = pathlib.Path(
        os.environ.get("LAMINA_SHARED", ROOT.parent / "shared"))
    paths = [p for root in (SAMPLES, folder / "traces", folder / "inputs")
             for p in sorted(root.rglob("*")) if p.name.endswith(SUFFIXES)]
    for path in paths:
        try:
            found = shares(path)
        except AssertionError:  # no trace, or one that is refused
            continue
        for table, (percent, rows) in found.items():
            if percent >= LIMIT_PERCENT / 40:
                top = ", ".join(
                    f"{r['kernel'] or r.get('op')}"[:80] for r in rows[:3])
                print(f"{path.name}: {table}: {percent:.2f} % other: {top}")
            checks.true(f"{path.name}: {table}: {percent:.2f} % other",
                        percent <= LIMIT_PERCENT)
    print(f"{len(paths)} files looked at")
    checks.finish()


main()
