// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables of a comparison. Times are in nanoseconds; what the
// columns mean stands at their lists.

#include "compare/diff/tables.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <optional>
#include <string_view>

#include "analysis/common/gaps.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/status.h"
#include "base/text.h"
#include "compare/diff/sums.h"
#include "table/row_columns.h"

namespace lamina::analysis::diff {

using OptionalText = std::optional<std::string_view>;

struct DiffTotalsRow {
  std::string_view side, input;
  OptionalText device;
  int64_t steps, kernel_time, listed, unchanged, unlinked, busy, idle, total,
      device_slices;
};
const RowColumns<DiffTotalsRow>& TotalsColumns();

struct DiffCauseRow {
  std::string_view cause, change;
  std::optional<int64_t> count_a, count_b;
  int64_t time_a, time_b, delta;
  std::optional<double> percent;
};
const RowColumns<DiffCauseRow>& CauseColumns();

struct DiffOpRow {
  std::string_view op, module;
  OptionalText shapes;
  std::string_view kind;
  int64_t delta, kernel_time_a, kernel_time_b, count_a, count_b;
  std::optional<double> ratio;
  OptionalText module_b, shapes_b, types_a, types_b;
  std::optional<uint32_t> uid_a, uid_b;
};
const RowColumns<DiffOpRow>& OpColumns();

struct DiffKernelRow {
  std::string_view op;
  OptionalText kernel_a, kernel_b;
  int64_t delta, kernel_time_a, kernel_time_b, count_a, count_b;
};
const RowColumns<DiffKernelRow>& KernelColumns();

struct DiffByRow {
  std::string_view dimension, key;
  std::optional<int64_t> count_a, count_b;
  int64_t time_a, time_b, delta;
};
const RowColumns<DiffByRow>& ByColumns();

struct DiffCallRow {
  std::string_view call;
  int64_t count_a, count_b, launched_a, launched_b, host_a, host_b, delta;
};
const RowColumns<DiffCallRow>& CallColumns();

struct DiffMovedRow {
  std::string_view name, module;
  int64_t kernel_time_a, kernel_time_b;
  std::optional<uint32_t> uid_a, uid_b;
};
const RowColumns<DiffMovedRow>& MovedColumns();

const RowColumns<DiffTotalsRow>& TotalsColumns() {
  static const RowColumns<DiffTotalsRow> columns{
      "diff_totals",
      "Device time of each side: kernel_time = listed + unchanged + unlinked, "
      "total = busy + idle.",
      {{"side", ColumnType::kText, "a or b, as in the other tables.",
        &DiffTotalsRow::side},
       {"input", ColumnType::kText, "The trace.", &DiffTotalsRow::input,
        Shown::kHidden},
       {"device", ColumnType::kText, "Name of its device.",
        &DiffTotalsRow::device, Shown::kHidden},
       {"steps", ColumnType::kInt, "Steps in it.", &DiffTotalsRow::steps,
        Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &DiffTotalsRow::kernel_time},
       {"listed_us", ColumnType::kTime, "Part of that in diff_ops.",
        &DiffTotalsRow::listed},
       {"unchanged_us", ColumnType::kTime,
        "Part of ops with the same count, kernels and time on both sides.",
        &DiffTotalsRow::unchanged},
       {"unlinked_us", ColumnType::kTime, "Part without a launch.",
        &DiffTotalsRow::unlinked},
       {"busy_us", ColumnType::kTime, "Time in which the device worked.",
        &DiffTotalsRow::busy},
       {"idle_us", ColumnType::kTime, "Time in which it did not.",
        &DiffTotalsRow::idle},
       {"total_us", ColumnType::kTime, "From its first start to its last end.",
        &DiffTotalsRow::total},
       {"device_slices", ColumnType::kInt, "Kernels, copies and fills.",
        &DiffTotalsRow::device_slices, Shown::kHidden}}};
  return columns;
}

const RowColumns<DiffCauseRow>& CauseColumns() {
  static const RowColumns<DiffCauseRow> columns{
      "diff_causes",
      "Why the total time differs; the deltas add up to the difference.",
      {{"cause", ColumnType::kText,
        "Op; \"(other ops)\", \"(unlinked)\": work without a launch, "
        "\"(overlap)\": busy time less the sum of durations, \"(idle)\".",
        &DiffCauseRow::cause},
       {"change", ColumnType::kText, "As kind in diff_ops.",
        &DiffCauseRow::change},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffCauseRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffCauseRow::count_b},
       {"time_a_us", ColumnType::kTime, "Time in A.", &DiffCauseRow::time_a},
       {"time_b_us", ColumnType::kTime, "Time in B.", &DiffCauseRow::time_b},
       {"delta_us", ColumnType::kTime, "B less A.", &DiffCauseRow::delta},
       {"percent", ColumnType::kReal, "The delta as a share of A's total time.",
        &DiffCauseRow::percent, Shown::kPercent}}};
  return columns;
}

