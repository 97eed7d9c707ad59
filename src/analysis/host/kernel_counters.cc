// SPDX-License-Identifier: Apache-2.0
//
// Ranges, the kernels or calls that they may belong to, and how both are
// paired: in one file, because nothing else asks for any of it.
#include "analysis/host/kernel_counters.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "table/row_columns.h"
#include "trace/categories.h"

namespace lamina::analysis::host {
namespace {

using OptionalInt = std::optional<int64_t>;
using OptionalText = std::optional<std::string_view>;

constexpr size_t kMostLeftOver = 2000;

struct CounterCell {
  OptionalInt uid;
  std::string_view name;
  OptionalText op;
  std::string_view counter;
  double value;
  std::string_view evidence;
  OptionalInt range_uid;
};

const RowColumns<CounterCell>& Columns() {
  using R = CounterCell;
  static const RowColumns<R> columns{
      "counter_kernels",
      "Hardware counters by kernel, where the profiler recorded them with it, "
      "or read them over the range of each.",
      {{"uid", ColumnType::kInt,
        "Event number of the kernel or, where no kernels are recorded, of the "
        "call that launched it; empty: not known.",
        &R::uid},
       {"name", ColumnType::kText,
        "Kernel, as the range has it where there is one.", &R::name},
       {"op", ColumnType::kText, "Op that launched it.", &R::op},
       {"counter", ColumnType::kText, "Name of the counter.", &R::counter},
       {"reading", ColumnType::kReal, "As recorded.", &R::value},
       {"evidence", ColumnType::kText,
        "recorded: with the kernel itself; "
        "order: as many ranges as launches, and names do not say otherwise; "
        "name: by names in order (longest common subsequence; where more than "
        "2,000 are left over, those at both ends alone); unmatched.",
        &R::evidence},
       {"range_uid", ColumnType::kInt,
        "Event number of the range; empty: recorded with the kernel.",
        &R::range_uid}}};
  return columns;
}

// A range and its rows of Trace::event_counters.
struct Range {
  SliceId slice;
  size_t begin = 0, end = 0;
};

// What a range may belong to.
struct Target {
  SliceId slice;
  StringId name;  // of the kernel; invalid: not known
};

// Demanglers differ in their blanks.
std::string PlainName(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != ' ') out += c;
  }
  return out;
}

class KernelCounters {
 public:
  explicit KernelCounters(const HostModel& model)
      : model_(model), trace_(model.trace()), table_(Columns()) {}

  ResultSet Make() {
    // By the process of the ranges, which is that of the device.
    std::map<std::string_view, std::vector<Range>> devices;
    for (const Range& range : FindRanges()) {
      if (trace::IsDevice(trace_.KindOf(range.slice))) {
        AddRecorded(range);
      } else {
        devices[trace_.Text(trace_.TrackOf(range.slice).pid)].push_back(range);
      }
    }
    if (!devices.empty()) FindTargets(devices.size() == 1);
    for (auto& [pid, ranges] : devices) {
      const auto found = by_process_.find(pid);
      Add(ranges, found == by_process_.end() ? all_ : found->second);
    }
    ResultSet result;
    result.tables.push_back(table_.Take());
    if (ranges_ > 0) Say(result);
    return result;
  }

 private:
  std::pair<int64_t, uint32_t> Key(SliceId s) const {
    return {trace_.Start(s), trace_.Uid(s)};
  }

  // A kernel that has its counters itself.
  void AddRecorded(const Range& kernel) {
    ++ranges_;
    CounterCell row;
    row.uid = trace_.Uid(kernel.slice);
    row.name = trace_.Name(kernel.slice);
    row.op = OpOf(kernel.slice);
    row.evidence = "recorded";
    AddCells(row, kernel);
  }

  void AddCells(CounterCell& row, const Range& range) {
    for (size_t k = range.begin; k < range.end; ++k) {
      row.counter = trace_.Text(trace_.event_counters[k].name);
      row.value = trace_.event_counters[k].value;
      table_.Add(row);
    }
  }

