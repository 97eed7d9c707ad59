#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The samples are what the generator makes, and lamina finds in them what was
simulated: op and module of every kernel, step by step."""
import collections
import gzip
import json
import pathlib
import subprocess

from common import SAMPLES, Checks, report, temporary

EAGER = ["train_step", "serve", "moe", "graphs/eager"]


def inputs(folder):
    return sorted(p.relative_to(folder) for pattern in ("*.gz", "*.pb", "*.txt")
                  for p in folder.rglob(pattern))


def content(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def truth(name):
    path = SAMPLES / f"{name}.truth.json.gz"
    columns = json.loads(gzip.decompress(path.read_bytes()))["device_work"]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def sums(rows, key):
    """Count and nanoseconds by key."""
    found = collections.defaultdict(lambda: [0, 0])
    for row, count, ns in rows:
        if count:
            entry = found[key(row)]
            entry[0] += count
            entry[1] += ns
    return dict(found)


def check_truth(checks, name):
    work = [(row, 1, row["dur_ns"]) for row in truth(name)]
    tables, _ = report(SAMPLES / f"{name}.json.gz", "--only",
                       "kernels,modules")

    def op(row):  # copies outside ops are named by their API call
        return row["op"] or "cudaMemcpyAsync"

    checks.equal(f"{name}: kernels by op",
                 sums([(r, r["count"], r["kernel_time_us"].ns)
                       for r in tables["kernels"]],
                      lambda r: (r["kernel"], r["op"])),
                 sums(work, lambda r: (r["name"], op(r))))
    expected = sums([w for w in work if w[0]["module"]],
                    lambda r: r["module"])
    found = {}
    for row in tables["modules"]:
        self_ns = row["self_kernel_time_us"].ns
        if self_ns:
            found[row["module"]] = self_ns
    checks.equal(f"{name}: self time of modules",
                 {k: v for k, v in found.items() if "(" not in k},
                 {k: v[1] for k, v in expected.items()})
    checks.true(f"{name}: modules", expected)


def check_steps(checks):
    tables, _ = report(SAMPLES / "train_step.json.gz", "--only", "steps")
    expected = sums([(row, 1, row["dur_ns"]) for row in truth("train_step")],
                    lambda r: r["step"])
    checks.equal("train_step: steps",
                 {r["step"]: [r["kernels"], r["kernel_time_us"].ns]
                  for r in tables["steps"]}, expected)


def main():
    checks = Checks()
    with temporary() as folder:
        subprocess.run([SAMPLES / "make_samples.sh", folder], check=True)
        made = inputs(pathlib.Path(folder))
        kept = inputs(SAMPLES)
        checks.equal("names of the samples", made, kept)
        for path in made:
            checks.true(f"{path}: as the generator makes it",
                        content(pathlib.Path(folder) / path)
                        == content(SAMPLES / path))
    size = sum(p.stat().st_size for p in SAMPLES.rglob("*") if p.is_file())
    checks.true("the samples are below 2 MB", size < 2_000_000)
    for name in EAGER:
        check_truth(checks, name)
    check_steps(checks)
    checks.finish()


main()
