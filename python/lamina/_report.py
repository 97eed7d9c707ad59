# SPDX-License-Identifier: Apache-2.0
"""What a question is answered with: tables and notes."""
from __future__ import annotations

import html
import os
from typing import Callable, NamedTuple, Optional, Union

from . import _core
from ._table import Table

Progress = Callable[[str, int, int], object]
Path = Union[str, "os.PathLike[str]"]


class Evidence(NamedTuple):
    """Rows or events that prove a note."""

    table: str
    column: str
    value: str
    events: list[int]


class Note(NamedTuple):
    """One thing that a report says."""

    severity: str  # "verdict", "opportunity", "warning" or "info"
    id: str
    text: str
    worth_ns: Optional[int]
    claim: str  # how the worth is known: "measured", "bound", "estimate"
    evidence: list[Evidence]


class Report:
    """An answer: notes, and tables by name, of which each is an attribute,
    too: report.kernels is report.tables["kernels"]."""

    def __init__(self, question: str, document: _core.Document):
        inputs, tables, notes = document
        self.question = question
        self.inputs = inputs
        self.tables = {table.name: table for table in map(Table, tables)}
        self.notes = [Note(*note[:5], [Evidence(*e) for e in note[5]])
                      for note in notes]

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences; empty where there is none."""
        return " ".join(note.text for note in self.notes
                        if note.severity == "verdict")

    def __getitem__(self, table: str) -> Table:
        if table not in self.tables:
            raise KeyError(f"{self.question} gave no table '{table}'; tables: "
                           f"{', '.join(self.tables)}")
        return self.tables[table]

    def __getattr__(self, name: str) -> Table:
        tables = self.__dict__.get("tables", {})
        if name in tables:
            return tables[name]  # type: ignore[no-any-return]
        raise AttributeError(f"the answer has no '{name}'; tables: "
                             f"{', '.join(tables)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        if self.verdict:
            return self.verdict
        tables = ", ".join(f"{name} ({len(table)})"
                           for name, table in self.tables.items())
        return f"<Report {self.question}: {tables}>"

    def _repr_html_(self) -> str:
        """For notebooks: the notes, and the first rows of each table."""
        notes = "".join(f"<li>{html.escape(note.severity)}: "
                        f"{html.escape(note.text)}</li>"
                        for note in self.notes)
        tables = "".join(f"<h4 title=\"{html.escape(table.doc)}\">"
                         f"{html.escape(name)}</h4>{table._repr_html_()}"
                         for name, table in self.tables.items())
        return (f"<ul>{notes}</ul>" if notes else "") + tables
