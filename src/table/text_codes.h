// SPDX-License-Identifier: Apache-2.0
//
// The texts of one column, each once, for those who take columns by number:
// Arrow and pandas.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/table.h"

namespace lamina {

struct TextCodes {
  std::vector<int32_t> codes;   // by row: position in `texts`; null: -1
  std::vector<uint32_t> texts;  // for Table::Text, in order of first row
};

// `column` must be one of texts.
TextCodes CodesOf(const Table& table, size_t column);

}  // namespace lamina
