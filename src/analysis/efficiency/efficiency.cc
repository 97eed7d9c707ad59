// SPDX-License-Identifier: Apache-2.0
//
// op_efficiency: how well every op used the device. opportunities: the ops
// ranked by the time above their roofline. One table per family shows the
// parameters of its models.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/efficiency/family_tables.h"
#include "analysis/efficiency/rows.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::analysis::efficiency {
namespace {

using OptionalText = std::optional<std::string_view>;
using OptionalReal = std::optional<double>;

// Rows of the tables; times in nanoseconds.
struct OpRow {
  std::string_view op, family, model, fidelity;
  OptionalText input_dims, input_types, concrete_inputs;
  size_t count, kernels;
  int64_t kernel_time;
  double percent;
  int64_t busy, mean, median, min, max;
  // With a cost only.
  OptionalReal flops = {}, bytes = {}, flops_per_byte = {};
  std::optional<std::string> compute_spec = {};
  OptionalReal flops_per_s = {}, bytes_per_s = {};
  // With a roofline only.
  OptionalText bound = {};
  std::optional<int64_t> roofline = {};
  OptionalReal percent_of_roofline = {};
  std::optional<int64_t> above_roofline = {};
  uint32_t first_uid;
};
const RowColumns<OpRow>& OpColumns() {
  static const RowColumns<OpRow> columns{
      "op_efficiency",
      "What each op needed, what it reached and what bound it. Every "
      "linked device event that is no communication is in one row.",
      {{"op", ColumnType::kText,
        "The outermost op with a known cost, else the launcher.", &OpRow::op},
       {"family", ColumnType::kText, "Family.", &OpRow::family, Shown::kHidden},
       {"model", ColumnType::kText, "Cost model; empty: none.", &OpRow::model,
        Shown::kHidden},
       {"fidelity", ColumnType::kText,
        "exact, estimated (the model assumes something), or why there is "
        "no cost: no_model, no_shapes, unusable_arguments.",
        &OpRow::fidelity, Shown::kHidden},
       {"input_dims", ColumnType::kText, "Shapes, JSON.", &OpRow::input_dims},
       {"input_types", ColumnType::kText, "Element types, JSON.",
        &OpRow::input_types, Shown::kHidden},
       {"concrete_inputs", ColumnType::kText, "Scalar arguments, JSON.",
        &OpRow::concrete_inputs, Shown::kHidden},
       {"count", ColumnType::kInt, "Calls.", &OpRow::count},
       {"kernels", ColumnType::kInt, "Device events.", &OpRow::kernels,
        Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &OpRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of the time of all rows.",
        &OpRow::percent, Shown::kBar},
       {"busy_us", ColumnType::kTime,
        "Sum over calls of the time in which at least one ran.", &OpRow::busy,
        Shown::kHidden},
       {"mean_us", ColumnType::kTime, "Mean busy time of a call.", &OpRow::mean,
        Shown::kHidden},
       {"median_us", ColumnType::kTime, "Median.", &OpRow::median,
        Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", &OpRow::min, Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", &OpRow::max, Shown::kHidden},
       {"flops", ColumnType::kReal, "FLOPs of one call.", &OpRow::flops,
        Shown::kCount},
       {"bytes", ColumnType::kInt,
        "Bytes of one call: operands read once, results written once.",
        [](const OpRow& row) -> std::optional<int64_t> {
          if (!row.bytes) return std::nullopt;
          return WholeBytes(*row.bytes);
        },
        Shown::kHidden},
       {"flops_per_byte", ColumnType::kReal, "Arithmetic intensity.",
        &OpRow::flops_per_byte, Shown::kHidden},
       {"compute_spec", ColumnType::kText,
        "Unit and precision that the peak is for; '?' when it is assumed.",
        &OpRow::compute_spec},
       {"flops_per_s", ColumnType::kReal, "Reached over busy time.",
        &OpRow::flops_per_s, Shown::kCount},
       {"bytes_per_s", ColumnType::kReal, "Reached over busy time.",
        &OpRow::bytes_per_s, Shown::kBytes},
       {"bound", ColumnType::kText,
        "compute or memory: what the roofline is made of.", &OpRow::bound},
       {"roofline_us", ColumnType::kTime,
        "Least time of one call on this device.", &OpRow::roofline,
        Shown::kHidden},
       {"percent_of_roofline", ColumnType::kReal,
        "Least time by busy time; above 100: data stayed in caches.",
        &OpRow::percent_of_roofline, Shown::kPercent},
       {"above_roofline_us", ColumnType::kTime,
        "Busy time above the least, over all calls; calls below count 0.",
        &OpRow::above_roofline, Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        &OpRow::first_uid, Shown::kHidden}}};
  return columns;
}

struct OpportunityRow {
  std::string_view op, family;
  size_t count;
  int64_t busy, roofline;
  double percent_of_roofline;
  int64_t above_roofline;
  double cumulative_percent;
  OptionalText launcher;
  int64_t short_time;
};
const RowColumns<OpportunityRow>& OpportunityColumns() {
  static const RowColumns<OpportunityRow> columns{
      "opportunities",
      "Ops by the time above their roofline: what could be won at most.",
      {{"op", ColumnType::kText, "Op.", &OpportunityRow::op},
       {"family", ColumnType::kText, "Family.", &OpportunityRow::family},
       {"count", ColumnType::kInt, "Calls with a roofline.",
        &OpportunityRow::count},
       {"busy_us", ColumnType::kTime, "Their busy time.",
        &OpportunityRow::busy},
       {"roofline_us", ColumnType::kTime,
        "Least time for all of them: their rooflines, and for each kernel "
        "what one takes that does nothing (a tenth of the kernels of the "
        "trace are as short, at most 3 us).",
        &OpportunityRow::roofline},
       {"percent_of_roofline", ColumnType::kReal, "Least time by busy time.",
        &OpportunityRow::percent_of_roofline, Shown::kPercent},
       {"above_roofline_us", ColumnType::kTime,
        "Time that perfect kernels would win.",
        &OpportunityRow::above_roofline},
       {"cumulative_percent", ColumnType::kReal,
        "Running share of the busy time of the device.",
        &OpportunityRow::cumulative_percent, Shown::kPercent},
       {"launcher", ColumnType::kText,
        "Op with most of the time in the table ops, where it is another "
        "one.",
        &OpportunityRow::launcher},
       {"short_us", ColumnType::kTime,
        "Part of busy_us in short kernels, which short_kernels counts, "
        "too.",
        &OpportunityRow::short_time, Shown::kHidden}}};
  return columns;
}

class Analysis {
 public:
  Analysis(const Context& context, const Efficiency& efficiency)
      : context_(context),
        efficiency_(efficiency),
        rows_(MakeRows(context, efficiency)) {
    for (const Row& row : rows_) total_ns_ += row.kernel_time_ns;
  }

