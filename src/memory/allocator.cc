// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/decimal.h"

namespace lamina::memory {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
// Settings above this are no sizes.
constexpr int64_t kMostSetting = int64_t{1} << 46;

int Log2(int64_t n) { return 63 - std::countl_zero(static_cast<uint64_t>(n)); }

int64_t RoundUp(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// The number behind "name:" in a text of settings; nothing when absent.
std::optional<int64_t> NumberOf(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + name.size());
  if (!rest.starts_with(':')) return std::nullopt;
  rest.remove_prefix(1);
  return ParseInt(rest.substr(0, rest.find_first_not_of("0123456789")));
}

}  // namespace

Result<AllocatorRules> AllocatorRules::Load(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("memory"));
  AllocatorRules out;
  for (const auto& file : files) {
    const rules::Node* const table = file->root.Find("table");
    if (table == nullptr || table->text != "memory_allocator") continue;
    static constexpr std::string_view kKeys[] = {
        "table",         "why",           "block",         "small_limit",
        "small_segment", "large_segment", "large_request", "segment_multiple",
        "unsplit_rest",  "unsplit_excess"};
    LAMINA_ASSIGN(const auto members,
                  rules::Members::Of(*file, file->root, kKeys));
    const auto read = [&](std::string_view key, int64_t* to) -> Status {
      LAMINA_ASSIGN(const double number, members.Number(key));
      if (!(number >= 1 && number < 1e15))
        return Fail(members.ErrorAt(std::string(key) + ": expected bytes"));
      *to = static_cast<int64_t>(number);
      return {};
    };
    LAMINA_TRY(read("block", &out.block));
    LAMINA_TRY(read("small_limit", &out.small_limit));
    LAMINA_TRY(read("small_segment", &out.small_segment));
    LAMINA_TRY(read("large_segment", &out.large_segment));
    LAMINA_TRY(read("large_request", &out.large_request));
    LAMINA_TRY(read("segment_multiple", &out.segment_multiple));
    LAMINA_TRY(read("unsplit_rest", &out.unsplit_rest));
    LAMINA_TRY(read("unsplit_excess", &out.unsplit_excess));
  }
  LAMINA_CHECK(out.block > 0);
  return out;
}

Allocator::Allocator(
    AllocatorRules rules,
    const std::vector<std::pair<std::string, std::string>>& settings)
    : rules_(rules), max_split_(kNoLimit) {
  constexpr std::string_view kDivisions = "roundup_power2_divisions.";
  for (const auto& [key, value] : settings) {
    if (key == "max_split_size") {
      if (const auto n = ParseInt(value); n && *n >= 0 && *n < kMostSetting)
        max_split_ = *n;
    } else if (key == "expandable_segments") {
      expandable_ = value == "True" || value == "1";
    } else if (key.starts_with(kDivisions)) {
      const auto from =
          ParseInt(std::string_view(key).substr(kDivisions.size()));
      const auto n = ParseInt(value);
      if (!from || !n || *from < 1 || *from > (int64_t{1} << 40) || *n < 0)
        continue;
      ++intervals_;
      divisions_[Log2(*from)] = std::min<int64_t>(*n, int64_t{1} << 30);
    } else if (key.find("ALLOC_CONF") != std::string::npos) {
      if (const auto n = NumberOf(value, "large_segment_size_mb");
          n && *n >= 2 && *n < (1 << 20))
        rules_.large_segment = *n << 20;
      if (const auto n = NumberOf(value, "max_non_split_rounding_mb");
          n && *n >= 0 && *n < (1 << 20))
        rules_.unsplit_excess = *n << 20;
      if (value.find("page_size:1g") != std::string::npos)
        rules_.segment_multiple = int64_t{1} << 30;
    }
  }
}

int64_t Allocator::Rounded(int64_t bytes) const {
  if (bytes < rules_.block) return rules_.block;
  if (intervals_ > 0) {
    const int log2 = Log2(bytes);
    const int interval = std::min(std::max(0, log2 - 20), intervals_ - 1);
    const int64_t divisions = divisions_[interval];
    const bool power = std::has_single_bit(static_cast<uint64_t>(bytes));
    if (divisions > 1 && bytes > rules_.block * divisions) {
      if (power) return bytes;
      const int64_t floor = int64_t{1} << log2;
      const int64_t step = floor >> Log2(divisions);
      return step == 0 ? floor << 1 : RoundUp(bytes, step);
    }
  }
  return RoundUp(bytes, rules_.block);
}

int64_t Allocator::SegmentOf(int64_t rounded) const {
  if (IsSmall(rounded)) return rules_.small_segment;
  if (rounded < rules_.large_request) return rules_.large_segment;
  return RoundUp(rounded, rules_.segment_multiple);
}

int64_t Allocator::BlockIn(int64_t rounded, int64_t room) const {
  if (room <= rounded) return rounded;
  const int64_t rest = room - rounded;
  const bool split = IsSmall(rounded)
                         ? rest >= rules_.block
                         : rounded < max_split_ && rest > rules_.unsplit_rest;
  return split ? rounded : room;
}

}  // namespace lamina::memory
