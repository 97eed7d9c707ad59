# SPDX-License-Identifier: Apache-2.0
"""A trace that is opened once and asked many times, from any thread."""
from __future__ import annotations

import difflib
import html
import json
import os
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from . import _core
from ._ask import ask, arguments
from ._errors import UsageError
from ._event import COLUMNS, Event
from ._questions import DumpQuestions, TraceQuestions
from ._report import Path, Progress, Report
from ._table import Column, Table


class TableInfo(NamedTuple):
    """A table that every trace has. `kind` is "model" (rows of the trace),
    "result" (of an analysis) or "view"; `cost` says what its first use pays:
    "free", "tree" or "analysis"."""

    name: str
    doc: str
    kind: str
    cost: str
    columns: list[Column]


class TraceInfo(NamedTuple):
    """Facts about a recording."""

    path: str
    format: str
    file_bytes: int
    events: int
    slices: int
    device_slices: int
    first_ns: int
    base_time_ns: Optional[int]
    rank: Optional[int]
    devices: list[str]
    properties: dict[str, str]


def list_tables() -> list[TableInfo]:
    """The tables of every trace. Nothing is read or run."""
    return [TableInfo(name, doc, kind, cost, [Column(*c) for c in columns])
            for name, doc, kind, cost, columns in _core.list_tables()]


_NAMES = frozenset(table[0] for table in _core.list_tables())


