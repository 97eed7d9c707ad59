#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes skills/lamina/references/ from what the program says of itself.

usage: make.py LAMINA [--check]

--check writes nothing and ends with 1 when a file is not what would be
written."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "lamina/references"
PAGES = {
    "tables.md": ("Tables of lamina query", ["tables"], """\
Every trace has these. Singular names are rows of the trace, plural ones results
of analyses, which are cheap and add up. `cost` is what the first query pays.
Columns with units and meaning: `lamina list tables --columns` (tool: `tables`
with `name`)."""),
    "sql.md": ("SQL over a trace", ["functions"], """\
`lamina query TRACE "SELECT ..."` (tool: `query`) is SQLite, read only. Times are
integers in nanoseconds (`*_ns`); NULL means not recorded. Several traces:
`lamina query a=one.json b=two.json "SELECT ... FROM a.kernel ..."`; a folder of
ranks gives every table a column `rank`. Spans: `union_ns(start_ns, dur_ns)` is
the time in which any of them runs, `sum(dur_ns)` counts overlaps twice. Tables:
[tables.md](tables.md). Functions besides those of SQLite:"""),
    "limits.md": ("What a trace can hold", ["formats"], """\
By format: what a report gets from such a file, and what no such file can tell.
Besides: a profiler trace has no counters of the hardware, so it does not say why
a kernel is slow inside; CPU work that was not recorded is "other host work";
`trace_health` says what this very trace lacks and how to record it; a dump has
no numerics and may lack keyword arguments."""),
}


def listed(lamina, what):
    """The table of `lamina list`, as Markdown without its headings."""
    text = subprocess.run([lamina, "list", what, "--format", "markdown"],
                          check=True, capture_output=True, text=True).stdout
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return "\n".join(re.sub(r" +", " ", row) for row in rows)


def main():
    lamina = sys.argv[1]
    wrong = 0
    for name, (title, lists, text) in PAGES.items():
        page = f"# {title}\n\n{text}\n\n" + \
            "\n\n".join(listed(lamina, what) for what in lists) + "\n"
        file = HERE / name
        if "--check" in sys.argv:
            if not file.exists() or file.read_text() != page:
                print(f"{file} is not what skills/make.py writes")
                wrong = 1
        else:
            file.write_text(page)
    sys.exit(wrong)


main()
