// SPDX-License-Identifier: Apache-2.0
//
// Pieces of the SQL that is sent to a database.
#pragma once

#include <string>
#include <string_view>

namespace lamina::ingest {

// The aggregate function through which SQLite hands over rows.
inline constexpr std::string_view kRowFunction = "lamina_row";

// A name of the file in quotes, whatever is in it.
inline std::string QuotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
  return out;
}

}  // namespace lamina::ingest