  ResultSet Run() {
    ResultSet result;
    result.tables.push_back(Ops());
    result.tables.push_back(Opportunities());
    for (Table& table : FamilyTables(context_, rows_))
      result.tables.push_back(std::move(table));
    result.notes = std::move(notes_);
    return result;
  }

 private:
  Table Ops() const {
    std::vector<OpRow> rows;
    for (const Row& row : rows_) {
      const CostView::Group& group = *row.group;
      const auto& strings = context_.trace.strings;
      const auto text = [&](StringId id) {
        return id.valid() ? std::optional(strings[id]) : std::nullopt;
      };
      const double busy_s = static_cast<double>(row.busy_ns) / 1e9;
      const double count = static_cast<double>(row.stats.count);
      OpRow& out = rows.emplace_back(OpRow{
          .op = strings[group.name],
          .family = row.family,
          .model = group.model != nullptr
                       ? std::string_view(group.model->model->name)
                   : group.instruction != nullptr ? std::string_view("hlo")
                                                  : std::string_view(),
          .fidelity = Fidelity(group),
          .input_dims = text(group.dims),
          .input_types = text(group.types),
          .concrete_inputs = text(group.concrete),
          .count = row.stats.count,
          .kernels = row.kernels,
          .kernel_time = row.kernel_time_ns,
          .percent = Percent(static_cast<double>(row.kernel_time_ns),
                             static_cast<double>(total_ns_)),
          .busy = row.busy_ns,
          .mean = RoundNs(row.stats.mean),
          .median = RoundNs(row.stats.median),
          .min = row.stats.min,
          .max = row.stats.max,
          .first_uid =
              context_.trace.EventOf(context_.tree.slice(group.first))});
      if (group.cost) {
        const cost::Cost& cost = *group.cost;
        out.flops = cost.flops;
        out.bytes = cost.bytes;
        if (cost.bytes > 0) out.flops_per_byte = cost.flops / cost.bytes;
        if (const std::string spec =
                group.spec + (group.assumed_spec ? "?" : "");
            !spec.empty())
          out.compute_spec = spec;
        if (busy_s > 0) {
          out.flops_per_s = cost.flops * count / busy_s;
          out.bytes_per_s = cost.bytes * count / busy_s;
        }
      }
      if (row.roofline) {
        out.bound = row.roofline->compute_bound ? "compute" : "memory";
        out.roofline = row.roofline_ns;
        if (row.busy_ns > 0)
          out.percent_of_roofline =
              Percent(row.roofline->seconds * count, busy_s);
        out.above_roofline = row.above_ns;
      }
    }
    return OpColumns().Make(rows);
  }

  static std::string_view Fidelity(const CostView::Group& group) {
    if (!group.cost) return cost::MissingName(group.missing);
    return group.cost->fidelity == cost::Fidelity::kExact ? "exact"
                                                          : "estimated";
  }

