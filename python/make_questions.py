#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes lamina/_questions.py: a function or method for each question, with
the names, types, values and sentences that the library describes it by.

usage: make_questions.py [--check]

Needs what was built of the module (PYTHONPATH=build/release/python), but for
the file that it writes. --check: only says whether that is as it would be.
"""
import collections
import importlib.util
import keyword
import pathlib
import sys
import textwrap

FILE = pathlib.Path(__file__).parent / "lamina/_questions.py"
# What a trace answers by a method of its own.
BY_HAND = {"report", "event"}
# A question to the log of a run.
NO_DUMP = {"graph_log_diff"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Questions as methods and functions.

Made by make_questions.py from what the library says of them; not edited. Long
as it says of each parameter what it is.
"""
from __future__ import annotations

from typing import Any, Literal, Optional, Sequence, Union

from ._ask import Asked, Input, ask
from ._report import Path, Progress, Report

Text = Union[str, int]  # a number is taken as its digits
Texts = Union[Text, Sequence[Text]]
Inputs = Union[Input, Sequence[Input]]
'''


Param = collections.namedtuple(
    "Param", "name option doc type role required many choices low high "
             "default at_opening")
Question = collections.namedtuple(
    "Question", "name command title doc params of_trace writes")


def questions():
    """Those of the library, without the rest of the module."""
    library = next(file for folder in sys.path for file in
                   pathlib.Path(folder).glob("lamina/_core.*.so"))
    spec = importlib.util.spec_from_file_location("_core", library)
    core = importlib.util.module_from_spec(spec)
    return [Question(*q[:4], [Param(*p) for p in q[4]], *q[5:])
            for q in core.list_questions()]


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


def value_type(param):
    if param.role == "path":
        return "Input"
    if param.role == "output":
        return "Path"
    if param.choices:
        values = ", ".join(f'"{choice}"' for choice in param.choices)
        return f"Literal[{values}]"
    return {"flag": "bool", "int": "int", "real": "float",
            "text": "Text"}[param.type]


def annotation(param):
    one = value_type(param)
    if param.many:
        one = (one + "s" if one in ("Text", "Input") else
               f"Union[{one}, Sequence[{one}]]")
    if param.type == "flag":
        return f"{one} = False"
    if param.required:
        return one
    if param.many:
        return f"{one} = ()"
    if param.default:
        return (f'{one} = "{param.default}"' if param.type == "text"
                else f"{one} = {param.default}")
    return f"Optional[{one}] = None"


def wrapped(text, indent, first=""):
    return textwrap.wrap(text, 79 - indent, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False,
                         initial_indent=first)


def packed(start, items, end):
    """A call or a head: items in lines below each other, none of them cut that
    fits a line."""
    pad = " " * len(start)
    lines, line = [], start
    for i, item in enumerate(items):
        item += end if i + 1 == len(items) else ","
        for word in ([item] if len(pad) + len(item) <= 79 else
                     item.split(" ")):
            if len(line) + 1 + len(word) > 79 and line not in (start, pad):
                lines.append(line)
                line = pad
            line += ("" if line in (start, pad) else " ") + word
    return "\n".join([*lines, line])


def doc_lines(question, params):
    end = "" if question.title.endswith("?") else "."
    yield from textwrap.wrap('"""' + question.title + end, 71)
    yield ""
    yield from textwrap.wrap(question.doc, 71)
    yield ""
    for param in params:
        text = f"{python_name(param.name)}: {param.doc}"
        if param.low is not None and param.high < 1e9:
            text += f" (from {param.low:g} to {param.high:g})"
        yield from wrapped(text, 8)
    yield '"""'


def function(question, name, params, fixed, indent, extra):
    """The text of one. `fixed` are the arguments that it gives by itself,
    `extra` the keywords that it has besides and hands on."""
    pad = " " * indent
    required = [p for p in params if p.required]
    optional = [p for p in params if not p.required]
    head = ["self"] if indent else []
    head += [f"{python_name(p.name)}: {annotation(p)}" for p in required]
    head += ["*"]
    head += [f"{python_name(p.name)}: {annotation(p)}" for p in optional]
    head += [f"{n}: {kind}" for n, kind in extra]
    out = packed(f"{pad}def {name}(", head, ") -> Report:")
    lines = [pad + "    " + line if line else ""
             for line in doc_lines(question, required + optional)]
    given = [f'"{question.name}"', *fixed]
    given += ["allow_write=True"] if question.writes else []
    given += [f"{n}={n}" for n, _ in extra]
    given += [f"{python_name(p.name)}={python_name(p.name)}" for p in params]
    call = f"{pad}    return {'self.' if indent and not fixed else ''}ask("
    out += "\n" + "\n".join(lines) + "\n"
    return out + packed(call, given, ")") + "\n"


PROGRESS = ("progress", "Optional[Progress] = None")
FREE = [("threads", "int = 0"), ("rules", "Optional[Path] = None"), PROGRESS]


def text():
    of_trace, of_dump, free = [], [], []
    for q in questions():
        names = {p.name for p in q.params}
        if q.of_trace and q.name not in BY_HAND:
            params = [p for p in q.params
                      if p.name != "trace" and not p.at_opening]
            of_trace.append(function(q, q.name, params, [], 4, [PROGRESS]))
        if q.command.startswith("graph ") and not q.writes and \
                q.name not in NO_DUMP:
            own = "dump" if "dump" in names else q.params[0].name
            params = [p for p in q.params if p.name != own]
            of_dump.append(function(q, q.name[len("graph_"):], params,
                                    [f"{own}=self.path"], 4, FREE))
        elif not q.of_trace and not (q.writes and "dump" in names):
            free.append(function(q, q.name, q.params, [], 0, FREE))
    return "\n".join([
        HEAD,
        """
class TraceQuestions(Asked):
    \"\"\"Questions to a trace.\"\"\"

    def ask(self, question: str, *, allow_write: bool = False,
            progress: Optional[Progress] = None, **params: Any) -> Report:
        raise NotImplementedError
""", *of_trace, """
class DumpQuestions:
    \"\"\"Questions to graph dumps.\"\"\"

    path: str
""", *of_dump, "\n" + "\n\n".join(free)])


def main():
    made = text()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made)
    elif FILE.read_text() != made:
        sys.exit("python/lamina/_questions.py is not what make_questions.py "
                 "writes: run it")


if __name__ == "__main__":
    main()
