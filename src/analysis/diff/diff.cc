// SPDX-License-Identifier: Apache-2.0
#include "analysis/diff/diff.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>

#include "analysis/common/launchers.h"
#include "analysis/diff/causes.h"
#include "analysis/diff/sums.h"
#include "base/decimal.h"

namespace lamina::analysis::diff {
namespace {

constexpr const char* kSides[] = {"a", "b"};
// From this share on, work without a launch is worth a warning.
constexpr double kManyUnlinked = 0.05;

Schema TotalsSchema() {
  return {
      "diff_totals",
      "Device time of each side: kernel_time = listed + unchanged + unlinked, "
      "total = busy + idle.",
      {{"side", ColumnType::kText, "a or b, as in the other tables."},
       {"input", ColumnType::kText, "The trace.", Shown::kHidden},
       {"device", ColumnType::kText, "Name of its device.", Shown::kHidden},
       {"steps", ColumnType::kInt, "Steps in it.", Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
       {"listed_us", ColumnType::kTime, "Part of that in diff_ops."},
       {"unchanged_us", ColumnType::kTime,
        "Part of ops with the same count, kernels and time on both sides."},
       {"unlinked_us", ColumnType::kTime, "Part without a launch."},
       {"busy_us", ColumnType::kTime, "Time in which the device worked."},
       {"idle_us", ColumnType::kTime, "Time in which it did not."},
       {"total_us", ColumnType::kTime, "From its first start to its last end."},
       {"device_slices", ColumnType::kInt, "Kernels, copies and fills.",
        Shown::kHidden}}};
}

Schema CausesSchema() {
  return {"diff_causes",
          "Why the total time differs; the deltas add up to the difference.",
          {{"cause", ColumnType::kText,
            "Op; \"(other ops)\", \"(unlinked)\": work without a launch, "
            "\"(overlap)\": busy time less the sum of durations, \"(idle)\"."},
           {"change", ColumnType::kText, "As kind in diff_ops."},
           {"count_a", ColumnType::kInt, "Calls in A."},
           {"count_b", ColumnType::kInt, "Calls in B."},
           {"time_a_us", ColumnType::kTime, "Time in A."},
           {"time_b_us", ColumnType::kTime, "Time in B."},
           {"delta_us", ColumnType::kTime, "B less A."},
           {"percent", ColumnType::kReal,
            "The delta as a share of A's total time.", Shown::kPercent}}};
}

Schema OpsSchema() {
  return {
      "diff_ops",
      "Ops that differ, by module and shapes; largest difference first.",
      {{"op", ColumnType::kText,
        "Op that launches; an API call with its kernel where there is none."},
       {"module", ColumnType::kText, "Path of its nn.Module."},
       {"shapes", ColumnType::kText,
        "Shapes of its inputs, JSON; of A where both sides have it."},
       {"kind", ColumnType::kText,
        "changed: time or count; only_a, only_b; other_kernel; other_shape: "
        "other shapes or types."},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A."},
       {"kernel_time_a_us", ColumnType::kTime,
        "Sum of the durations of its device work in A."},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B."},
       {"count_a", ColumnType::kInt, "Calls in A."},
       {"count_b", ColumnType::kInt, "Calls in B."},
       {"ratio", ColumnType::kReal,
        "Time in B by time in A; empty unless both have it."},
       {"shapes_b", ColumnType::kText, "Shapes in B where they differ.",
        Shown::kHidden},
       {"types_a", ColumnType::kText, "Types of its inputs in A.",
        Shown::kHidden},
       {"types_b", ColumnType::kText, "The same in B.", Shown::kHidden},
       {"uid_a", ColumnType::kInt, "Event number of the first call in A.",
        Shown::kHidden},
       {"uid_b", ColumnType::kInt, "The same in B.", Shown::kHidden}}};
}

Schema KernelsSchema() {
  return {
      "diff_kernels",
      "Kernels that differ, by op; largest difference first.",
      {{"op", ColumnType::kText, "As in diff_ops; empty: without a launch."},
       {"kernel_a", ColumnType::kText, "Kernel in A; empty: only in B."},
       {"kernel_b", ColumnType::kText, "Kernel in B; empty: only in A."},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A."},
       {"kernel_time_a_us", ColumnType::kTime, "Sum of durations in A."},
       {"kernel_time_b_us", ColumnType::kTime, "Sum of durations in B."},
       {"count_a", ColumnType::kInt, "Times it ran in A."},
       {"count_b", ColumnType::kInt, "Times it ran in B."}}};
}

Schema BySchema() {
  return {"diff_by",
          "Differences along one dimension each.",
          {{"dimension", ColumnType::kText,
            "category, module, layer or timeline. The times of the first three "
            "add up to kernel_time_us, of the last to total_us."},
           {"key", ColumnType::kText, "What is compared."},
           {"count_a", ColumnType::kInt, "Kernels, copies and fills in A."},
           {"count_b", ColumnType::kInt, "The same in B."},
           {"time_a_us", ColumnType::kTime, "Time in A."},
           {"time_b_us", ColumnType::kTime, "Time in B."},
           {"delta_us", ColumnType::kTime, "B less A."}}};
}

Schema CallsSchema() {
  return {
      "diff_calls",
      "Calls of CUDA or HIP whose number or host time differs.",
      {{"call", ColumnType::kText,
        "Name without \"cuda\" and \"hip\"; LaunchKernel stands for all its "
        "variants."},
       {"count_a", ColumnType::kInt, "Calls in A."},
       {"count_b", ColumnType::kInt, "Calls in B."},
       {"launched_a", ColumnType::kInt, "Device work they launched in A."},
       {"launched_b", ColumnType::kInt, "The same in B."},
       {"host_a_us", ColumnType::kTime, "Host time in A."},
       {"host_b_us", ColumnType::kTime, "Host time in B."},
       {"delta_us", ColumnType::kTime, "Host time in B less A."}}};
}

Schema MovedSchema() {
  return {"diff_moved",
          "What both sides do, but at another place among its neighbours.",
          {{"name", ColumnType::kText, "Op or module."},
           {"module", ColumnType::kText, "Path of its nn.Module."},
           {"kernel_time_a_us", ColumnType::kTime, "Device time inside in A."},
           {"kernel_time_b_us", ColumnType::kTime, "The same in B."},
           {"uid_a", ColumnType::kInt, "Event number in A."},
           {"uid_b", ColumnType::kInt, "Event number in B."}}};
}

// Largest difference first; ties keep their order.
template <class Row>
void SortByDelta(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
    return std::abs(x.delta_ns()) > std::abs(y.delta_ns());
  });
}

class Comparer {
 public:
  Comparer(const Context& a, const Context& b, const Options& options)
      : contexts_{&a, &b}, options_(SideOptionsFor(a, b, options)) {}