const RowColumns<DiffOpRow>& OpColumns() {
  static const RowColumns<DiffOpRow> columns{
      "diff_ops",
      "Ops that differ, by module and shapes; largest difference first.",
      {{"op", ColumnType::kText,
        "Op that launches; an API call with its kernel where there is none.",
        &DiffOpRow::op},
       {"module", ColumnType::kText, "Path of its nn.Module.",
        &DiffOpRow::module},
       {"shapes", ColumnType::kText,
        "Shapes of its inputs, JSON; of A where both sides have it.",
        &DiffOpRow::shapes},
       {"kind", ColumnType::kText,
        "changed: time or count; only_a, only_b; other_kernel; other_shape: "
        "other shapes; other_dtype: other element types.",
        &DiffOpRow::kind},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A.",
        &DiffOpRow::delta},
       {"kernel_time_a_us", ColumnType::kTime,
        "Sum of the durations of its device work in A.",
        &DiffOpRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B.",
        &DiffOpRow::kernel_time_b},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffOpRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffOpRow::count_b},
       {"ratio", ColumnType::kReal,
        "Time in B by time in A; empty unless both have it.",
        &DiffOpRow::ratio},
       {"module_b", ColumnType::kText,
        "Path of the module in B where it differs.", &DiffOpRow::module_b,
        Shown::kHidden},
       {"shapes_b", ColumnType::kText, "Shapes in B where they differ.",
        &DiffOpRow::shapes_b, Shown::kHidden},
       {"types_a", ColumnType::kText, "Types of its inputs in A.",
        &DiffOpRow::types_a, Shown::kHidden},
       {"types_b", ColumnType::kText, "The same in B.", &DiffOpRow::types_b,
        Shown::kHidden},
       {"uid_a", ColumnType::kInt, "Event number of the first call in A.",
        &DiffOpRow::uid_a, Shown::kHidden},
       {"uid_b", ColumnType::kInt, "The same in B.", &DiffOpRow::uid_b,
        Shown::kHidden}}};
  return columns;
}

const RowColumns<DiffKernelRow>& KernelColumns() {
  static const RowColumns<DiffKernelRow> columns{
      "diff_kernels",
      "Kernels that differ, by op; largest difference first.",
      {{"op", ColumnType::kText, "As in diff_ops; empty: without a launch.",
        &DiffKernelRow::op},
       {"kernel_a", ColumnType::kText, "Kernel in A; empty: only in B.",
        &DiffKernelRow::kernel_a},
       {"kernel_b", ColumnType::kText, "Kernel in B; empty: only in A.",
        &DiffKernelRow::kernel_b},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A.",
        &DiffKernelRow::delta},
       {"kernel_time_a_us", ColumnType::kTime, "Sum of durations in A.",
        &DiffKernelRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "Sum of durations in B.",
        &DiffKernelRow::kernel_time_b},
       {"count_a", ColumnType::kInt, "Times it ran in A.",
        &DiffKernelRow::count_a},
       {"count_b", ColumnType::kInt, "Times it ran in B.",
        &DiffKernelRow::count_b}}};
  return columns;
}

