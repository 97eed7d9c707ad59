// SPDX-License-Identifier: Apache-2.0
#include "memory/diff.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::memory {
namespace {

constexpr std::string_view kCache = "(cached, free)";

struct Side {
  int64_t bytes = 0;
  size_t blocks = 0;
  std::map<std::string_view, int64_t> categories;
  std::string line;  // of the largest
  int64_t largest = 0;
  int64_t lifetime = 0;  // events, summed

  void Add(const Side& other) {
    bytes += other.bytes;
    blocks += other.blocks;
    for (const auto& [name, sum] : other.categories) categories[name] += sum;
    if (other.largest > largest) {
      largest = other.largest;
      line = other.line;
    }
    lifetime += other.lifetime;
  }
  std::string_view Category() const {
    std::string_view best;
    int64_t most = -1;
    for (const auto& [name, sum] : categories) {
      if (sum > most) best = name;
      most = std::max(most, sum);
    }
    return best;
  }
  std::optional<int64_t> Mean() const {
    if (blocks == 0) return std::nullopt;
    return bytes / static_cast<int64_t>(blocks);
  }
};

struct Row {
  std::string change, why, module, op, line_key;
  Side a, b;
  int64_t delta() const { return b.bytes - a.bytes; }
};

std::optional<std::string_view> TextOrNull(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// Module, op, file and function.
using DiffKey = std::tuple<std::string, std::string, std::string>;
struct Pair {
  Side a, b;
};

struct Totals {
  int64_t reserved = 0;
  int64_t active = 0;
};

Totals Collect(const Recording& recording, std::map<DiffKey, Pair>* rows,
               Side Pair::*side) {
  Totals totals;
  for (const DeviceView& view : recording.devices) {
    const Levels at = view.device->At(view.moment);
    totals.reserved += at.reserved;
    totals.active += at.active;
    size_t holes = 0;
    for (const SegmentState& segment : StateAt(*view.device, view.moment))
      holes += segment.holes.size();
    Side& cache = (*rows)[{"", "", std::string(kCache)}].*side;
    cache.bytes += at.reserved - at.active;
    cache.blocks += holes;
    for (const uint32_t id : ActiveAt(*view.device, view.moment)) {
      const Allocation& a = view.device->allocations()[id];
      const StackFacts& facts = view.attribution->Of(a);
      Side& row = (*rows)[{facts.module_key, facts.op, facts.line_key}].*side;
      row.bytes += a.bytes;
      ++row.blocks;
      row.categories[CategoryName(static_cast<Category>(a.category))] +=
          a.bytes;
      if (a.bytes > row.largest) {
        row.largest = a.bytes;
        row.line = facts.line;
      }
      const Moment end = a.freed() ? a.active_until : view.device->moments();
      row.lifetime += end - std::max<Moment>(a.start, 0);
    }
  }
  return totals;
}

std::string Why(const Side& a, const Side& b) {
  std::vector<std::string> reasons;
  if (a.blocks != b.blocks)
    reasons.push_back(b.blocks > a.blocks ? "more blocks" : "fewer blocks");
  if (a.Mean() != b.Mean())
    reasons.push_back(*b.Mean() > *a.Mean() ? "larger blocks"
                                            : "smaller blocks");
  if (a.Category() != b.Category()) reasons.push_back("other category");
  const int64_t life_a = a.lifetime / static_cast<int64_t>(a.blocks);
  const int64_t life_b = b.lifetime / static_cast<int64_t>(b.blocks);
  if (life_b > 2 * life_a) reasons.push_back("alive longer");
  if (life_a > 2 * life_b) reasons.push_back("alive shorter");
  return fmt::format("{}", fmt::join(reasons, ", "));
}

struct SettingRow {
  std::string_view key, value_a, value_b;
};

void AddSettings(const Recording& a, const Recording& b, ResultSet* result) {
  const RowColumns<SettingRow> columns{
      "memory_diff_settings",
      "Settings of the allocator that differ.",
      {{"key", ColumnType::kText, "Setting.", &SettingRow::key},
       {"value_a", ColumnType::kText, "In A.", &SettingRow::value_a},
       {"value_b", ColumnType::kText, "In B.", &SettingRow::value_b}}};
  Table table(columns.schema());
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const auto& [key, value] : a.snapshot->settings)
    settings[key].first = value;
  for (const auto& [key, value] : b.snapshot->settings)
    settings[key].second = value;
  for (const auto& [key, values] : settings) {
    if (values.first != values.second)
      columns.Add(
          table,
          {.key = key, .value_a = values.first, .value_b = values.second});
  }
  result->tables.push_back(std::move(table));
}

struct SegmentRow {
  std::string_view where;
  size_t segments;
  int64_t bytes;
};

void AddSegments(const Recording& a, const Recording& b, ResultSet* result) {
  const RowColumns<SegmentRow> columns{
      "memory_diff_segments",
      "Segments by address and size, which only snapshots of one "
      "process share.",
      {{"where", ColumnType::kText, "only A, only B or both.",
        &SegmentRow::where},
       {"segments", ColumnType::kInt, "How many.", &SegmentRow::segments},
       {"bytes", ColumnType::kInt, "Their bytes.", &SegmentRow::bytes,
        Shown::kBytes}}};
  Table table(columns.schema());
  std::set<std::tuple<int64_t, int64_t, int64_t>> in_a, in_b;
  for (const Segment& s : a.snapshot->segments)
    in_a.emplace(s.device, s.address, s.size);
  for (const Segment& s : b.snapshot->segments)
    in_b.emplace(s.device, s.address, s.size);
  size_t counts[3] = {};
  int64_t bytes[3] = {};
  const auto count = [&](size_t k, const auto& key) {
    ++counts[k];
    bytes[k] += std::get<2>(key);
  };
  for (const auto& key : in_a) count(in_b.contains(key) ? 2 : 0, key);
  for (const auto& key : in_b) {
    if (!in_a.contains(key)) count(1, key);
  }
  columns.Add(table,
              {.where = "only A", .segments = counts[0], .bytes = bytes[0]});
  columns.Add(table,
              {.where = "only B", .segments = counts[1], .bytes = bytes[1]});
  columns.Add(table,
              {.where = "both", .segments = counts[2], .bytes = bytes[2]});
  result->tables.push_back(std::move(table));
}

}  // namespace

