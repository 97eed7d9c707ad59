#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, docs/ and skills/ print what the pages say.

usage: docs_test.py LAMINA [--update] [PAGE...]

Every fenced block that begins with ```console holds commands after "$ " and
their output. They run one after the other in an empty folder that shows
samples/, data/ and tests/, so a command can read what an earlier one of the page
wrote. A line "..." stands for any number of lines. --update writes the real
output into the blocks that have no "..." line. What the shell says of a command
(`bash: ...`) is never output.

A command in a row of a table (`lamina ...` with an argument) is run too, with
samples for TRACE, DIR, A and B, and must end with 0 and say something.
"""
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

from common import LAMINA, ROOT, Checks, temporary

STANDS_FOR = {"TRACE": "samples/train_step.json.gz", "DIR": "samples/ranks",
              "A": "samples/ranks/rank0.json.gz",
              "B": "samples/ranks/rank2.json.gz"}
PLACE = re.compile(r"^(TRACE|DIR|A|B)(?=$|/)")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def run(command, folder):
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb",
                   "PATH": os.path.dirname(LAMINA) + ":" + os.environ["PATH"]}
    # What a CI service says of its commit becomes tags of runs.
    for name in list(environment):
        if name.startswith(("GITHUB_", "CI_", "GIT_", "BUILD")):
            del environment[name]
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


def anchors(text):
    """What headings are called in links."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)", plain, re.M)}


def check_links(checks, page, text):
    """Links to files of the project lead somewhere."""
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        checks.true(f"{page.name}: link to {target}", file.exists())
        if anchor and file.is_file():
            checks.true(f"{page.name}: link to {target}#{anchor}",
                        anchor in anchors(file.read_text()))


def check_reading_order(checks):
    """The index leads to every page of docs/."""
    index = (ROOT / "docs/README.md").read_text()
    linked = set(re.findall(r"\]\(([^)#\s]+\.md)", index))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(ROOT / "docs"))
        checks.true(f"docs/README.md leads to {name}",
                    name == "README.md" or name in linked)


def check_rows(checks, page, text, folder):
    """Commands in tables of pages that say what TRACE is."""
    if "TRACE is a trace" not in text:
        return
    for row in re.findall(r"^\|.*", text, re.M):
        for command in re.findall(r"`(lamina [^`]+ [^`]*)`", row):
            words = [PLACE.sub(lambda m: STANDS_FOR[m.group()], word)
                     for word in shlex.split(command)]
            before = set(os.listdir(folder))
            r = subprocess.run([LAMINA, *words[1:]], cwd=folder, timeout=300,
                               capture_output=True, text=True)
            wrote = "-o" in words and words[words.index("-o") + 1] in \
                before | set(os.listdir(folder))
            checks.true(f"{page.name}: {command}: {r.stderr}",
                        r.returncode == 0 and (wrote or r.stdout.strip()))


def main():
    arguments = [a for a in sys.argv[2:] if a != "--update"]
    update = "--update" in sys.argv
    pages = [pathlib.Path(a).resolve() for a in arguments] or \
        [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
         *sorted((ROOT / "skills").rglob("*.md"))]
    checks = Checks()
    check_reading_order(checks)
    reference = subprocess.run(
        [sys.executable, ROOT / "docs/make_reference.py", LAMINA, "--check"],
        capture_output=True, text=True)
    checks.equal("docs/reference", reference.stderr, "")
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
                    keep = "...\n" in expected.splitlines(keepends=True)
                    written = update and not keep
                    same = matches(found, expected)
                    if not same and not written:
                        print("".join(difflib.unified_diff(
                            expected.splitlines(keepends=True),
                            found.splitlines(keepends=True),
                            f"{page.name}: {command}", "output")))
                    checks.true(f"{page.name}: {command}", same or written)
                    # A quote that does not close is no example.
                    checks.true(f"{page.name}: {command}: the shell fails",
                                not re.search("^bash: ", found + expected,
                                              re.M))
                    block += f"$ {command}\n" + (expected if keep else found)
                return f"```console\n{block}```"

            new = BLOCK.sub(replaced, text)
            check_rows(checks, page, text, folder)
        if update and new != text:
            page.write_text(new)
    checks.finish()


main()
