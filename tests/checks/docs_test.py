#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, docs/ and skills/ print what the pages say.

usage: docs_test.py LAMINA [--update] [PAGE...]

Every fenced block that begins with ```console holds commands after "$ " and
their output. They run one after the other in an empty folder that shows
samples/, data/ and tests/, so a command can read what an earlier one of the page
wrote. A line "..." stands for any number of lines. --update writes the real
output into the blocks that have no "..." line.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

from common import LAMINA, ROOT, Checks, temporary

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def run(command, folder):
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb",
                   "PATH": os.path.dirname(LAMINA) + ":" + os.environ["PATH"]}
    r = subprocess.run(["bash", "-c", command], cwd=folder, timeout=300,
                       env=environment, text=True, errors="replace",
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    # A cursor says which state of the input it belongs to.
    out = re.sub(r'(next: cursor )"[\w-]+"', r'\1"CURSOR"', r.stdout)
    return out if not out or out.endswith("\n") else out + "\n"


def commands(block):
    """Pairs of command and expected output."""
    pairs = []
    continued = False
    for line in block.splitlines(keepends=True):
        if continued:
            pairs[-1][0] += "\n" + line.rstrip("\n")
            continued = line.endswith("\\\n")
        elif line.startswith("$ "):
            pairs.append([line[2:].rstrip("\n"), ""])
            continued = line.endswith("\\\n")
        elif pairs:
            pairs[-1][1] += line
    return pairs


def matches(found, expected):
    """Whether the output is as expected, "..." lines standing for any."""
    pattern = "".join("(?:.*\n)*?" if line == "...\n" else re.escape(line)
                      for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, found) is not None


def check_links(checks, page, text):
    """Links to files of the project lead somewhere."""
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            checks.true(f"{page.name}: link to {target}",
                        (page.parent / target).exists())


def main():
    arguments = [a for a in sys.argv[2:] if a != "--update"]
    update = "--update" in sys.argv
    pages = [pathlib.Path(a).resolve() for a in arguments] or \
        [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "skills").rglob("*.md"))]
    checks = Checks()
    for page in pages:
        text = page.read_text()
        check_links(checks, page, text)
        with temporary() as folder:
            for name in ("samples", "data", "tests"):
                os.symlink(ROOT / name, pathlib.Path(folder) / name)

            def replaced(match):
                block = ""
                for command, expected in commands(match.group(1)):
                    found = run(command, folder)
                    same = matches(found, expected)
                    if not same and not update:
                        print("".join(difflib.unified_diff(
                            expected.splitlines(keepends=True),
                            found.splitlines(keepends=True),
                            f"{page.name}: {command}", "output")))
                    checks.true(f"{page.name}: {command}", same or update)
                    keep = "...\n" in expected.splitlines(keepends=True)
                    block += f"$ {command}\n" + (expected if keep else found)
                return f"```console\n{block}```"

            new = BLOCK.sub(replaced, text)
        if update and new != text:
            page.write_text(new)
    checks.finish()


main()