const RowColumns<DiffByRow>& ByColumns() {
  static const RowColumns<DiffByRow> columns{
      "diff_by",
      "Differences along one dimension each.",
      {{"dimension", ColumnType::kText,
        "category, module, layer or timeline. The times of the first three "
        "add up to kernel_time_us, of the last to total_us.",
        &DiffByRow::dimension},
       {"key", ColumnType::kText, "What is compared.", &DiffByRow::key},
       {"count_a", ColumnType::kInt, "Kernels, copies and fills in A.",
        &DiffByRow::count_a},
       {"count_b", ColumnType::kInt, "The same in B.", &DiffByRow::count_b},
       {"time_a_us", ColumnType::kTime, "Time in A.", &DiffByRow::time_a},
       {"time_b_us", ColumnType::kTime, "Time in B.", &DiffByRow::time_b},
       {"delta_us", ColumnType::kTime, "B less A.", &DiffByRow::delta}}};
  return columns;
}

const RowColumns<DiffCallRow>& CallColumns() {
  static const RowColumns<DiffCallRow> columns{
      "diff_calls",
      "Calls of CUDA or HIP whose number or host time differs.",
      {{"call", ColumnType::kText,
        "Name without \"cuda\" and \"hip\"; LaunchKernel stands for all its "
        "variants.",
        &DiffCallRow::call},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffCallRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffCallRow::count_b},
       {"launched_a", ColumnType::kInt, "Device work they launched in A.",
        &DiffCallRow::launched_a},
       {"launched_b", ColumnType::kInt, "The same in B.",
        &DiffCallRow::launched_b},
       {"host_a_us", ColumnType::kTime, "Host time in A.",
        &DiffCallRow::host_a},
       {"host_b_us", ColumnType::kTime, "Host time in B.",
        &DiffCallRow::host_b},
       {"delta_us", ColumnType::kTime, "Host time in B less A.",
        &DiffCallRow::delta}}};
  return columns;
}

const RowColumns<DiffMovedRow>& MovedColumns() {
  static const RowColumns<DiffMovedRow> columns{
      "diff_moved",
      "What both sides do, but at another place among its neighbours.",
      {{"name", ColumnType::kText, "Op or module.", &DiffMovedRow::name},
       {"module", ColumnType::kText, "Path of its nn.Module.",
        &DiffMovedRow::module},
       {"kernel_time_a_us", ColumnType::kTime, "Device time inside in A.",
        &DiffMovedRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B.",
        &DiffMovedRow::kernel_time_b},
       {"uid_a", ColumnType::kInt, "Event number in A.", &DiffMovedRow::uid_a},
       {"uid_b", ColumnType::kInt, "Event number in B.",
        &DiffMovedRow::uid_b}}};
  return columns;
}

namespace {

constexpr const char* kSides[] = {"a", "b"};
// From this share on, work without a launch is worth a warning.
constexpr double kManyUnlinked = 0.05;

// Largest difference first; ties keep their order.
template <class Row>
void SortByDelta(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    return std::abs(x.delta_ns()) > std::abs(y.delta_ns());
  });
}

// Row + 1 of a table by the id of what stands there.
class Places {
 public:
  explicit Places(size_t ids) : row_(ids, 0) {}

  void Set(uint32_t id, size_t row) {
    row_[id] = static_cast<uint32_t>(row) + 1;
  }
  Members::Rows Of(const SliceRows& ids) const {
    Members::Rows out;
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (const uint32_t id : ids[s])
        out[s].push_back(id == kNone ? 0 : row_[id]);
    }
    return out;
  }

 private:
  std::vector<uint32_t> row_;
};

class Writer {
 public:
  explicit Writer(Differences& differences) : d_(differences) {}

  Comparison Run() {
    const std::vector<Cause> causes =
        FindCauses(d_.rows, d_.names, totals(),
                   {d_.sides[0].unlinked_ns, d_.sides[1].unlinked_ns});
    Comparison out;
    out.totals = totals();
    out.result.tables.push_back(TotalsTable());
    out.result.tables.push_back(CausesTable(causes));
    out.result.tables.push_back(OpsTable());
    out.result.tables.push_back(KernelsTable());
    out.result.tables.push_back(ByTable());
    out.result.tables.push_back(CallsTable());
    out.result.tables.push_back(MovedTable());
    members_.cause = CauseMembers(causes);
    out.members = std::move(members_);
    AddNotes(out.result.notes, causes);
    return out;
  }

