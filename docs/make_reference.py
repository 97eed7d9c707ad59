#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/ from what the program says of itself.

usage: make_reference.py LAMINA [--check]

commands.md: `lamina help` of every command; tables.md: every table of SQL with
its columns, and every function. --check writes nothing and ends with 1 when a
file is not what would be written."""
import csv
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "reference"
# Options that every command has are described once.
COMMON = ["-h, --help", "--format TEXT", "-o, --output TEXT", "--only TABLE",
          "--redact", "--top UINT", "--threads INT", "--rules TEXT",
          "--timing", "--no-cache"]


def run(lamina, *words):
    return subprocess.run([lamina, *words], check=True, capture_output=True,
                          text=True, env={**os.environ, "COLUMNS": "999"}).stdout


def cell(text):
    """Markdown shows the text as it is."""
    return re.sub(r"([|<>*\[\]])", r"\\\1", text)


def sections(text):
    """Title and lines of each section of a manual page."""
    parts = re.split(r"^([A-Z ]+)\n", text, flags=re.M)[1:]
    return dict(zip(parts[::2], (p.splitlines() for p in parts[1::2])))


def items(lines):
    """Pairs of term (7 spaces in) and text (14 in)."""
    found = []
    for line in lines:
        if line.startswith(" " * 14):
            found[-1][1] += (" " if found[-1][1] else "") + line.strip()
        elif line.strip():
            found.append([line.strip(), ""])
    return found


def command(lamina, words, common, out):
    page = sections(run(lamina, "help", *words))
    title = " ".join(["lamina", *words])
    summary = page["NAME"][0].split(" - ", 1)[1]
    out += [f"## {title}", "", cell(summary) + ("" if summary.endswith("?") else "."), "", "```",
            page["SYNOPSIS"][0].strip(), "```", ""]
    rows = items(page.get("INPUTS", []))
    for term, text in items(page.get("OPTIONS", [])):
        if term in COMMON:
            common.setdefault(term, {}).setdefault(text, []).append(title)
        else:
            rows.append([term, text])
    if rows:
        out += ["| input or option | what |", "|---|---|",
                *(f"| `{term}` | {cell(text)} |" for term, text in rows), ""]
    if "EXAMPLE" in page:
        out += ["```", *(line[7:] for line in page["EXAMPLE"] if line.strip()),
                "```", ""]
    for term, _ in items(page.get("COMMANDS", [])):
        command(lamina, term.removesuffix("(1)").split("-")[1:]
                if not words else
                [*words, term.removesuffix("(1)").removeprefix(
                    "-".join(["lamina", *words]) + "-")], common, out)


def commands_page(lamina):
    top = re.split(r"^A trace:\n", run(lamina, "--help"), flags=re.M)[1]
    names = re.findall(r"^  ([a-z][a-z-]*)  ", top, re.M)
    out, common = [], {}
    for name in names:
        command(lamina, [name], common, out)
    head = ["# Commands", "", "Made from the program by docs/make_reference.py. "
            "`lamina help COMMAND` prints the same, `man lamina-COMMAND` "
            "too.", "", "Exit status: 0 fine, 1 a check that was asked for "
            "failed, 2 wrong usage, 3 unusable input.", "",
            "Options that most commands have:", "",
            "| option | what |", "|---|---|"]
    for term in COMMON:
        # The text of most commands stands for all.
        texts = sorted(common[term].items(), key=lambda t: (-len(t[1]), t[0]))
        head.append(f"| `{term}` | {cell(texts[0][0])} |")
    return "\n".join([*head, "", *out]).rstrip() + "\n"


def tables_page(lamina):
    def rows(*words):
        return list(csv.DictReader(
            run(lamina, "list", *words, "--format", "csv").splitlines()))
    columns = {}
    for row in rows("tables", "--columns"):
        columns.setdefault(row["table_name"], []).append(row)
    tables = rows("tables")
    out = ["# Tables and functions", "", "Made from the program by "
           "docs/make_reference.py; `lamina list tables --columns` and `lamina "
           "list functions` print the same. Every table can be asked by "
           "[SQL](../sql.md) and from [Python](../python.md); those of analyses "
           "are printed by `--only NAME` of the commands that make them, with "
           "times in microseconds (`_us`).", ""]
    for table in tables:
        out += [f"## {table['name']}", "", cell(table["doc"]), "",
                "| column | type | unit | what |", "|---|---|---|---|",
                *(f"| `{c['column_name']}` | {c['type']} | {cell(c['unit'])} | "
                  f"{cell(c['doc'])} |" for c in columns[table["name"]]), ""]
    functions = rows("functions")
    names = list(functions[0])
    out += ["## Functions", "", f"| {' | '.join(names)} |",
            "|" + "---|" * len(names),
            *("| " + " | ".join(cell(row[n]) for n in names) + " |"
              for row in functions)]
    return "\n".join(out).rstrip() + "\n"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lamina = pathlib.Path(sys.argv[1]).resolve()
    check = "--check" in sys.argv
    stale = []
    for name, text in (("commands.md", commands_page(lamina)),
                       ("tables.md", tables_page(lamina))):
        path = HERE / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(f"docs/reference/{name}")
        if not check:
            HERE.mkdir(exist_ok=True)
            path.write_text(text)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not what the program says; run "
                 "docs/make_reference.py LAMINA")


main()
