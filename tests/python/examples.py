# SPDX-License-Identifier: Apache-2.0
"""Runs the ```pycon blocks of a page one after the other, as one session.

usage: examples.py PAGE [--update]
"""
import codeop
import contextlib
import io
import pathlib
import re
import sys
import traceback

BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)


def run(source, names):
    """What the interactive interpreter prints for a statement."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(codeop.compile_command(source + "\n", "<page>", "single"),
                 names)
        except Exception as error:
            print("Traceback (most recent call last):\n  ...")
            print("".join(traceback.format_exception_only(error)), end="")
    return out.getvalue()


def statements(block):
    """Pairs of source lines and expected output."""
    pairs = []
    for line in block.splitlines(keepends=True):
        if line.startswith(">>> "):
            pairs.append([[line], ""])
        elif line.startswith("...") and not pairs[-1][1]:
            pairs[-1][0].append(line)
        else:
            pairs[-1][1] += line
    return pairs


def main():
    page = pathlib.Path(sys.argv[1])
    names = {"__name__": "__main__"}
    failed = 0

    def replaced(match):
        nonlocal failed
        block = ""
        for lines, expected in statements(match.group(1)):
            found = run("".join(line[4:] or "\n" for line in lines), names)
            # A blank line of the output would look like the end of it.
            if found != expected:
                failed += 1
                print(f"{''.join(lines)}expected:\n{expected}found:\n{found}")
            block += "".join(lines) + found
        return f"```pycon\n{block}```"

    text = page.read_text()
    new = BLOCK.sub(replaced, text)
    if "--update" in sys.argv:
        page.write_text(new)
        return 0
    return 1 if failed else 0


sys.exit(main())