Result<ResultSet> DiffRecordings(const Recording& a, const Recording& b) {
  std::map<DiffKey, Pair> rows;
  const Totals total_a = Collect(a, &rows, &Pair::a);
  const Totals total_b = Collect(b, &rows, &Pair::b);
  std::vector<Row> out;
  // What has no partner of its module may have one elsewhere.
  std::map<std::pair<std::string, std::string>, std::vector<Row>> alone;
  for (const auto& [key, pair] : rows) {
    const auto& [module, op, line] = key;
    Row row{"", "", module, op, line, pair.a, pair.b};
    const bool cache = line == kCache;
    if (!cache && (pair.a.blocks == 0 || pair.b.blocks == 0)) {
      alone[{op, line}].push_back(std::move(row));
      continue;
    }
    if (pair.a.bytes == pair.b.bytes && pair.a.blocks == pair.b.blocks) {
      row.change = "same";
    } else {
      row.change = "changed";
      if (!cache) row.why = Why(pair.a, pair.b);
    }
    out.push_back(std::move(row));
  }
  for (auto& [key, list] : alone) {
    const auto only_b = [](const Row& row) { return row.a.blocks == 0; };
    std::stable_partition(list.begin(), list.end(),
                          [&](const Row& row) { return !only_b(row); });
    if (only_b(list.front()) == only_b(list.back())) {
      for (Row& row : list) {
        row.change = only_b(row) ? "added" : "removed";
        out.push_back(std::move(row));
      }
      continue;
    }
    Row moved = std::move(list.front());
    bool left = true;  // modules of A
    for (size_t k = 1; k < list.size(); ++k) {
      const bool turns = left && only_b(list[k]);
      moved.module += (turns ? " -> " : ", ") + list[k].module;
      left = left && !turns;
      moved.a.Add(list[k].a);
      moved.b.Add(list[k].b);
    }
    moved.change = "moved";
    out.push_back(std::move(moved));
  }
  std::sort(out.begin(), out.end(), [](const Row& x, const Row& y) {
    const int64_t p = std::abs(x.delta());
    const int64_t q = std::abs(y.delta());
    return p != q ? p > q
                  : std::tie(x.line_key, x.op, x.module) <
                        std::tie(y.line_key, y.op, y.module);
  });
  const RowColumns<Row> columns{
      "memory_diff",
      "What is active at the moments that are compared; the deltas sum to "
      "the difference of what is reserved.",
      {{"change", ColumnType::kText,
        "added, removed, changed, moved to another module, or same.",
        &Row::change},
       {"line", ColumnType::kText, "File and function.", &Row::line_key},
       {"op", ColumnType::kText, "Op that asked.", &Row::op},
       {"module", ColumnType::kText, "Calls of modules.", &Row::module,
        Shown::kHidden},
       {"delta_bytes", ColumnType::kInt, "More in B.", &Row::delta,
        Shown::kBytes},
       {"bytes_a", ColumnType::kInt, "Bytes in A.",
        [](const Row& row) { return row.a.bytes; }, Shown::kBytes},
       {"bytes_b", ColumnType::kInt, "Bytes in B.",
        [](const Row& row) { return row.b.bytes; }, Shown::kBytes},
       {"blocks_a", ColumnType::kInt, "Blocks in A.",
        [](const Row& row) { return row.a.blocks; }},
       {"blocks_b", ColumnType::kInt, "Blocks in B.",
        [](const Row& row) { return row.b.blocks; }},
       {"mean_a", ColumnType::kInt, "Mean block in A.",
        [](const Row& row) { return row.a.Mean(); }, Shown::kHidden},
       {"mean_b", ColumnType::kInt, "Mean block in B.",
        [](const Row& row) { return row.b.Mean(); }, Shown::kHidden},
       {"category_a", ColumnType::kText, "Most of it in A.",
        [](const Row& row) { return TextOrNull(row.a.Category()); },
        Shown::kHidden},
       {"category_b", ColumnType::kText, "Most of it in B.",
        [](const Row& row) { return TextOrNull(row.b.Category()); },
        Shown::kHidden},
       {"line_a", ColumnType::kText, "Largest block's line in A.",
        [](const Row& row) { return TextOrNull(row.a.line); }, Shown::kHidden},
       {"line_b", ColumnType::kText, "Largest block's line in B.",
        [](const Row& row) { return TextOrNull(row.b.line); }, Shown::kHidden},
       {"why", ColumnType::kText, "What changed about it.",
        [](const Row& row) { return TextOrNull(row.why); }}}};

  ResultSet result;
  const int64_t delta = total_b.reserved - total_a.reserved;
  const auto size = [](int64_t bytes) {
    return HumanBytes(static_cast<double>(bytes));
  };
  result.notes.push_back(MakeNote(
      Severity::kVerdict, "memory_diff",
      fmt::format("B reserves {} {} than A: {} against {}; active {} against "
                  "{}.",
                  size(std::abs(delta)), delta < 0 ? "less" : "more",
                  size(total_b.reserved), size(total_a.reserved),
                  size(total_b.active), size(total_a.active)),
      {{"memory_diff", "", "", {}}}));
  result.tables.push_back(columns.Make(out));
  AddSettings(a, b, &result);
  AddSegments(a, b, &result);
  return result;
}

}  // namespace lamina::memory
