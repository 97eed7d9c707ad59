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

// Numbers are right-aligned in human units ("1.23 ms"), text is left-aligned
// and shortened where the width demands it; columns that still do not fit are
// left out and counted in the last line. Every string is escaped for
// terminals.
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
