#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends a CTest log with one line that a machine can read.

usage: count_tests.py LOG

Counts the "Test #N: NAME ... RESULT" lines of CTest and prints
"N passed, M failed" as the last line, behind a line with the number of skipped
tests when there are any. Exit status 1 when a test failed or none ran.
"""
import re
import sys

LINE = re.compile(r"^\s*\d+/\d+ Test +#\d+: .*\.\.\s*(?:\*{3})?"
                  r"(Passed|Failed|Timeout|Not Run|Skipped|Exception)", re.M)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8", errors="replace") as f:
        results = [m.group(1) for m in LINE.finditer(f.read())]
    passed = results.count("Passed")
    skipped = results.count("Skipped")
    failed = len(results) - passed - skipped
    if skipped:
        print(f"{skipped} skipped; ctest says why")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
