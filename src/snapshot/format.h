// SPDX-License-Identifier: Apache-2.0
//
// The layout of a snapshot, and the list of its sections as trace/fields.h has
// them: one per column, or one per kind of row where rows lie as a whole.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "snapshot/snapshot.h"
#include "trace/fields.h"

namespace lamina::snapshot {

inline constexpr char kMagic[8] = {'L', 'A', 'M', 'S', 'N', 'A', 'P', '\n'};
inline constexpr uint32_t kFormat = 1;
inline constexpr size_t kAlignment = 64;
inline constexpr size_t kBlockBytes = size_t{256} << 10;
inline constexpr size_t kMostInput = 4096;  // of the path in the head
inline constexpr uint64_t kMostSections = 256;

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t sections;
  uint64_t file_bytes;
  Key key;
  uint64_t directory_offset;  // entries, then digests, to the end of the file
  uint64_t blocks;
  uint64_t directory_digest;
  uint64_t input_bytes;  // the path follows the header
  uint64_t zero;
  uint64_t digest;  // of what stands before it, and of the path
};
static_assert(sizeof(Header) == 88);

struct Entry {
  char name[40];
  uint64_t element_bytes;
  uint64_t offset;
  uint64_t count;
  uint64_t first_block;

  std::string_view Name() const { return {name, strnlen(name, sizeof(name))}; }
};
static_assert(sizeof(Entry) == 72);

// Elements of a block: a block holds whole elements.
constexpr uint64_t BlockElements(uint64_t element_bytes) {
  return element_bytes >= kBlockBytes ? 1 : kBlockBytes / element_bytes;
}
constexpr uint64_t BlocksOf(uint64_t element_bytes, uint64_t count) {
  const uint64_t each = BlockElements(element_bytes);
  return count / each + (count % each != 0);
}
constexpr uint64_t Aligned(uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// Kinds of rows that do not lie flat in memory are among the facts (facts.h).
template <class Row>
inline constexpr bool kIsFact =
    std::is_same_v<Row, trace::Track> || std::is_same_v<Row, trace::Stream>;

// Calls `visit.template Column<Row, Field>(name, column)` for the columns of
// kinds of rows that lie as columns, and `visit.template Rows<Row>(name, rows)`
// for those that lie as rows.
template <class TraceT, class Visit>
void ForEachRowSection(TraceT& trace, Visit& visit) {
  trace::ForEachDescribed([&]<class Row>() {
    using D = trace::Described<Row>;
    auto& rows = trace.*D::kRows;
    if constexpr (kIsFact<Row>) {
      return;
    } else if constexpr (requires { rows.data(); }) {
      visit.template Rows<Row>(D::kName, rows);
    } else {
      std::apply(
          [&](const auto&... field) {
            (visit.template Column<Row, std::remove_cvref_t<decltype(field)>>(
                 std::string(D::kName) + "." + std::string(field.info.name),
                 field.info,
                 rows.*std::remove_cvref_t<decltype(field)>::kMember),
             ...);
          },
          D::kFields);
    }
  });
}

// Sections of their own.
inline constexpr std::string_view kStringBytes = "strings.bytes";
inline constexpr std::string_view kStringOffsets = "strings.offsets";
inline constexpr std::string_view kDeviceOrder = "device_order";
inline constexpr std::string_view kFacts = "facts";

}  // namespace lamina::snapshot
