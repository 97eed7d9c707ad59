#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What findings cost beside a report, in time and CPU time of one run of this
script.

usage: bench/findings.py LAMINA TRACE [ROUNDS]

A report with all rules, and one whose rules are all switched off by an overlay
of --rules; the least of some rounds in turn. Then the slowest rules, by their
share of `lamina diagnose --timing`.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time


def costs(command):
    """Seconds of a command, and those of processor time of all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True,
                   env={**os.environ, "LAMINA_CACHE": "off"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.perf_counter() - start,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    program, trace = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    listed = subprocess.run([program, "diagnose", "--list-rules", "--format",
                             "csv"], capture_output=True, text=True,
                            check=True).stdout
    rules = sorted(set(re.findall(r"^([a-z]+\.[a-z0-9_]+)\b", listed, re.M)))
    with tempfile.TemporaryDirectory() as folder:
        overlay = pathlib.Path(folder) / "findings"
        overlay.mkdir()
        (overlay / "none.yaml").write_text(f"disable: [{', '.join(rules)}]\n")
        report = [program, "report", trace, "--format", "json"]
        bare = [*report, "--rules", folder]
        with_rules, without = [], []
        for _ in range(rounds):
            without.append(costs(bare))
            with_rules.append(costs(report))
    print(f"{trace}: {len(rules)} rules")
    for what, i in (("time", 0), ("CPU time", 1)):
        whole, bare_s = (min(run[i] for run in runs)
                         for runs in (with_rules, without))
        ratio = whole / bare_s - 1
        limit = "" if i else f", at most 0.5{'' if ratio <= 0.5 else '  MISSED'}"
        print(f"  {what}: report {whole:.2f} s, without rules {bare_s:.2f} s: "
              f"{ratio:.2f} on top{limit}")
    timing = subprocess.run([program, "diagnose", trace, "--timing"],
                            capture_output=True, text=True).stderr
    stages = [(float(s), name) for name, s in
              re.findall(r"^  (\S+)\s+([0-9.]+) s$", timing, re.M)]
    whole = sum(s for s, _ in stages) or 1
    for seconds, name in sorted(stages, reverse=True)[:12]:
        print(f"  {name:32} {100 * seconds / whole:5.1f} % of all rules")


if __name__ == "__main__":
    main()
