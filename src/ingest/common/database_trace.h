// SPDX-License-Identifier: Apache-2.0
//
// What every reader of a database tells about its file.
#pragma once

#include <string_view>

#include "ingest/common/database.h"
#include "trace/builder.h"

namespace lamina::ingest {

// Facts about the file, and whether its end is missing.
void NoteDatabase(const Database& database, std::string_view format,
                  trace::TraceBuilder& builder);

// Call after a pass over a table: says so when the table broke off.
void NoteBreak(const DatabaseTable& table, const PassEnd& end,
               trace::Diagnostics& diagnostics);

}  // namespace lamina::ingest