  void AddLaunchers(const CostView::Group& group,
                    std::map<StringId, int64_t>& launchers) const {
    const CostView& view = *efficiency_.costs;
    for (const uint32_t c : group.calls) {
      for (const SliceId s : view.Work(view.calls()[c])) {
        const tree::NodeId launcher = context_.device.launcher(s);
        if (!launcher.valid()) continue;
        launchers[context_.trace.slices
                      .name[context_.tree.slice(launcher).value]] +=
            context_.trace.Duration(s);
      }
    }
  }

  // The launcher with most time, where it is not the op itself.
  OptionalText LauncherName(
      StringId op, const std::map<StringId, int64_t>& launchers) const {
    StringId best;
    int64_t most = -1;
    for (const auto& [name, ns] : launchers) {
      if (ns <= most) continue;
      best = name;
      most = ns;
    }
    if (!best.valid() || best == op) return std::nullopt;
    return context_.trace.strings[best];
  }

  Table Opportunities() {
    std::vector<OpportunityRow> rows;
    struct Sum {
      StringId name;
      std::string_view family;
      size_t count = 0;
      int64_t busy_ns = 0;
      int64_t bound_ns = 0;
      int64_t above_ns = 0;
      int64_t short_ns = 0;
      std::map<StringId, int64_t> launchers;
    };
    std::vector<Sum> sums;
    absl::flat_hash_map<uint32_t, size_t> by_name;
    int64_t busy_ns = 0;
    for (const Row& row : rows_) {
      busy_ns += row.busy_ns;
      if (!row.roofline) continue;
      const StringId name = row.group->name;
      const auto [it, is_new] = by_name.try_emplace(name.value, sums.size());
      if (is_new) {
        sums.emplace_back();
        sums.back().name = name;
        sums.back().family = row.family;
      }
      Sum& sum = sums[it->second];
      sum.count += row.stats.count;
      sum.busy_ns += row.busy_ns;
      sum.bound_ns += row.bound_ns;
      sum.above_ns += row.above_bound_ns;
      sum.short_ns += row.short_ns;
      AddLaunchers(*row.group, sum.launchers);
    }
    // What is faster than its bound as a whole has nothing to win.
    for (Sum& sum : sums) {
      sum.above_ns = std::min(sum.above_ns,
                              std::max<int64_t>(0, sum.busy_ns - sum.bound_ns));
    }
    std::erase_if(sums, [](const Sum& sum) { return sum.above_ns == 0; });
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) {
      return a.above_ns > b.above_ns;
    });
    int64_t running = 0;
    for (const Sum& sum : sums) {
      running += sum.above_ns;
      rows.push_back(
          {.op = context_.trace.strings[sum.name],
           .family = sum.family,
           .count = sum.count,
           .busy = sum.busy_ns,
           .roofline = sum.bound_ns,
           .percent_of_roofline = Percent(static_cast<double>(sum.bound_ns),
                                          static_cast<double>(sum.busy_ns)),
           .above_roofline = sum.above_ns,
           .cumulative_percent = Percent(static_cast<double>(running),
                                         static_cast<double>(busy_ns)),
           .launcher = LauncherName(sum.name, sum.launchers),
           .short_time = sum.short_ns});
    }
    for (size_t i = 0; i < std::min<size_t>(sums.size(), 3); ++i) {
      const Sum& sum = sums[i];
      // Less than a hundredth of the busy time is no opportunity.
      if (sum.above_ns * 100 < busy_ns) continue;
      const std::string op(context_.trace.strings[sum.name]);
      Note note = MakeNote(
          Severity::kOpportunity, "above_roofline",
          fmt::format("{}: {} {:.{}f} % of {} roofline on {}.", op,
                      sum.count == 1 ? "1 call reaches"
                                     : Counted(sum.count, "call") + " reach",
                      Percent(static_cast<double>(sum.bound_ns),
                              static_cast<double>(sum.busy_ns)),
                      sum.bound_ns * 100 < sum.busy_ns ? 1 : 0,
                      sum.count == 1 ? "its" : "their",
                      efficiency_.device->title),
          {{"opportunities", "op", op, {}}, {"op_efficiency", "op", op, {}}});
      note.worth_ns = sum.above_ns;
      note.claim = "bound";
      if (sum.short_ns * 20 >= sum.busy_ns) {
        note.claim +=
            fmt::format(", {} of it in short kernels, too",
                        HumanTime(std::min(sum.short_ns, sum.above_ns)));
      }
      notes_.push_back(std::move(note));
    }
    return OpportunityColumns().Make(rows);
  }

  const Context& context_;
  const Efficiency& efficiency_;
  std::vector<Row> rows_;
  int64_t total_ns_ = 0;
  std::vector<Note> notes_;
};

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const auto* const efficiency, context.Get<Efficiency>());
  return Analysis(context, *efficiency).Run();
}

}  // namespace

AnalysisInfo Info() {
  return {"efficiency",
          "FLOPs, bytes and rooflines of ops, and what could be won.",
          [] {
            return std::vector<Schema>{OpColumns().schema(),
                                       OpportunityColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::efficiency