  // Kernels and ranges that have counters, by start.
  std::vector<Range> FindRanges() const {
    const auto& rows = trace_.event_counters;
    absl::flat_hash_map<uint32_t, std::pair<size_t, size_t>> at;
    for (size_t i = 0; i < rows.size();) {
      const size_t begin = i;
      while (i < rows.size() && rows[i].uid == rows[begin].uid) ++i;
      at[rows[begin].uid] = {begin, i};
    }
    std::vector<Range> ranges;
    if (at.empty()) return ranges;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      const trace::Kind kind = trace_.KindOf(s);
      if ((kind != trace::Kind::kOther && !trace::IsDevice(kind)) ||
          trace_.captured.Has(s))
        continue;
      const auto found = at.find(trace_.Uid(s));
      if (found != at.end())
        ranges.push_back({s, found->second.first, found->second.second});
    }
    std::sort(ranges.begin(), ranges.end(),
              [&](const Range& a, const Range& b) {
                return Key(a.slice) < Key(b.slice);
              });
    return ranges;
  }

  // Kernels by process, and where the ranges are of one process all of them or
  // the calls that launch; in the order of the launches.
  void FindTargets(bool alone) {
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      const Target target = {s, trace_.slices.name[s.value]};
      if (alone) all_.push_back(target);
      by_process_[trace_.Text(trace_.streams[model_.stream(s)].pid)].push_back(
          target);
    }
    if (all_.empty() && alone) {
      for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
        const SliceId s(i);
        const std::string_view name = trace_.Name(s);
        if (!trace::IsApiCall(trace_.KindOf(s)) || trace_.captured.Has(s) ||
            name.find("Launch") == std::string_view::npos ||
            name.find("Kernel") == std::string_view::npos)
          continue;
        const trace::ApiArgs* const api = trace_.Api(s);
        all_.push_back({s, api != nullptr ? api->kernel : StringId()});
      }
    }
    const auto key = [&](const Target& target) {
      const uint32_t call = trace::IsDevice(trace_.KindOf(target.slice))
                                ? model_.call(target.slice)
                                : kNone;
      return std::tuple(call == kNone
                            ? trace_.Start(target.slice)
                            : trace_.Start(model_.calls()[call].slice),
                        trace_.Start(target.slice), trace_.Uid(target.slice));
    };
    const auto sort = [&](std::vector<Target>& targets) {
      std::sort(
          targets.begin(), targets.end(),
          [&](const Target& a, const Target& b) { return key(a) < key(b); });
    };
    sort(all_);
    for (auto& [pid, targets] : by_process_) sort(targets);
  }

  void Add(const std::vector<Range>& ranges,
           const std::vector<Target>& targets) {
    const std::vector<uint32_t> partner = ByName(ranges, targets);
    bool in_order = ranges.size() == targets.size();
    if (in_order) {
      // Unless names say that one is missing here and another one there.
      size_t here = 0, anywhere = 0;
      for (size_t i = 0; i < partner.size(); ++i) {
        anywhere += partner[i] != kNone ? 1 : 0;
        here += SameName(ranges[i], targets[i]) ? 1 : 0;
      }
      in_order = here >= anywhere;
    }
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint32_t at = in_order ? static_cast<uint32_t>(i) : partner[i];
      ++ranges_;
      if (at == kNone) ++unmatched_;
      const SliceId target = at == kNone ? SliceId() : targets[at].slice;
      CounterCell row;
      row.name = trace_.Name(ranges[i].slice);
      row.range_uid = trace_.Uid(ranges[i].slice);
      row.evidence = at == kNone ? "unmatched" : in_order ? "order" : "name";
      if (target.valid()) {
        row.uid = trace_.Uid(target);
        row.op = OpOf(target);
      }
      AddCells(row, ranges[i]);
    }
  }

  bool SameName(const Range& range, const Target& target) const {
    return target.name.valid() &&
           (trace_.slices.name[range.slice.value] == target.name ||
            PlainName(trace_.Name(range.slice)) ==
                PlainName(trace_.Text(target.name)));
  }

  std::vector<uint32_t> ByName(const std::vector<Range>& ranges,
                               const std::vector<Target>& targets) const {
    // Names without blanks as numbers. What has no name is like nothing else.
    std::map<std::string, uint32_t> numbers;
    absl::flat_hash_map<StringId, uint32_t> known;
    const auto number = [&](StringId name) {
      const auto [it, is_new] = known.try_emplace(name, 0);
      if (is_new) {
        it->second = numbers
                         .try_emplace(PlainName(trace_.Text(name)),
                                      static_cast<uint32_t>(numbers.size()))
                         .first->second;
      }
      return it->second;
    };
    std::vector<uint32_t> a, b;
    for (const Range& range : ranges)
      a.push_back(number(trace_.slices.name[range.slice.value]));
    for (const Target& target : targets)
      b.push_back(target.name.valid() ? number(target.name) : kNone);
    return CommonSubsequence(a, b);
  }

  OptionalText OpOf(SliceId s) const {
    const tree::Tree& tree = model_.context().tree;
    const NodeId op = trace::IsDevice(trace_.KindOf(s))
                          ? model_.context().device.launcher(s)
                          : tree.EnclosingOp(tree.node(s));
    return op.valid() ? OptionalText(tree.name(op)) : std::nullopt;
  }

  void Say(ResultSet& result) const {
    std::string text = "The profiler read hardware counters over " +
                       Counted(ranges_, "kernel") +
                       ": counter_kernels has them.";
    if (unmatched_ > 0) {
      text += " Of " + Counted(unmatched_, "of them", "of them") +
              " it is not known which launch it was.";
    }
    result.notes.push_back(
        MakeNote(unmatched_ > 0 ? Severity::kWarning : Severity::kInfo,
                 "kernel_counters", text, {{"counter_kernels", "", "", {}}}));
  }

  const HostModel& model_;
  const Trace& trace_;
  RowWriter<CounterCell> table_;
  std::map<std::string_view, std::vector<Target>> by_process_;
  std::vector<Target> all_;
  uint64_t ranges_ = 0, unmatched_ = 0;
};

}  // namespace

