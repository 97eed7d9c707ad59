// SPDX-License-Identifier: Apache-2.0
//
// Whether the rows of a section can be rows of a trace: what is a row number,
// an id, an enum or a time is held against its range, by the roles that
// trace/fields.h gives. A block of rows at a time, so that threads share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace lamina::snapshot {

// What the numbers in rows may name, and what the passes find on their way.
struct Bounds {
  uint64_t strings = 0;
  uint64_t tracks = 0;
  uint64_t streams = 0;
  uint64_t categories = 0;
  // By the name of a kind of rows that lies as rows.
  std::vector<std::pair<std::string_view, uint64_t>> rows;
  // By kind of slice: the rows of its arguments, and whether it has some.
  uint64_t arguments[trace::kKinds] = {};
  bool must_have[trace::kKinds] = {};
  const trace::Kind* kinds = nullptr;  // the column, not checked yet
  uint64_t string_bytes = 0;
  uint64_t string_offsets = 0;  // how many

  mutable std::atomic<int64_t> first_ns{std::numeric_limits<int64_t>::max()};
  mutable std::atomic<uint64_t> device_slices{0};

  uint64_t RowsOf(std::string_view name) const;
};

// Looks at the elements [begin, end) of a section that begins at `data`.
using BlockCheck = bool (*)(const char* data, uint64_t begin, uint64_t end,
                            const Bounds& bounds);

// A section that a file must have.
struct SectionInfo {
  std::string name;
  std::string_view kind;  // of its rows: sections of one have equally many
  uint64_t element_bytes = 0;
  BlockCheck check = nullptr;  // null: all bytes are good
};
const std::vector<SectionInfo>& Sections();

}  // namespace lamina::snapshot
