#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lamina report --only NAME: every table that a full report names can be had alone,
and is the same as beside the others."""
import re

from common import SAMPLES, Checks, lamina, report


def main():
    checks = Checks()
    for path in (SAMPLES / "train_step.json.gz", SAMPLES / "serve.json.gz",
                 SAMPLES / "ranks/rank0.json.gz", SAMPLES / "jax.xplane.pb"):
        tables, _ = report(path)
        screen = lamina("report", path, "--full").stdout
        named = re.search(r"--only\s+NAME\s+\((.*?)\)", screen, re.S)
        checks.equal(f"{path.name}: tables of the full report",
                     re.split(r",\s+", named.group(1)), list(tables))
        for name, rows in tables.items():
            alone, _ = report(path, "--only", name)
            checks.equal(f"{path.name}: {name} alone", alone, {name: rows})
    checks.finish()


main()