std::vector<uint32_t> CommonSubsequence(std::span<const uint32_t> a,
                                        std::span<const uint32_t> b) {
  std::vector<uint32_t> partner(a.size(), kNone);
  size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) {
    partner[begin] = static_cast<uint32_t>(begin);
    ++begin;
  }
  size_t a_end = a.size(), b_end = b.size();
  while (a_end > begin && b_end > begin && a[a_end - 1] == b[b_end - 1])
    partner[--a_end] = static_cast<uint32_t>(--b_end);
  const auto n = static_cast<int64_t>(a_end - begin);
  const auto m = static_cast<int64_t>(b_end - begin);
  const auto same = [&](int64_t x, int64_t y) {
    return a[begin + static_cast<size_t>(x)] ==
           b[begin + static_cast<size_t>(y)];
  };
  // How far one comes on the diagonal k = x - y with d elements left over: x at
  // reach[d][k + d].
  std::vector<std::vector<int64_t>> reach;
  const auto most =
      std::min<int64_t>(n + m, static_cast<int64_t>(kMostLeftOver));
  const auto from_above = [&](const std::vector<int64_t>& before, int64_t d,
                              int64_t k) {
    // before[i] is diagonal i - (d - 1).
    const auto at = [&](int64_t diagonal) {
      return before[static_cast<size_t>(diagonal + d - 1)];
    };
    return k == -d || (k != d && at(k - 1) < at(k + 1));
  };
  bool done = n == 0 || m == 0;
  for (int64_t d = 0; !done && d <= most; ++d) {
    std::vector<int64_t> row(static_cast<size_t>(2 * d + 1), 0);
    for (int64_t k = -d; k <= d && !done; k += 2) {
      int64_t x = 0;
      if (d > 0) {
        const auto& before = reach.back();
        x = from_above(before, d, k)
                ? before[static_cast<size_t>(k + 1 + d - 1)]
                : before[static_cast<size_t>(k - 1 + d - 1)] + 1;
      }
      int64_t y = x - k;
      while (x < n && y < m && x >= 0 && y >= 0 && same(x, y)) {
        ++x;
        ++y;
      }
      row[static_cast<size_t>(k + d)] = x;
      done = k == n - m && x >= n;
    }
    reach.push_back(std::move(row));
  }
  if (n == 0 || m == 0 || !done) return partner;
  // Back along the way.
  int64_t x = n, y = m;
  for (auto d = static_cast<int64_t>(reach.size()) - 1; d >= 0; --d) {
    const int64_t k = x - y;
    int64_t before_x = 0, before_y = 0;
    if (d > 0) {
      const auto& before = reach[static_cast<size_t>(d - 1)];
      const int64_t from = from_above(before, d, k) ? k + 1 : k - 1;
      before_x = before[static_cast<size_t>(from + d - 1)];
      before_y = before_x - from;
    }
    while (x > before_x && y > before_y && same(x - 1, y - 1)) {
      --x;
      --y;
      partner[begin + static_cast<size_t>(x)] =
          static_cast<uint32_t>(begin) + static_cast<uint32_t>(y);
    }
    x = before_x;
    y = before_y;
  }
  return partner;
}

Schema KernelCounterSchema() { return Columns().schema(); }

ResultSet KernelCounterTables(const HostModel& model) {
  return KernelCounters(model).Make();
}

}  // namespace lamina::analysis::host
