# SPDX-License-Identifier: Apache-2.0
"""A trace that is opened once and asked many times, from any thread."""
from __future__ import annotations

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
        raise AttributeError(f"a trace has no '{name}'; lamina.list_tables() "
                             "names the tables")

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
        return (f"<Trace {self.info.path!r} {self.info.format} "
                f"{self.info.slices} slices>")


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
