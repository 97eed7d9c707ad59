#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users read has none of the phrases that CONTRIBUTING lists under
Words: texts of the program, its rules, the module of Python, the page, and the
documentation."""
import pathlib
import re

from common import ROOT, Checks

# What a program prints may quote a name that holds such words.
QUOTED = re.compile(r"`[^`]*`|```.*?```", re.S)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r"^\s*(?://|\*|/\*|#).*$", re.M)


def listed():
    """The phrases of the first column of the table: ["in the mean", ...]."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("## Words"):]
    section = section[:section.index("\n## ", 3)]
    return [re.sub(r"\s+", " ", phrase).strip().lower()
            for row in re.findall(r"^\| (.*?) \|", section, re.M)
            for phrase in re.findall(r"`([^`]+)`", row)]


def strings_of_code(path):
    text = COMMENT.sub("", path.read_text(errors="replace"))
    # Texts that go on in the next line are one.
    text = re.sub(r'"\s*\n\s*(?:\+ )?"', "", text)
    return [match for match in STRING.findall(text) if " " in match]


def texts():
    """(file, text) of all that a user may read."""
    for pattern in ("src/**/*.cc", "src/**/*.h", "python/lamina/*.py",
                    "web/src/**/*.ts"):
        for path in sorted(ROOT.glob(pattern)):
            if not path.name.endswith(("_test.cc", "_testing.h")):
                for text in strings_of_code(path):
                    yield path, text
    for path in sorted((ROOT / "data" / "findings").glob("*.yaml")):
        yield path, COMMENT.sub("", path.read_text())
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
                 *sorted((ROOT / "skills").rglob("*.md"))]:
        yield path, QUOTED.sub("", path.read_text())


def find(phrases, pairs):
    """Where a phrase stands, as "FILE: ...words around it..."."""
    out = []
    for path, text in pairs:
        flat = re.sub(r"\s+", " ", text).lower()
        for phrase in phrases:
            for match in re.finditer(rf"\b{re.escape(phrase)}\b", flat):
                around = flat[max(0, match.start() - 40):match.end() + 40]
                out.append(f"{pathlib.Path(path).name}: '{phrase}' in "
                           f"...{around}...")
    return out


def main():
    check = Checks()
    phrases = listed()
    check.true("twenty phrases are listed", len(phrases) >= 20)
    check.equal("no phrase twice", len(set(phrases)), len(phrases))
    # It finds what it looks for.
    check.equal("a phrase over two lines is found", len(find(
        phrases, [("x", f"It is\n{phrases[0].upper()} so")])), 1)
    found = find(phrases, texts())
    for line in found[:40]:
        print(line)
    check.equal("no listed phrase in what users read", len(found), 0)
    check.finish()


if __name__ == "__main__":
    main()
