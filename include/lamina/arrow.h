// SPDX-License-Identifier: Apache-2.0
//
// Tables for Arrow, through its C data interface: pyarrow, polars, DuckDB and
// others take them without a copy.
//
// A table is a struct array with a child per column:
//
//   kInt, kTime  int64 ("l"), the numbers of the table; a time is named *_ns
//   kReal        float64 ("g"), the numbers of the table
//   kBool        bool ("b")
//   kText        int32 with a dictionary of large_utf8: each text of the column
//                once; broken UTF-8 is repaired with U+FFFD
//
// Nulls are those of the table. The metadata of a column has its sentence as
// "lamina.doc". What is exported keeps what it points to alive and outlives the
// session; call release() once, as the interface says. Pointers must not be
// null: that is kUsage.
#pragma once

#include <memory>

#include "lamina/arrow_abi.h"
#include "lamina/export.h"
#include "lamina/status.h"
#include "lamina/table.h"

namespace lamina {

LAMINA_API Status ExportSchema(const Schema& schema, ArrowSchema* out);
LAMINA_API Status ExportArray(std::shared_ptr<const Table> table,
                              ArrowArray* out);
// One array with all rows.
LAMINA_API Status ExportStream(std::shared_ptr<const Table> table,
                               ArrowArrayStream* out);

}  // namespace lamina
