// SPDX-License-Identifier: Apache-2.0
//
// The dictionary of columns: what a name means in every table that has it, and
// the type of its cells, so that a join by one name compares like with like. A
// table may say more about its own column, and nothing else.
#pragma once

#include <span>
#include <string_view>

#include "lamina/table.h"

namespace lamina {

struct ColumnWord {
  // As SQL has it: times end in `_ns`. A table with times in microseconds has
  // the same name with `_us`.
  std::string_view name;
  ColumnType type;           // kText, kInt (truth and times too) or kReal
  std::string_view meaning;  // one sentence
};

// By name.
std::span<const ColumnWord> ColumnWords();
// Null: no table has such a column.
const ColumnWord* FindColumnWord(std::string_view name);

}  // namespace lamina