  Comparison Run(const layers::Rules& rules) {
    const Side a(*contexts_[0], options_, names_);
    const Side b(*contexts_[1], options_, names_);
    sides_ = {&a, &b};
    const Matching matching = MatchSides(a, b);
    rows_ = CollectRows(a, b, matching);
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Context& context = *contexts_[s];
      timelines_[s] = MakeTimeline(
          context.trace, context.trace.device_slices(),
          [&](SliceId slice) { return context.device.bucket(slice); });
      totals_[s] = {timelines_[s].kernel_time_ns, timelines_[s].busy_ns,
                    timelines_[s].idle_ns, timelines_[s].total_ns};
      for (const SliceId slice : context.trace.device_slices()) {
        if (!context.tree.launch(slice).valid())
          unlinked_ns_[s] += context.trace.Duration(slice);
      }
    }
    const std::vector<Cause> causes =
        FindCauses(rows_, names_, totals_, unlinked_ns_);
    Comparison out;
    out.a = totals_[0];
    out.b = totals_[1];
    out.result.tables.push_back(TotalsTable());
    out.result.tables.push_back(CausesTable(causes));
    out.result.tables.push_back(OpsTable());
    out.result.tables.push_back(KernelsTable());
    out.result.tables.push_back(ByTable(rules, matching));
    out.result.tables.push_back(CallsTable());
    out.result.tables.push_back(MovedTable(matching));
    AddNotes(out.result.notes, causes);
    return out;
  }

 private:
  // Modules and steps are levels of the tree when both sides have them.
  static SideOptions SideOptionsFor(const Context& a, const Context& b,
                                    const Options& options) {
    SideOptions out;
    out.modules = !a.modules.empty() && !b.modules.empty();
    out.steps = !a.steps.steps().empty() && !b.steps.steps().empty();
    out.python = options.python;
    return out;
  }

