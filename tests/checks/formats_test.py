#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One workload in every format: a generated trace of PyTorch is written as each
profiler would have written it, and the tables that the format can fill are
those of the original."""
import json
import pathlib

from common import SAMPLES, Checks, lamina, temporary
from profilers import COPY, FORMATS, Work

# What is compared: tables, and the columns that every format can fill.
TABLES = {
    "kernels": ("kernel", "op", "family", "device_index", "stream", "count",
                "kernel_time_us", "min_us", "max_us", "launch_latency_us"),
    "ops": ("op", "family", "count", "kernels", "kernel_time_us", "busy_us",
            "host_us"),
    "op_shapes": ("op", "input_dims", "count", "kernel_time_us"),
    "op_categories": ("category", "kernels", "kernel_time_us"),
    "gpu_timeline": ("type", "time_us"),
    "steps": ("step", "name", "host_us", "kernel_time_us", "kernels"),
}


def facts(path):
    run = lamina("report", path, "--format", "json")
    tables = json.loads(run.stdout)["tables"]
    found = {}
    for name, columns in TABLES.items():
        rows = []
        for r in tables[name]:
            row = [r[c] for c in columns]
            if "input_dims" in columns and row[1]:
                row[1] = row[1].replace(" ", "")
            rows.append(tuple(str(v).removeprefix(COPY) for v in row))
        found[name] = sorted(rows)
    return found, {r["check"]: r for r in tables["trace_health"]}


def main():
    checks = Checks()
    for sample in ("train_step", "moe"):
        source = SAMPLES / f"{sample}.json.gz"
        work = Work(source)
        expected, _ = facts(source)
        with temporary() as out:
            for name, (file, write) in FORMATS.items():
                path = pathlib.Path(out) / file
                write(work, path)
                found, health = facts(path)
                checks.equal(f"{sample} as {name}: recognised",
                             health["format"]["value"], name)
                for table in TABLES:
                    checks.equal(f"{sample} as {name}: {table}",
                                 found[table], expected[table])
    checks.finish()


main()
