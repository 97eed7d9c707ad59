#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CTest and ends with what a reader of the log's tail must know.

usage: run_tests.py BUILD_FOLDER [CTEST_ARGUMENT...]

Behind CTest's own output: for each failed test its name, why, and the end of
its output; how many were skipped; the names of the failed ones; and as the
last line "N passed, M failed". Exit status 0 only when a test passed, none
failed and CTest had nothing to complain about.

Results are read from CTest's JUnit file: its log names a result in a dozen
ways ("***Failed", "Subprocess aborted***Exception: ").
"""
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 60


class Results:
    def __init__(self):
        self.passed = 0
        self.skipped = 0
        self.failed = []  # name, reason, output

    def add(self, case):
        """Counts one <testcase>."""
        status = case.get("status")
        skip = case.find("skipped")
        failure = case.find("failure")
        reason = next((e.get("message") for e in (failure, skip)
                       if e is not None and e.get("message")), "")
        if status == "run" and failure is None:
            self.passed += 1
        elif status == "disabled" or reason.startswith("SKIP_"):
            self.skipped += 1
        else:  # also a test whose program is missing
            self.failed.append((case.get("name"), reason,
                                case.findtext("system-out") or ""))


def read_results(path):
    results = Results()
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        results.failed.append(("ctest", f"left no results: {error}", ""))
        return results
    for case in cases:
        results.add(case)
    return results


def show(results):
    for name, reason, output in results.failed:
        print(f"\n--- {name} failed{': ' + reason if reason else ''}")
        lines = output.rstrip().splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"({len(lines) - SHOWN_LINES} lines before)")
        for line in lines[-SHOWN_LINES:]:
            print(line)
    if results.failed:
        print("\nfailed:")
        for name, _, _ in results.failed:
            print(f"  {name}")
    if results.skipped:
        print(f"{results.skipped} skipped; ctest says why")
    print(f"{results.passed} passed, {len(results.failed)} failed", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    junit = build / "test_results.xml"
    junit.unlink(missing_ok=True)
    try:
        status = subprocess.run(
            ["ctest", "--output-on-failure", "--no-tests=error",
             "--output-junit", junit, *sys.argv[2:]], cwd=build).returncode
    except OSError as error:
        print(error)
        status = 1
    results = read_results(junit)
    show(results)
    return 1 if status or results.failed or not results.passed else 0


sys.exit(main())
