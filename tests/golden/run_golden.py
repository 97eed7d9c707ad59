#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one golden test: a page with the reason, the input, the command and
the expected output.

usage: run_golden.py LAMINA FILE.test [--update]

    # why: one or two sentences
    # run: lamina report in.json --only steps --format csv
    # status: 0
    --- in.json
    {"traceEvents": [...]}
    --- out
    step,kernels
    --- err
    --- file tables/ops.csv

`run` may occur several times; the commands run in an empty folder that holds
the input sections as files, with `lamina` being the program under test, and
their output is joined. `status` is that of the last one (default 0). A section
`out` is standard output, `err` standard error (expected empty when the section
is missing), `file NAME` a file the command wrote. Input names may carry
`(gzip)`, `(escaped)` (\\xNN and \\n are decoded) or `(no newline)`, in any
combination, `(xplane)` or `(perfetto)`: the text of a message of tests/proto,
encoded, or `(sql)`: the file is the SQLite database that the statements
make. --update writes what came out into the file.
"""
import gzip
import os
import pathlib
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

# Messages of tests/proto by the flag of an input.
PROTOS = {"xplane": "lamina.xplane.XSpace",
          "perfetto": "lamina.perfetto.Trace"}
# Tests look at parsing, and leave nothing in the cache of the user.
os.environ["LAMINA_CACHE"] = "off"
HEAD = re.compile(r"^--- (.*)$", re.M)


def parse(text):
    parts = HEAD.split(text)
    fields = {"run": [], "status": "0", "why": ""}
    for line in parts[0].splitlines():
        m = re.match(r"# (why|run|status): (.*)", line)
        if m and m.group(1) == "run":
            fields["run"].append(m.group(2))
        elif m:
            fields[m.group(1)] = m.group(2)
    sections = []
    for name, body in zip(parts[1::2], parts[2::2]):
        sections.append((name.strip(), body.removeprefix("\n")))
    return parts[0], fields, sections


def encode(message, text):
    """The text form of a message as protocol buffers."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "proto"
    return subprocess.run(
        ["protoc", "--encode", PROTOS[message], f"-I{folder}",
         f"{message}.proto"], input=text, capture_output=True,
        check=True).stdout


def write_input(folder, name, body):
    name, *flags = re.split(r"\s*\(|\)\s*\(?", name.rstrip(")"))
    data = body
    if "no newline" in flags:
        data = data.removesuffix("\n")
    raw = data.encode()
    if "escaped" in flags:
        raw = raw.decode("latin-1").encode().decode("unicode_escape") \
                 .encode("latin-1")
    for message in PROTOS:
        if message in flags:
            raw = encode(message, raw)
    if "gzip" in flags:
        raw = gzip.compress(raw, mtime=0)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if "sql" in flags:
        connection = sqlite3.connect(path)
        connection.executescript(raw.decode())
        connection.commit()
        connection.close()
    else:
        path.write_bytes(raw)


def main():
    args = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv
    if len(args) != 2:
        sys.exit(__doc__)
    lamina = os.path.abspath(args[0])
    page = pathlib.Path(args[1])
    head, fields, sections = parse(page.read_text())
    if not fields["why"] or not fields["run"]:
        sys.exit(f"{page}: a page needs '# why:' and '# run:'")
    expected = {n: b for n, b in sections
                if n in ("out", "err") or n.startswith("file ")}
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        for name, body in sections:
            if name not in expected:
                write_input(folder, name, body)
        out, err, status = "", "", 0
        for command in fields["run"]:
            words = shlex.split(command)
            if words[0] == "lamina":
                words[0] = lamina
            r = subprocess.run(words, cwd=folder, capture_output=True,
                               timeout=120,
                               env={**os.environ, "COLUMNS": "100",
                                    "TERM": "dumb"})
            out += r.stdout.decode(errors="replace")
            err += r.stderr.decode(errors="replace")
            status = r.returncode
        actual = {"out": out, "err": err}
        for name in expected:
            if name.startswith("file "):
                path = folder / name[5:]
                actual[name] = (path.read_text() if path.exists()
                                else "(the file was not written)\n")
    if update:
        text = head
        for name, body in sections:
            text += f"--- {name}\n" + actual.get(name, body)
        for name in ("out", "err"):
            if name not in expected and actual[name]:
                text += f"--- {name}\n" + actual[name]
        page.write_text(text)
        return 0
    failed = False
    for name in sorted(set(expected) | {"out", "err"}):
        want, got = expected.get(name, ""), actual[name]
        if want == got:
            continue
        failed = True
        import difflib
        print(f"{page}: {name} differs (- expected, + found)")
        sys.stdout.writelines(
            line if line.endswith("\n") else line + "\n"
            for line in difflib.unified_diff(want.splitlines(True),
                                             got.splitlines(True), n=1))
    if status != int(fields["status"]):
        failed = True
        print(f"{page}: exit status {status}, expected {fields['status']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
