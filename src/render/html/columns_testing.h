// SPDX-License-Identifier: Apache-2.0
//
// For tests: undoes what Block does, by the description of the format.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "render/html/columns.h"

namespace lamina::render {

// The numbers of a column that is not one of doubles.
inline std::vector<int64_t> ReadColumn(const Block& block, size_t index) {
  size_t at = 0;
  for (size_t c = 0; c < index; ++c)
    at += block.columns()[c].width * block.rows();
  const PackedColumn& column = block.columns()[index];
  LAMINA_CHECK(column.width < 8);
  std::vector<int64_t> out;
  size_t next = 0;
  int64_t last = 0;
  for (size_t i = 0; i < block.rows(); ++i) {
    uint64_t code = 0;
    for (int plane = 0; plane < column.width; ++plane) {
      const auto byte =
          static_cast<uint8_t>(block.raw()[at + plane * block.rows() + i]);
      code |= uint64_t{byte} << (8 * plane);
    }
    if (next < column.wide.size() && column.wide[next].first == i) {
      last = column.wide[next++].second;
    } else if (column.delta) {
      last += static_cast<int64_t>(code >> 1) ^ -static_cast<int64_t>(code & 1);
    } else {
      last = static_cast<int64_t>(code);
    }
    out.push_back(last);
  }
  LAMINA_CHECK(next == column.wide.size());
  return out;
}

inline std::vector<int64_t> ReadColumn(const Block& block,
                                       std::string_view name) {
  for (size_t c = 0; c < block.columns().size(); ++c)
    if (block.columns()[c].name == name) return ReadColumn(block, c);
  LAMINA_CHECK(false);
  return {};
}

}  // namespace lamina::render
