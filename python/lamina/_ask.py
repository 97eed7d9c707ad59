# SPDX-License-Identifier: Apache-2.0
"""Questions, as the library describes them, and how they are asked."""
from __future__ import annotations

import keyword
import os
from typing import Any, NamedTuple, Optional, Sequence, Union

from . import _core
from ._errors import UsageError
from ._report import Path, Progress, Report


class Param(NamedTuple):
    """A parameter. `type` is "flag", "int", "real" or "text"; what a text
    stands for says `role`: "value", "path" (is read) or "output" (is
    written)."""

    name: str
    option: str  # on the command line
    doc: str
    type: str
    role: str
    required: bool
    many: bool
    choices: list[str]
    low: Optional[float]
    high: Optional[float]
    default: str
    at_opening: bool  # decided when a trace is opened


class Question(NamedTuple):
    """What can be asked; `of_trace`: of one trace, t.ask()."""

    name: str
    command: str
    title: str
    doc: str
    params: list[Param]
    of_trace: bool
    writes: bool


def questions() -> list[Question]:
    """All questions with their parameters. Nothing is read or run."""
    return [Question(name, command, title, doc, [Param(*p) for p in params],
                     of_trace, writes)
            for name, command, title, doc, params, of_trace, writes
            in _core.list_questions()]


class Asked:
    """A trace that is open: asked instead of being read again."""

    _core: _core.Session


Input = Union[Path, Asked]


def _plain(value: Any) -> Any:
    """What numpy and pandas have, as Python has it."""
    return value.tolist() if hasattr(value, "tolist") else value


def _value(value: Any, traces: list[Asked]) -> _core.Value:
    if isinstance(value, Asked):
        if value not in traces:
            traces.append(value)
        path: str = value._core.info["path"]
        return path
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    value = _plain(value)
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        raise UsageError(f"{value} is too large a number")
    if isinstance(value, (bool, int, float, str)):
        return value
    raise UsageError(f"a value may be a bool, a number, a text, a path or a "
                     f"trace, or several of them, not a {type(value).__name__}")


def arguments(params: dict[str, Any]) -> tuple[dict[str, _core.Value],
                                               list[Asked]]:
    """Parameters as the library takes them, and the open traces among them.
    What is None is not given; `from_` is "from"."""
    traces: list[Asked] = []
    out: dict[str, _core.Value] = {}
    for name, value in params.items():
        if name.endswith("_") and keyword.iskeyword(name[:-1]):
            name = name[:-1]
        value = _plain(value)
        if value is None:
            continue
        if isinstance(value, (list, tuple, set, frozenset)):
            out[name] = [str(_value(one, traces)) for one in value]
        else:
            out[name] = _value(value, traces)
    return out, traces


def ask(question: str, *, threads: int = 0, rules: Optional[Path] = None,
        cache: bool = True, allow_write: bool = False,
        progress: Optional[Progress] = None, **params: Any) -> Report:
    """Any question by its name, with the parameters that lamina.questions()
    describes: what the command of this name says, as tables and notes.

    A trace is a path, or a Trace, which is not read again.
    threads: 0 is all cores; results do not depend on it.
    rules: folder with data files that extend the built-in ones.
    cache: as of lamina.open.
    allow_write: questions that make files need it.
    progress: called with (stage, done, total), at most ten times a second;
    what it raises ends the work.
    """
    given, traces = arguments(params)
    return Report(question, _core.ask(
        question, given, [trace._core for trace in traces], threads,
        os.fspath(rules) if rules else "", cache, allow_write, progress))
