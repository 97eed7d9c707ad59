// SPDX-License-Identifier: Apache-2.0
//
// What every reader of a database tells about its file.
#pragma once

#include <absl/functional/function_ref.h>
#include <string_view>

#include "ingest/common/database.h"
#include "trace/builder.h"

namespace lamina::ingest {

// Facts about the file, and whether its end is missing.
void NoteDatabase(const Database& database, std::string_view format,
                  trace::TraceBuilder& builder);

// Says which tables with records nobody reads. `is_known`: a table that is
// read, or of which nothing is missed.
void NoteTablesNotRead(const Database& database,
                       absl::FunctionRef<bool(std::string_view)> is_known,
                       trace::Diagnostics& diagnostics);

// Call after a pass over a table: says so when the table broke off.
void NoteBreak(const DatabaseTable& table, const PassEnd& end,
               trace::Diagnostics& diagnostics);

}  // namespace lamina::ingest