 private:
  PerSide<Totals> totals() const {
    return {d_.sides[0].totals, d_.sides[1].totals};
  }
  OptionalText Text(StringId id) const {
    return id.valid() ? OptionalText(d_.names.Text(id)) : std::nullopt;
  }

  Table TotalsTable() const {
    PerSide<int64_t> listed{}, unchanged{};
    for (const OpRow& row : d_.rows.ops) {
      for (const size_t s : {size_t{0}, size_t{1}})
        (row.equal() ? unchanged : listed)[s] += row.time_ns[s];
    }
    Table table(TotalsColumns().schema());
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const SideFacts& facts = d_.sides[s];
      const Totals& t = facts.totals;
      LAMINA_CHECK(t.kernel_time_ns ==
                   listed[s] + unchanged[s] + facts.unlinked_ns);
      TotalsColumns().Add(
          table, {.side = kSides[s],
                  .input = facts.input,
                  .device = facts.device.empty() ? std::nullopt
                                                 : OptionalText(facts.device),
                  .steps = facts.steps,
                  .kernel_time = t.kernel_time_ns,
                  .listed = listed[s],
                  .unchanged = unchanged[s],
                  .unlinked = facts.unlinked_ns,
                  .busy = t.busy_ns,
                  .idle = t.idle_ns,
                  .total = t.total_ns,
                  .device_slices = facts.device_slices});
    }
    return table;
  }

  Table CausesTable(const std::vector<Cause>& causes) const {
    Table table(CauseColumns().schema());
    const int64_t whole = d_.sides[0].totals.total_ns;
    for (const Cause& cause : causes) {
      const bool op = cause.count[0] + cause.count[1] > 0;
      const auto count = [&](size_t s) {
        return op ? std::optional(cause.count[s]) : std::nullopt;
      };
      CauseColumns().Add(
          table,
          {.cause = cause.name,
           .change = cause.change,
           .count_a = count(0),
           .count_b = count(1),
           .time_a = cause.time_ns[0],
           .time_b = cause.time_ns[1],
           .delta = cause.delta_ns(),
           .percent =
               whole > 0 ? std::optional(100.0 *
                                         static_cast<double>(cause.delta_ns()) /
                                         static_cast<double>(whole))
                         : std::nullopt});
    }
    return table;
  }

  // Work of an op is that of the cause which sums the op up; "(unlinked)" has
  // the work of no op.
  Members::Rows CauseMembers(const std::vector<Cause>& causes) const {
    Places places(d_.rows.ops.size());
    uint32_t unlinked = 0;
    for (size_t i = 0; i < causes.size(); ++i) {
      for (const uint32_t op : causes[i].ops) places.Set(op, i);
      if (causes[i].name == kUnlinkedCause)
        unlinked = static_cast<uint32_t>(i) + 1;
    }
    Members::Rows out = places.Of(d_.rows.op_of);
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (size_t i = 0; i < out[s].size(); ++i) {
        if (d_.rows.op_of[s][i] == kNone) out[s][i] = unlinked;
      }
    }
    return out;
  }

  Table OpsTable() {
    SortByDelta(d_.rows.ops);
    Table table(OpColumns().schema());
    Places places(d_.rows.ops.size());
    for (const OpRow& row : d_.rows.ops) {
      if (row.equal()) continue;
      places.Set(row.id, table.rows());
      const StringId shapes = row.dims[0].valid() ? row.dims[0] : row.dims[1];
      const bool both = row.count[0] > 0 && row.count[1] > 0;
      OpColumns().Add(
          table,
          {.op = d_.names.Text(row.op),
           .module = d_.names.Text(row.module),
           .shapes = Text(shapes),
           .kind = ChangeName(row.change),
           .delta = row.delta_ns(),
           .kernel_time_a = row.time_ns[0],
           .kernel_time_b = row.time_ns[1],
           .count_a = row.count[0],
           .count_b = row.count[1],
           .ratio = both && row.time_ns[0] > 0
                        ? std::optional(static_cast<double>(row.time_ns[1]) /
                                        static_cast<double>(row.time_ns[0]))
                        : std::nullopt,
           .module_b = Text(row.module_b),
           .shapes_b = both && row.dims[0] != row.dims[1] ? Text(row.dims[1])
                                                          : std::nullopt,
           .types_a = Text(row.types[0]),
           .types_b = Text(row.types[1]),
           .uid_a = row.uid[0],
           .uid_b = row.uid[1]});
    }
    members_.op = places.Of(d_.rows.op_of);
    return table;
  }

  Table KernelsTable() {
    SortByDelta(d_.rows.kernels);
    Table table(KernelColumns().schema());
    Places places(d_.rows.kernels.size());
    for (const KernelRow& row : d_.rows.kernels) {
      if (row.equal()) continue;
      places.Set(row.id, table.rows());
      const auto kernel = [&](size_t s) {
        return row.count[s] > 0 ? Text(row.kernel[s]) : std::nullopt;
      };
      KernelColumns().Add(table, {.op = d_.names.Text(row.op),
                                  .kernel_a = kernel(0),
                                  .kernel_b = kernel(1),
                                  .delta = row.delta_ns(),
                                  .kernel_time_a = row.time_ns[0],
                                  .kernel_time_b = row.time_ns[1],
                                  .count_a = row.count[0],
                                  .count_b = row.count[1]});
    }
    members_.kernel = places.Of(d_.rows.kernel_of);
    return table;
  }

  Table ByTable() {
    Table table(ByColumns().schema());
    for (auto& [sums, row_of] : d_.dimensions) {
      if (sums.empty()) continue;
      const std::string_view dimension = sums.front().dimension;
      const bool timeline = dimension == "timeline";
      if (!timeline) SortByDelta(sums);
      Places places(sums.size());
      for (const Sum& sum : sums) {
        if (sum.count[0] == sum.count[1] && sum.delta_ns() == 0) continue;
        places.Set(sum.id, table.rows());
        const auto count = [&](size_t s) {
          return timeline ? std::nullopt : std::optional(sum.count[s]);
        };
        ByColumns().Add(table, {.dimension = sum.dimension,
                                .key = sum.key,
                                .count_a = count(0),
                                .count_b = count(1),
                                .time_a = sum.time_ns[0],
                                .time_b = sum.time_ns[1],
                                .delta = sum.delta_ns()});
      }
      if (dimension == "category") members_.category = places.Of(row_of);
      if (dimension == "module") members_.module = places.Of(row_of);
      if (dimension == "layer") members_.layer = places.Of(row_of);
    }
    return table;
  }

  Table CallsTable() {
    std::stable_sort(d_.calls.begin(), d_.calls.end(),
                     [](const Calls& x, const Calls& y) {
                       return std::abs(x.host_ns[1] - x.host_ns[0]) >
                              std::abs(y.host_ns[1] - y.host_ns[0]);
                     });
    Table table(CallColumns().schema());
    for (const Calls& c : d_.calls) {
      if (c.count[0] == c.count[1] && c.host_ns[0] == c.host_ns[1] &&
          c.launched[0] == c.launched[1])
        continue;
      CallColumns().Add(table, {.call = c.call,
                                .count_a = c.count[0],
                                .count_b = c.count[1],
                                .launched_a = c.launched[0],
                                .launched_b = c.launched[1],
                                .host_a = c.host_ns[0],
                                .host_b = c.host_ns[1],
                                .delta = c.host_ns[1] - c.host_ns[0]});
    }
    return table;
  }

  Table MovedTable() const {
    Table table(MovedColumns().schema());
    for (const MovedRow& row : d_.moved) {
      MovedColumns().Add(table, {.name = d_.names.Text(row.name),
                                 .module = d_.names.Text(row.module),
                                 .kernel_time_a = row.time_ns[0],
                                 .kernel_time_b = row.time_ns[1],
                                 .uid_a = row.uid[0],
                                 .uid_b = row.uid[1]});
    }
    return table;
  }

  char Letter(size_t s) const { return s == 0 ? 'A' : d_.letter; }
  std::string Input(size_t s) const {
    const SideFacts& facts = d_.sides[s];
    return facts.device.empty()
               ? facts.input
               : fmt::format("{} ({})", facts.input, facts.device);
  }

  // What no cause says: the times are of two kinds of devices.
  std::string OtherDevice() const {
    const std::string& a = d_.sides[0].device;
    const std::string& b = d_.sides[1].device;
    if (a.empty() || b.empty() || a == b) return "";
    return fmt::format(" They ran on different devices: A on {}, {} on {}.", a,
                       d_.letter, b);
  }

  void AddNotes(std::vector<Note>& notes,
                const std::vector<Cause>& causes) const {
    const auto add = [&](Severity severity, std::string id, std::string text) {
      notes.push_back(MakeNote(severity, std::move(id), std::move(text)));
    };
    add(Severity::kVerdict, "diff_verdict",
        Verdict(causes, totals(), d_.letter) + OtherDevice());
    add(Severity::kInfo, "diff_inputs",
        fmt::format("A is {}, {} is {}.", Input(0), d_.letter, Input(1)));
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const SideFacts& facts = d_.sides[s];
      const double share =
          facts.totals.kernel_time_ns > 0
              ? static_cast<double>(facts.unlinked_ns) /
                    static_cast<double>(facts.totals.kernel_time_ns)
              : 0;
      if (share >= kManyUnlinked) {
        add(Severity::kWarning, "diff_unlinked",
            fmt::format("{:.1f} % of the device time of {} has no launch in "
                        "the file; it is compared by the names of kernels "
                        "alone.",
                        100 * share, Letter(s)));
      }
    }
    AddWaits(add);
    const int64_t steps_a = d_.sides[0].steps;
    const int64_t steps_b = d_.sides[1].steps;
    if (steps_a != steps_b) {
      add(Severity::kWarning, "diff_steps",
          fmt::format("Steps in A: {}, in {}: {}; times are of whole traces.",
                      steps_a, d_.letter, steps_b));
    }
    if (d_.sides[0].modules != d_.sides[1].modules) {
      add(Severity::kInfo, "diff_modules",
          fmt::format("Only {} has modules, so they do not take part in the "
                      "matching.",
                      Letter(d_.sides[0].modules ? 0 : 1)));
    }
  }

  // Calls in which the host waits that one side alone has, and communication
  // that nothing hides.
  template <class Add>
  void AddWaits(const Add& add) const {
    PerSide<std::string> only;
    for (const Calls& c : d_.calls) {
      for (const size_t s : {size_t{0}, size_t{1}}) {
        if (c.count[1 - s] > 0 || c.count[s] == 0 || !IsBlockingCall(c.call) ||
            Contains(c.call, "EventQuery"))
          continue;
        only[s] +=
            fmt::format("{}{} ({}, {})", only[s].empty() ? "" : ", ", c.call,
                        Counted(c.count[s], "call"), HumanTime(c.host_ns[s]));
      }
    }
    for (const size_t s : {size_t{0}, size_t{1}}) {
      if (only[s].empty()) continue;
      add(Severity::kInfo, "diff_syncs",
          fmt::format("The host waits in {} alone for: {}.", Letter(s),
                      only[s]));
    }
    for (const auto& [sums, row_of] : d_.dimensions) {
      for (const Sum& sum : sums) {
        const double share =
            static_cast<double>(std::abs(sum.delta_ns())) /
            std::max<double>(1,
                             static_cast<double>(d_.sides[0].totals.total_ns));
        constexpr double kLeastShare = 0.01;
        if (sum.key != "exposed_comm_time" || share < kLeastShare) continue;
        add(Severity::kInfo, "diff_exposed",
            fmt::format("Communication that no computation hides: {} in {} "
                        "against {} in A.",
                        HumanTime(sum.time_ns[1]), d_.letter,
                        HumanTime(sum.time_ns[0])));
      }
    }
  }

  Differences& d_;
  Members members_;
};

}  // namespace

Comparison MakeComparison(Differences differences) {
  return Writer(differences).Run();
}

}  // namespace lamina::analysis::diff
