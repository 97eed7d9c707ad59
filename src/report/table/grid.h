// SPDX-License-Identifier: Apache-2.0
//
// A Table as aligned text for a terminal of a given width.
#pragma once

#include <string>

#include "lamina/table.h"

namespace lamina::report::table {

struct GridOptions {
  int width = 100;
  bool color = false;
  size_t max_rows = 20;  // more are counted in a last line
  bool title = true;
  // Says how many columns are left out.
  bool count_hidden = true;
};

// Numbers are right-aligned in human units ("1.23 ms"), text is left-aligned.
// Where the width demands it, names of kernels lose their namespaces, paths
// their beginning and other text its end; then columns behind the bars, the
// bars, and columns from the last on are left out. Columns left out are counted
// in the last line. Every string is escaped for terminals.
std::string FormatGrid(const lamina::Table& table, const GridOptions& options);

// A bar of `cells` characters, drawn in eighths of a block.
std::string Bar(double share, int cells);

// ANSI styles; empty strings without colour.
struct Style {
  explicit Style(bool color);
  std::string_view bold, dim, red, yellow, reset;
};

// The cell as a person reads it.
std::string HumanCell(const lamina::Table& table, size_t row, size_t column);

}  // namespace lamina::report::table