class Trace(TraceQuestions):
    """An opened trace. A table is an attribute, too: t.ops is
    t.table("ops"), where nothing else has its name."""

    def __init__(self, core: _core.Session):
        self._core = core
        self.info = TraceInfo(**core.info)

    @property
    def tables(self) -> list[TableInfo]:
        return list_tables()

    def table(self, name: str, *, progress: Optional[Progress] = None) -> Table:
        """A table with the names, columns and units of SQL. Tables of analyses
        are made once and kept."""
        return Table(self._core.table(name, progress))

    def __getattr__(self, name: str) -> Table:
        if name in _NAMES:
            return self.table(name)
        near = difflib.get_close_matches(
            name, [n for n in self.__dir__() if not n.startswith("_")], n=3)
        hint = (f"did you mean {' or '.join(near)}?" if near
                else "lamina.list_tables() names the tables")
        raise AttributeError(f"a trace has no '{name}'; {hint}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_NAMES]

    def query(self, sql: str, params: Optional[Mapping[str, Any]] = None, *,
              time_limit: float = 0, max_rows: int = 0,
              allow_temp: bool = False) -> Table:
        """The result of SQL (docs/sql.md), of the last statement where there
        are several. `params` gives :name a value; `time_limit` is in seconds,
        0 is none."""
        return Table(self._core.query(sql, dict(params or {}), time_limit,
                                      max_rows, allow_temp))

    def report(self, *, layout: str = "native", only: Sequence[str] = (),
               recompute: bool = False, python_stacks: bool = False,
               link: str = "", overlaps: bool = False,
               short_kernel_ns: int = 10_000,
               micro_idle_ns: Optional[int] = None,
               tokens: Optional[int] = None,
               progress: Optional[Progress] = None) -> Report:
        """What `lamina report` says, with its options."""
        return Report("report", self._core.report(
            layout, list(only), recompute, python_stacks, link, overlaps,
            short_kernel_ns, micro_idle_ns, tokens, progress))

    @property
    def answer(self) -> dict[str, Any]:
        """What the first screen of the program shows: what the window was spent
        on ("bar"), "mfu", "limited_by", what to change and what that saves
        ("fixes"), "warnings". The object "answer" of `lamina report --format
        json`: times in nanoseconds, and in "shown" the words of a screen. Made
        once, when it is first asked for."""
        found: dict[str, Any] = json.loads(self._core.answer(None))
        return found

    def page(self, path: Path, *, progress: Optional[Progress] = None) -> None:
        """Writes the page of `lamina report -o path`: one HTML file, to look at
        and to share."""
        self._core.page(os.fspath(path), progress)

    def ask(self, question: str, *, allow_write: bool = False,
            progress: Optional[Progress] = None, **params: Any) -> Report:
        """Any question to one trace by its name, with the parameters that
        lamina.questions() describes: what the command of this name says of
        the trace. The last answers to what names no other file are kept."""
        given, traces = arguments(params)
        if traces:
            raise UsageError("the trace is this one: lamina.ask takes several")
        return Report(question, self._core.ask(question, given, allow_write,
                                               progress))

    def event(self, uid: int) -> Event:
        """An event by its number: the position in the input."""
        found = self.query(f"SELECT {COLUMNS} FROM slice WHERE uid = :uid",
                           {"uid": uid})
        if len(found) == 0:
            raise KeyError(f"there is no event {uid} with a duration")
        return Event(self, *found[0])

    def events(self, where: str = "1",
               params: Optional[Mapping[str, Any]] = None) -> list[Event]:
        """Events of the table slice that meet a condition of SQL, in the order
        of their numbers: t.events("kind = 'op' AND name LIKE 'aten::%'")."""
        found = self.query(
            f"SELECT {COLUMNS} FROM slice WHERE {where} ORDER BY uid", params)
        return [Event(self, *row) for row in found]

    @property
    def roots(self) -> list[Event]:
        """Host events that nothing called."""
        found = self.query(
            f"SELECT {COLUMNS} FROM node WHERE parent_uid IS NULL")
        return [Event(self, *row) for row in found]

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        on = f" on {', '.join(self.info.devices)}" if self.info.devices else ""
        return (f"<Trace {self.info.path!r} {self.info.format} "
                f"{self.info.slices} slices{on}>")

    def _repr_html_(self) -> str:
        """For notebooks: the answer."""
        return answer_html(self.answer)


# The parts of the bar, idle ones pale.
_COLORS = {
    "compute": "#474ec6", "communication": "#b36d4c", "copies": "#757575",
    "input": "#e8a3b4", "host": "#f8c79b", "launch": "#d9cf9c",
    "sync": "#ecb9ec", "wait": "#bfc3c9", "outside": "#dddddd",
    "unknown": "#d6d0c7"}


def answer_html(answer: Mapping[str, Any]) -> str:
    """An answer (Trace.answer) as HTML for notebooks, with the words of the
    screen."""
    def text(value: object) -> str:
        return html.escape(str(value))

    facts = [f"{answer['window']} window"]
    if answer["devices"]:
        facts += [f"MFU {answer['mfu']['shown']}",
                  f"limited by {answer['limited_by']['shown']}"]
    if answer["together"]:
        facts.append(f"all fixes {answer['together']}")
    parts = [part for part in answer["bar"] if part["ns"] > 0]
    bar = "".join(
        f"<div title=\"{text(p['words'])} {text(p['shown']['time'])}\" style=\""
        f"width:{100 * p['share']:.4f}%;background:{_COLORS[p['key']]}\"></div>"
        for p in parts)
    legend = " &nbsp; ".join(
        f"<span style=\"color:{_COLORS[p['key']]}\">&#9632;</span> "
        f"{text(p['words'])} {text(p['shown']['time'])} "
        f"{text(p['shown']['share'])}"
        for p in sorted(parts, key=lambda part: -part["ns"]))
    hot = "".join(f"<li>{text(line)}</li>" for line in answer["hot"])
    fixes = "".join(
        f"<tr><td>{fix['rank']}</td>"
        f"<td style=\"text-align:left\"><b title=\"{text(fix['what'])}\">"
        f"{text(fix['do'])}</b></td>"
        f"<td>{text(fix['shown']['before'])} &rarr; "
        f"{text(fix['shown']['after'])}</td><td>{text(fix['shown']['gain'])}</td>"
        f"<td>{text(fix['how'])}, {text(fix['sure'])}</td>"
        f"<td style=\"text-align:left\">{text(fix['where']['shown'])}</td></tr>"
        for fix in answer["fixes"])
    warnings = "".join(
        f"<li>{text(w['title'])}{text(': ' + w['do'] if w['do'] else '')}</li>"
        for w in answer["warnings"])
    return (f"<div><b>{text(answer['sentence'])}</b><br>"
            f"{text(' · '.join(facts))}"
            f"<div style=\"display:flex;height:18px;margin:4px 0\">{bar}</div>"
            f"<small>{legend}</small>"
            + (f"<ul>{hot}</ul>" if hot else "")
            + (f"<table>{fixes}</table>" if fixes else "")
            + (f"<ul>{warnings}</ul>" if warnings else "") + "</div>")


def open(path: Path, *, threads: int = 0, rules: Optional[Path] = None,
         device: Optional[str] = None, captures: Sequence[Path] = (),
         captured_frames: bool = False, compiled: Sequence[Path] = (),
         cache: bool = True,
         progress: Optional[Progress] = None) -> Trace:
    """Reads a trace of any format that lamina knows.

    threads: 0 is all cores; results do not depend on it.
    rules: folder with data files that extend the built-in ones.
    device: name or file; without it what the trace says.
    captures: traces, or folders of them, in which replayed graphs were
    captured; captured_frames adds all their Python frames.
    compiled: output code of Inductor, logs that hold it, or folders of them:
    tables compiled_kernel, compiled_kernels and compiled_nodes.
    cache: a large trace is kept in the cache of the user, and opened from
    there the next time; False parses it and keeps nothing.
    progress: called with (stage, done, total), at most ten times a second;
    what it raises ends the reading.
    """
    return Trace(_core.open(
        os.fspath(path), threads, os.fspath(rules) if rules else "",
        device or "", [os.fspath(capture) for capture in captures],
        captured_frames, [os.fspath(code) for code in compiled], cache,
        progress))


class Dump(DumpQuestions):
    """A graph dump of a compiler, or a folder of them, which questions read
    when they are asked."""

    def __init__(self, path: Path):
        self.path = os.fspath(path)

    def ask(self, question: str, **params: Any) -> Report:
        """lamina.ask, with this dump as the parameter `dump`."""
        return ask(question, dump=self.path, **params)

    def __repr__(self) -> str:
        return f"<Dump {self.path!r}>"


def dump(path: Path) -> Dump:
    """A graph dump, or a folder of them. Nothing is read yet."""
    return Dump(path)


def query(sql: str, params: Optional[Mapping[str, Any]] = None, *,
          time_limit: float = 0, max_rows: int = 0, allow_temp: bool = False,
          **traces: Trace) -> Table:
    """One query over several traces, whose tables are NAME.kernel and so on:
    lamina.query("SELECT ... FROM a.ops JOIN b.ops ...", a=before, b=after)."""
    return Table(_core.query(
        [(name, trace._core) for name, trace in traces.items()], sql,
        dict(params or {}), time_limit, max_rows, allow_temp))
