# SPDX-License-Identifier: Apache-2.0
"""The TraceLens layout with every option on: what an option adds stands beside
the sheets, and without the additions they are those of a plain report. On our
samples against the plain report, on the shared traces against the reference
reports of that tool."""
import collections
import csv
import os
import pathlib

import golden_names
from common import Checks, ROOT, SAMPLES, lamina, temporary

csv.field_size_limit(1 << 30)

OPTIONS = ["--recompute", "--device", "h100-sxm", "--micro-idle-us", "5",
           "--overlaps", "--link", "flow", "--short-kernel-us", "10"]
ADDED = ("is_recompute", "Roofline", "Pct Roofline")
OVERLAP = ("overlapping_kernel", "trunc_overlapping", "overlap_pct")


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    with open(path, newline="", encoding="utf-8") as f:
        head = next(csv.reader(f), [])
    return head, rows


def write(path, head, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.DictWriter(f, head, extrasaction="ignore",
                             lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def joined_idle(rows):
    """Idle time in one row instead of two."""
    kinds = {r["type"]: r for r in rows}
    micro, macro = kinds["micro_idle_time"], kinds["macro_idle_time"]
    for column in ("time ms", "percent"):
        if micro[column] or macro[column]:
            micro[column] = repr(float(micro[column] or 0) +
                                 float(macro[column] or 0))
    micro["type"] = "idle_time"
    return [r for r in rows if r is not macro]


def plain(folder):
    """Takes away what the options added; rows of recomputation must not be
    there, because these traces have none."""
    again = []
    for path in sorted(pathlib.Path(folder).glob("*.csv")):
        if path.stem.endswith("_kl_overlap"):
            continue
        head, rows = read(path)
        if path.stem == "gpu_timeline":
            rows = joined_idle([r for r in rows
                                if r["is_recompute"] == "False"])
        again += [path.stem for r in rows if r.get("is_recompute") == "True"]
        write(path, [c for c in head if not c.startswith(ADDED)], rows)
    return again


def check_overlaps(checks, name, folder):
    """The overlap sheets tell rows apart and lose none."""
    counts = {"operation_count", "name_count"}
    times = {"total_direct_kernel_time_sum", "Kernel Time (µs)_sum"}
    for path in sorted(pathlib.Path(folder).glob("*_kl_overlap.csv")):
        base = path.with_name(path.name.replace("_kl_overlap", ""))
        checks.true(f"{name}: {base.stem} is beside {path.stem}",
                    base.exists())
        if not base.exists():
            continue
        head, rows = read(path)
        _, whole = read(base)
        checks.true(f"{name}: {path.stem} has columns of overlaps",
                    any(c.startswith(OVERLAP) for c in head))
        for column in counts & set(head):
            checks.equal(f"{name}: {path.stem} {column}",
                         sum(int(r[column]) for r in rows),
                         sum(int(r[column]) for r in whole))
        for column in times & set(head):
            checks.equal(f"{name}: {path.stem} {column}",
                         round(sum(float(r[column]) for r in rows), 3),
                         round(sum(float(r[column]) for r in whole), 3))
        by_name = collections.Counter(r["name"] for r in whole)
        checks.equal(f"{name}: {path.stem} has the names", set(by_name),
                     {r["name"] for r in rows})


def report(inputs, layout, out, *options):
    lamina("report", *inputs, "--layout", layout, "--format", "csv",
           "-o", out, *options)


def check_sample(checks, path):
    for layout in ("tracelens", "tracelens-inference"):
        name = f"{path.name} {layout}"
        with temporary() as first, temporary() as second:
            first, second = pathlib.Path(first) / "a", pathlib.Path(second) / "b"
            # Python frames are in the tree of both.
            report([path], layout, first, "--recompute", "--link", "flow")
            report([path], layout, second, *OPTIONS)
            check_overlaps(checks, name, second)
            if any("True" == r.get("is_recompute")
                   for p in second.glob("*.csv") for r in read(p)[1]):
                continue
            plain(second)
            for p in sorted(first.glob("*.csv")):
                head, rows = read(p)
                if p.stem == "gpu_timeline":
                    rows = [r for r in rows if r["is_recompute"] == "False"]
                head = [c for c in head if c != "is_recompute"]
                other_head, other = read(second / p.name)
                checks.equal(f"{name}: {p.stem} columns", other_head, head)
                same = [[r[c] for c in head] for r in rows]
                found = [[r[c] for c in head] for r in other]
                if p.stem == "gpu_timeline":
                    same = [[r[0], round(float(r[1]), 9)] for r in same]
                    found = [[r[0], round(float(r[1]), 9)] for r in found]
                checks.equal(f"{name}: {p.stem}", found, same)


def check_goldens(checks, folder):
    for name in golden_names.ALL:
        with temporary() as out:
            out = pathlib.Path(out) / "sheets"
            report(golden_names.inputs(folder, name),
                   golden_names.layout(name), out, *OPTIONS)
            check_overlaps(checks, name, out)
            checks.equal(f"{name}: recomputed", plain(out), [])
            r = golden_names.compare(folder, name, out)
            print(name, r.stdout.splitlines()[-1])
            if r.returncode:
                print(r.stdout)
            checks.equal(name, r.returncode, 0)


def main():
    checks = Checks()
    for name in ("train_step", "serve", "moe"):
        check_sample(checks, SAMPLES / f"{name}.json.gz")
    folder = pathlib.Path(os.environ.get("LAMINA_SHARED",
                                         ROOT.parent / "shared"))
    if (folder / "goldens").is_dir():
        check_goldens(checks, folder)
    else:
        print(f"without reference reports: none in {folder}")
    checks.finish()


main()
