# SPDX-License-Identifier: Apache-2.0
"""Tables: columns of numpy that lie in the C++ table, rows, pandas, Arrow."""
from __future__ import annotations

import collections
import html
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Union

from . import _core
from ._errors import UsageError

if TYPE_CHECKING:
    import numpy
    import pandas  # type: ignore[import]


class Column(NamedTuple):
    """What a column is; `type` is "int", "real", "text" or "bool"."""

    name: str
    type: str
    doc: str


class TextColumn:
    """Texts as numbers: row i is `categories[codes[i]]`, a null has -1."""

    def __init__(self, codes: numpy.ndarray[Any, Any], categories: list[str]):
        self.codes = codes
        self.categories = categories

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Optional[str]:
        code = int(self.codes[row])
        return None if code < 0 else self.categories[code]

    def __iter__(self) -> Iterator[Optional[str]]:
        return iter(self.tolist())

    def tolist(self) -> list[Optional[str]]:
        texts: list[Optional[str]] = [*self.categories, None]
        return [texts[code] for code in self.codes.tolist()]

    def __array__(self, dtype: Any = None) -> numpy.ndarray[Any, Any]:
        import numpy
        return numpy.array(self.tolist(), dtype=dtype or object)

    def __repr__(self) -> str:
        return f"TextColumn({len(self)} rows, {len(self.categories)} texts)"


class Table:
    """Columns with names, types and meaning. Immutable; what it gives out
    stays valid when the table and its trace are gone."""

    def __init__(self, core: _core.Table):
        self._core = core
        self.columns = [Column(*column) for column in core.columns]
        self._row = collections.namedtuple(  # type: ignore[misc]
            "Row", [column.name for column in self.columns], rename=True)

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def doc(self) -> str:
        return self._core.doc

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def _position(self, name: str) -> int:
        for position, column in enumerate(self.columns):
            if column.name == name:
                return position
        raise KeyError(f"{self.name or 'the table'} has no column '{name}'; "
                       f"columns: {', '.join(self.column_names)}")

    def column(self, name: str) -> Any:
        """The column as a read-only array of numpy over the table's own
        memory: int64 (times are nanoseconds), float64, or bool (a copy). With
        nulls a masked array, texts as TextColumn."""
        return self._column(self._position(name))

    def _column(self, position: int) -> Any:
        kind = self.columns[position].type
        if kind == "text":
            return TextColumn(*self._core.codes(position))
        data = self._core.numbers(position)
        if kind == "bool":
            data = data.astype(bool)
        nulls = self._core.nulls(position)
        if nulls is None:
            return data
        import numpy
        return numpy.ma.MaskedArray(  # type: ignore[no-untyped-call]
            data, mask=nulls)

    def __getitem__(self, key: Union[str, int]) -> Any:
        """A column by name, a row by position."""
        if isinstance(key, str):
            return self.column(key)
        if not -len(self) <= key < len(self):
            raise IndexError(f"row {key} of {len(self)}")
        return self._row(*(self._cell(c, key)
                           for c in range(len(self.columns))))

    def _cell(self, position: int, row: int) -> Any:
        column = self._column(position)
        if isinstance(column, TextColumn):
            return column[row]
        cell = column[row]
        return None if getattr(cell, "mask", False) else cell.item()

    def __len__(self) -> int:
        return len(self._core)

    def __iter__(self) -> Iterator[Any]:
        """Rows as named tuples, None for null."""
        lists = [self._column(c).tolist() for c in range(len(self.columns))]
        return (self._row(*cells) for cells in zip(*lists))

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists by column, None for null."""
        return {column.name: self._column(c).tolist()
                for c, column in enumerate(self.columns)}

    def to_pandas(self, time: str = "ns") -> pandas.DataFrame:
        """A DataFrame: texts are categories, columns with nulls are of
        pandas' types that know nulls. Columns *_ns hold nanoseconds; with time
        "us" they are *_us as floats, with "timedelta" pandas.Timedelta."""
        import numpy
        import pandas
        if time not in ("ns", "us", "timedelta"):
            raise UsageError(f"time is '{time}', expected 'ns', 'us' or "
                             "'timedelta'")
        series: list[Any] = []
        names = []
        for position, column in enumerate(self.columns):
            name = column.name
            if column.type == "text":
                codes, texts = self._core.codes(position)
                data: Any = pandas.Categorical.from_codes(codes, texts)
            else:
                data = self._core.numbers(position)
                nulls = self._core.nulls(position)
                is_time = column.type == "int" and name.endswith("_ns")
                if is_time and time == "us":
                    name = name[:-3] + "_us"
                    data = data / 1000
                elif is_time and time == "timedelta":
                    name = name[:-3]
                    data = data.astype("timedelta64[ns]")
                elif column.type == "bool":
                    data = data.astype(bool)
                if nulls is not None and is_time and time == "timedelta":
                    data[nulls] = numpy.timedelta64("NaT")
                elif nulls is not None:
                    array = {"f": pandas.arrays.FloatingArray,
                             "b": pandas.arrays.BooleanArray,
                             "i": pandas.arrays.IntegerArray}[data.dtype.kind]
                    data = array(data, nulls)
            series.append(pandas.Series(data, copy=False))
            names.append(name)
        if not series:
            return pandas.DataFrame()
        frame = pandas.concat(series, axis=1, copy=False)
        frame.columns = names
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For Arrow: pyarrow.table(t), polars.from_arrow(t), DuckDB. Another
        schema than that of the table is not made."""
        return self._core.arrow_stream()

    def __arrow_c_schema__(self) -> object:
        return self._core.arrow_schema()

    def _head(self, rows: int) -> list[list[str]]:
        def text(cell: Any) -> str:
            if cell is None:
                return ""
            return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
        lists = []
        for position in range(len(self.columns)):
            column = self._column(position)
            if isinstance(column, TextColumn):
                column = TextColumn(column.codes[:rows], column.categories)
            else:
                column = column[:rows]
            lists.append([text(cell) for cell in column.tolist()])
        return [list(cells) for cells in zip(*lists)]

    def __repr__(self) -> str:
        shown = [[c if len(c) <= 40 else c[:37] + "..." for c in row]
                 for row in self._head(10)]
        numbers = [column.type != "text" for column in self.columns]
        widths = [max([len(name), *(len(row[c]) for row in shown)])
                  for c, name in enumerate(self.column_names)]
        lines = []
        for row in [self.column_names, *shown]:
            lines.append("  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers)).rstrip())
        more = len(self) - len(shown)
        if more > 0:
            lines.append(f"... {more} more row{'s' if more > 1 else ''}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: the first 20 rows."""
        head = "".join(f'<th title="{html.escape(column.doc)}">'
                       f"{html.escape(column.name)}</th>"
                       for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
            + "</tr>" for row in self._head(20))
        more = len(self) - 20
        tail = f"<p>{more} more rows</p>" if more > 0 else ""
        return (f"<table><thead><tr>{head}</tr></thead>"
                f"<tbody>{body}</tbody></table>{tail}")
