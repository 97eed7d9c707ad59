# SPDX-License-Identifier: Apache-2.0
"""Traces of AI workloads, opened once and asked many times.

    import lamina
    t = lamina.open("trace.json.gz")
    t.report().verdict
    t.ops.to_pandas()
    t.layers(stage="decode")
    t.query("SELECT name, sum(dur_ns) AS ns FROM kernel GROUP BY name")
    lamina.diff("before.json.gz", t)

lamina.questions() says what can be asked.
"""
from ._ask import Param, Question, ask, questions
from ._core import version as __version__
from ._errors import Cancelled, Error, InputError, LimitError, UsageError
from ._event import Event
from ._questions import cost, diff, graph_log_diff, memory, merge, ranks
from ._report import Evidence, Note, Report
from ._table import Column, Table, TextColumn
from ._trace import (Dump, TableInfo, Trace, TraceInfo, dump, list_tables,
                     open, query)

__all__ = ["Cancelled", "Column", "Dump", "Error", "Event", "Evidence",
           "InputError", "LimitError", "Note", "Param", "Question", "Report",
           "Table", "TableInfo", "TextColumn", "Trace", "TraceInfo",
           "UsageError", "__version__", "ask", "cost", "diff", "dump",
           "graph_log_diff", "list_tables", "memory", "merge", "open", "query",
           "questions", "ranks"]
