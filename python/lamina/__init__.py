# SPDX-License-Identifier: Apache-2.0
"""Traces of AI workloads, opened once and asked many times.

    import lamina
    t = lamina.open("trace.json.gz")
    t.report().verdict
    t.ops.to_pandas()
    t.query("SELECT name, sum(dur_ns) AS ns FROM kernel GROUP BY name")
"""
from ._core import version as __version__
from ._errors import Cancelled, Error, InputError, LimitError, UsageError
from ._event import Event
from ._table import Column, Table, TextColumn
from ._trace import (Evidence, Note, Report, TableInfo, Trace, TraceInfo,
                     list_tables, open, query)

__all__ = ["Cancelled", "Column", "Error", "Event", "Evidence", "InputError",
           "LimitError", "Note", "Report", "Table", "TableInfo", "TextColumn",
           "Trace", "TraceInfo", "UsageError", "__version__", "list_tables",
           "open", "query"]
