#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CTest and ends with what a reader of the log's tail must know.

usage: run_tests.py BUILD_FOLDER [CTEST_ARGUMENT...]

Behind CTest's own output: for each failed test its name, why, and the end of
its output; the names of the failed ones, of the skipped ones and of those
that left out what this machine has no data for; and as the last line "N
passed, M failed". Exit status 0 only when a test passed, none failed and CTest
had nothing to complain about.

With LAMINA_NO_SKIP=1, for machines that have everything, a skip is a failure.

Results are read from CTest's JUnit file: its log names a result in a dozen
ways ("***Failed", "Subprocess aborted***Exception: ").
"""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 60


class Results:
    def __init__(self):
        self.passed = 0
        self.skipped = []  # names
        self.partly = []  # names of those that passed without all of their data
        self.failed = []  # name, reason, output

    def add(self, case):
        """Counts one <testcase>."""
        status = case.get("status")
        skip = case.find("skipped")
        failure = case.find("failure")
        reason = next((e.get("message") for e in (failure, skip)
                       if e is not None and e.get("message")), "")
        output = case.findtext("system-out") or ""
        if status == "run" and failure is None:
            self.passed += 1
            if re.search("^left out: ", output, re.MULTILINE):
                self.partly.append(case.get("name"))
        elif ((status == "disabled" or reason.startswith("SKIP_")) and
              os.environ.get("LAMINA_NO_SKIP") != "1"):
            self.skipped.append(case.get("name"))
        else:  # also a test whose program is missing
            self.failed.append((case.get("name"), reason, output))


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
    for names, what in ((results.partly, "ran without reference data"),
                        (results.skipped, "skipped")):
        if names:
            print(f"{len(names)} {what}: {', '.join(names)}")
    print(f"{results.passed} passed, {len(results.failed)} failed", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    junit = build / "test_results.xml"
    junit.unlink(missing_ok=True)
    # Tests test parsing, and leave nothing in the cache of the user.
    os.environ["LAMINA_CACHE"] = "off"
    try:
        status = subprocess.run(
            ["ctest", "--output-on-failure", "--no-tests=error",
             # What a passed test says is kept, too: it says what it left out.
             "--test-output-size-passed", "1000000",
             "--output-junit", junit, *sys.argv[2:]], cwd=build).returncode
    except OSError as error:
        print(error)
        status = 1
    results = read_results(junit)
    show(results)
    return 1 if status or results.failed or not results.passed else 0


sys.exit(main())