  Value Text(StringId id) const {
    return id.valid() ? Value(names_.Text(id)) : Value();
  }

  Table TotalsTable() const {
    PerSide<int64_t> listed{}, unchanged{};
    for (const OpRow& row : rows_.ops) {
      for (const size_t s : {size_t{0}, size_t{1}})
        (row.equal() ? unchanged : listed)[s] += row.time_ns[s];
    }
    Table table(TotalsSchema());
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Trace& trace = contexts_[s]->trace;
      const Totals& t = totals_[s];
      LAMINA_CHECK(t.kernel_time_ns ==
                   listed[s] + unchanged[s] + unlinked_ns_[s]);
      table.Add(kSides[s], trace.info.file,
                trace.info.devices.empty() ? Value()
                                           : Value(trace.info.devices[0].name),
                contexts_[s]->steps.steps().size(), t.kernel_time_ns, listed[s],
                unchanged[s], unlinked_ns_[s], t.busy_ns, t.idle_ns, t.total_ns,
                trace.device_slices().size());
    }
    return table;
  }

  Table CausesTable(const std::vector<Cause>& causes) const {
    Table table(CausesSchema());
    const int64_t whole = totals_[0].total_ns;
    for (const Cause& cause : causes) {
      const bool op = cause.count[0] + cause.count[1] > 0;
      const auto count = [&](size_t s) {
        return op ? Value(cause.count[s]) : Value();
      };
      table.Add(cause.name, cause.change, count(0), count(1), cause.time_ns[0],
                cause.time_ns[1], cause.delta_ns(),
                whole > 0
                    ? Value(100.0 * static_cast<double>(cause.delta_ns()) /
                            static_cast<double>(whole))
                    : Value());
    }
    return table;
  }

  Table OpsTable() {
    SortByDelta(rows_.ops);
    Table table(OpsSchema());
    for (const OpRow& row : rows_.ops) {
      if (row.equal()) continue;
      const StringId shapes = row.dims[0].valid() ? row.dims[0] : row.dims[1];
      const bool both = row.count[0] > 0 && row.count[1] > 0;
      const auto uid = [&](size_t s) {
        return row.first[s].valid()
                   ? Value(contexts_[s]->trace.Uid(row.first[s]))
                   : Value();
      };
      table.Add(
          names_.Text(row.op), names_.Text(row.module), Text(shapes),
          ChangeName(row.change), row.delta_ns(), row.time_ns[0],
          row.time_ns[1], row.count[0], row.count[1],
          both && row.time_ns[0] > 0
              ? Value(static_cast<double>(row.time_ns[1]) /
                      static_cast<double>(row.time_ns[0]))
              : Value(),
          both && row.dims[0] != row.dims[1] ? Text(row.dims[1]) : Value(),
          Text(row.types[0]), Text(row.types[1]), uid(0), uid(1));
    }
    return table;
  }

  Table KernelsTable() {
    SortByDelta(rows_.kernels);
    Table table(KernelsSchema());
    for (const KernelRow& row : rows_.kernels) {
      if (row.equal()) continue;
      const auto kernel = [&](size_t s) {
        return row.count[s] > 0 ? Text(row.kernel[s]) : Value();
      };
      table.Add(names_.Text(row.op), kernel(0), kernel(1), row.delta_ns(),
                row.time_ns[0], row.time_ns[1], row.count[0], row.count[1]);
    }
    return table;
  }

  Table ByTable(const layers::Rules& rules, const Matching& matching) const {
    const Side& a = *sides_[0];
    const Side& b = *sides_[1];
    std::vector<std::vector<Sum>> dimensions;
    dimensions.push_back(SumByTimeline(timelines_[0], timelines_[1]));
    dimensions.push_back(SumByCategory(a, b));
    dimensions.push_back(SumByModule(a, b, matching, names_));
    dimensions.push_back(SumByLayer(a, b, rules));
    Table table(BySchema());
    for (std::vector<Sum>& sums : dimensions) {
      const bool timeline =
          !sums.empty() && sums.front().dimension == "timeline";
      if (!timeline) SortByDelta(sums);
      for (const Sum& sum : sums) {
        if (sum.count[0] == sum.count[1] && sum.delta_ns() == 0) continue;
        const auto count = [&](size_t s) {
          return timeline ? Value() : Value(sum.count[s]);
        };
        table.Add(sum.dimension, sum.key, count(0), count(1), sum.time_ns[0],
                  sum.time_ns[1], sum.delta_ns());
      }
    }
    return table;
  }

  Table CallsTable() const {
    std::vector<Calls> calls = SumCalls(*sides_[0], *sides_[1]);
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Calls& x, const Calls& y) {
                       return std::abs(x.host_ns[1] - x.host_ns[0]) >
                              std::abs(y.host_ns[1] - y.host_ns[0]);
                     });
    Table table(CallsSchema());
    for (const Calls& c : calls) {
      if (c.count[0] == c.count[1] && c.host_ns[0] == c.host_ns[1] &&
          c.launched[0] == c.launched[1])
        continue;
      table.Add(c.call, c.count[0], c.count[1], c.launched[0], c.launched[1],
                c.host_ns[0], c.host_ns[1], c.host_ns[1] - c.host_ns[0]);
    }
    return table;
  }

  Table MovedTable(const Matching& matching) const {
    const Side& a = *sides_[0];
    const Side& b = *sides_[1];
    Table table(MovedSchema());
    for (const auto& [i, j] : matching.moved) {
      const auto time = [](const Side& side, uint32_t entry) {
        int64_t sum = 0;
        for (uint32_t e = entry; e < side.entry(entry).end; ++e)
          sum += SumOf(side.trace(), side.Work(e));
        return sum;
      };
      const auto uid = [](const Side& side, uint32_t entry) {
        const NodeId node = side.entry(entry).node;
        return node.valid()
                   ? Value(side.trace().Uid(side.context().tree.slice(node)))
                   : Value();
      };
      table.Add(names_.Text(a.Title(i)), names_.Text(a.Module(i)), time(a, i),
                time(b, j), uid(a, i), uid(b, j));
    }
    return table;
  }

  std::string Input(size_t s) const {
    const trace::Info& info = contexts_[s]->trace.info;
    return info.devices.empty()
               ? info.file
               : fmt::format("{} ({})", info.file, info.devices[0].name);
  }

  void AddNotes(std::vector<Note>& notes,
                const std::vector<Cause>& causes) const {
    const auto add = [&](Severity severity, std::string id, std::string text) {
      Note& note = notes.emplace_back();
      note.severity = severity;
      note.id = std::move(id);
      note.text = std::move(text);
    };
    add(Severity::kVerdict, "diff_verdict", Verdict(causes, totals_));
    add(Severity::kInfo, "diff_inputs",
        fmt::format("A is {}, B is {}.", Input(0), Input(1)));
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const double share =
          totals_[s].kernel_time_ns > 0
              ? static_cast<double>(unlinked_ns_[s]) /
                    static_cast<double>(totals_[s].kernel_time_ns)
              : 0;
      if (share >= kManyUnlinked) {
        add(Severity::kWarning, "diff_unlinked",
            fmt::format("{:.1f} % of the device time of {} has no launch in "
                        "the file; it is compared by the names of kernels "
                        "alone.",
                        100 * share, s == 0 ? "A" : "B"));
      }
    }
    const size_t steps_a = contexts_[0]->steps.steps().size();
    const size_t steps_b = contexts_[1]->steps.steps().size();
    if (steps_a != steps_b) {
      add(Severity::kWarning, "diff_steps",
          fmt::format("Steps in A: {}, in B: {}; times are of whole traces.",
                      steps_a, steps_b));
    }
    if (contexts_[0]->modules.empty() != contexts_[1]->modules.empty()) {
      add(Severity::kInfo, "diff_modules",
          fmt::format("Only {} has modules, so they do not take part in the "
                      "matching.",
                      contexts_[0]->modules.empty() ? "B" : "A"));
    }
  }

  PerSide<const Context*> contexts_;
  SideOptions options_;
  Names names_;
  PerSide<const Side*> sides_{};
  PairRows rows_;
  PerSide<Timeline> timelines_;
  PerSide<Totals> totals_;
  PerSide<int64_t> unlinked_ns_{};
};

}  // namespace

bool NeedsPythonStacks(const Trace& trace, const Options& options) {
  if (options.python) return true;
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    if (trace.strings[StringId(i)].starts_with(tree::kModulePrefix))
      return true;
  }
  return false;
}

Comparison Compare(const Context& a, const Context& b,
                   const layers::Rules& rules, const Options& options) {
  return Comparer(a, b, options).Run(rules);
}

}  // namespace lamina::analysis::diff
