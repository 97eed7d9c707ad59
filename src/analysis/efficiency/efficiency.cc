// SPDX-License-Identifier: Apache-2.0
//
// op_efficiency: how well every op used the device. opportunities: the ops
// ranked by the time above their roofline. One table per family shows the
// parameters of its models.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <string>

#include "analysis/common/context.h"
#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/parallel.h"
#include "base/text.h"

namespace lamina::analysis::efficiency {
namespace {

Schema OpSchema() {
  return {
      "op_efficiency",
      "What each op needed, what it reached and what bound it. Every "
      "linked device event that is no communication is in one row.",
      {{"op", ColumnType::kText,
        "The outermost op with a known cost, else the launcher."},
       {"family", ColumnType::kText, "Family.", Shown::kHidden},
       {"model", ColumnType::kText, "Cost model; empty: none.", Shown::kHidden},
       {"fidelity", ColumnType::kText,
        "exact, estimated (the model assumes something), or why there is "
        "no cost: no_model, no_shapes, unusable_arguments.",
        Shown::kHidden},
       {"input_dims", ColumnType::kText, "Shapes, JSON."},
       {"input_types", ColumnType::kText, "Element types, JSON.",
        Shown::kHidden},
       {"concrete_inputs", ColumnType::kText, "Scalar arguments, JSON.",
        Shown::kHidden},
       {"count", ColumnType::kInt, "Calls."},
       {"kernels", ColumnType::kInt, "Device events.", Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
       {"percent", ColumnType::kReal, "Share of the time of all rows.",
        Shown::kBar},
       {"busy_us", ColumnType::kTime,
        "Sum over calls of the time in which at least one ran.",
        Shown::kHidden},
       {"mean_us", ColumnType::kTime, "Mean busy time of a call.",
        Shown::kHidden},
       {"median_us", ColumnType::kTime, "Median.", Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", Shown::kHidden},
       {"flops", ColumnType::kReal, "FLOPs of one call.", Shown::kCount},
       {"bytes", ColumnType::kReal,
        "Bytes of one call: operands read once, results written once.",
        Shown::kHidden},
       {"flops_per_byte", ColumnType::kReal, "Arithmetic intensity.",
        Shown::kHidden},
       {"compute_spec", ColumnType::kText,
        "Unit and precision that the peak is for; '?' when it is assumed."},
       {"flops_per_s", ColumnType::kReal, "Reached over busy time.",
        Shown::kCount},
       {"bytes_per_s", ColumnType::kReal, "Reached over busy time.",
        Shown::kBytes},
       {"bound", ColumnType::kText,
        "compute or memory: what the roofline is made of."},
       {"roofline_us", ColumnType::kTime,
        "Least time of one call on this device.", Shown::kHidden},
       {"percent_of_roofline", ColumnType::kReal,
        "Least time by busy time; above 100: data stayed in caches.",
        Shown::kPercent},
       {"above_roofline_us", ColumnType::kTime,
        "Busy time above the least, over all calls; calls below count 0.",
        Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        Shown::kHidden}}};
}

Schema OpportunitySchema() {
  return {"opportunities",
          "Ops by the time above their roofline: what could be won at most.",
          {{"op", ColumnType::kText, "Op."},
           {"family", ColumnType::kText, "Family."},
           {"count", ColumnType::kInt, "Calls with a roofline."},
           {"busy_us", ColumnType::kTime, "Their busy time."},
           {"roofline_us", ColumnType::kTime, "Least time for all of them."},
           {"percent_of_roofline", ColumnType::kReal,
            "Least time by busy time.", Shown::kPercent},
           {"above_roofline_us", ColumnType::kTime,
            "Time that a perfect kernel would win."},
           {"cumulative_percent", ColumnType::kReal,
            "Running share of the busy time of the device.", Shown::kPercent}}};
}

// True for a copy between host and device: it is bound by the link between
// them, so the memory of the device says nothing about it.
bool CrossesHostLink(const trace::Trace& trace, SliceId s) {
  if (trace.KindOf(s) != trace::Kind::kMemcpy) return false;
  const std::string_view name = trace.Name(s);
  for (const std::string_view direction :
       {"HtoD", "DtoH", "HostToDevice", "DeviceToHost"}) {
    if (Contains(name, direction)) return true;
  }
  return false;
}

struct Row {
  uint32_t group = 0;
  std::string_view family;
  size_t kernels = 0;
  int64_t kernel_time_ns = 0;
  int64_t busy_ns = 0;
  Stats stats;
  std::optional<cost::Roofline> roofline;
  int64_t roofline_ns = 0;
  int64_t above_ns = 0;
};

class Analysis {
 public:
  explicit Analysis(const Context& context)
      : context_(context), view_(*context.efficiency->costs) {}

  ResultSet Run() {
    MakeRows();
    ResultSet result;
    result.tables.push_back(Ops());
    result.tables.push_back(Opportunities());
    Families(result);
    result.notes = std::move(notes_);
    return result;
  }

 private:
  void MakeRows() {
    const auto& groups = view_.groups();
    std::vector<Row> rows(groups.size());
    ParallelFor(context_.settings.threads, groups.size(), [&](size_t g) {
      Row& row = rows[g];
      row.group = static_cast<uint32_t>(g);
      std::vector<int64_t> busy;
      std::map<size_t, int64_t> families;
      bool host_link = false;
      for (const uint32_t c : groups[g].calls) {
        const auto work = view_.Work(view_.calls()[c]);
        if (work.empty()) continue;
        row.kernels += work.size();
        row.kernel_time_ns += SumOf(context_.trace, work);
        busy.push_back(UnionOf(context_.trace, work));
        row.busy_ns += busy.back();
        for (const SliceId s : work) {
          families[context_.device.family(s)] += context_.trace.Duration(s);
          host_link = host_link || CrossesHostLink(context_.trace, s);
        }
      }
      if (busy.empty()) return;
      // The family that most of the time belongs to.
      size_t best = families.begin()->first;
      for (const auto& [family, ns] : families) {
        if (ns > families[best]) best = family;
      }
      row.family = context_.catalog.family(best).name;
      if (groups[g].cost && context_.efficiency->device && !host_link) {
        row.roofline = cost::RooflineOf(
            *groups[g].cost, *context_.efficiency->device, groups[g].spec);
      }
      if (row.roofline) {
        row.roofline_ns = RoundNs(row.roofline->seconds * 1e9);
        for (const int64_t ns : busy)
          row.above_ns += std::max<int64_t>(0, ns - row.roofline_ns);
      }
      row.stats = Summarize(busy);
    });
    for (const Row& row : rows) {
      if (row.kernels == 0) continue;
      total_ns_ += row.kernel_time_ns;
      rows_.push_back(row);
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [&](const Row& a, const Row& b) {
                       if (a.kernel_time_ns != b.kernel_time_ns)
                         return a.kernel_time_ns > b.kernel_time_ns;
                       return Uid(a) < Uid(b);
                     });
  }

  const CostView::Group& GroupOf(const Row& row) const {
    return view_.groups()[row.group];
  }
  uint32_t Uid(const Row& row) const {
    return context_.trace.slices
        .uid[context_.tree.slice(GroupOf(row).first).value];
  }
  uint32_t EventOf(const Row& row) const {
    return context_.trace.EventOf(context_.tree.slice(GroupOf(row).first));
  }
  static double Percent(double part, double whole) {
    return whole > 0 ? 100.0 * part / whole : 0.0;
  }

  Table Ops() const {
    Table table(OpSchema());
    for (const Row& row : rows_) {
      const CostView::Group& group = GroupOf(row);
      const auto& strings = context_.trace.strings;
      const auto text = [&](StringId id) {
        return id.valid() ? Value(strings[id]) : Value();
      };
      const double busy_s = static_cast<double>(row.busy_ns) / 1e9;
      const double count = static_cast<double>(row.stats.count);
      std::vector<Value> cells = {
          strings[group.name],
          row.family,
          group.model != nullptr ? std::string_view(group.model->model->name)
          : group.instruction != nullptr ? std::string_view("hlo")
                                         : std::string_view(),
          Fidelity(group),
          text(group.dims),
          text(group.types),
          text(group.concrete),
          row.stats.count,
          row.kernels,
          row.kernel_time_ns,
          Percent(static_cast<double>(row.kernel_time_ns),
                  static_cast<double>(total_ns_)),
          row.busy_ns,
          RoundNs(row.stats.mean),
          RoundNs(row.stats.median),
          row.stats.min,
          row.stats.max};
      std::string spec;
      if (group.cost) {
        const cost::Cost& cost = *group.cost;
        spec = group.spec + (group.assumed_spec ? "?" : "");
        cells.insert(
            cells.end(),
            {cost.flops, cost.bytes,
             cost.bytes > 0 ? Value(cost.flops / cost.bytes) : Value(),
             spec.empty() ? Value() : Value(spec),
             busy_s > 0 ? Value(cost.flops * count / busy_s) : Value(),
             busy_s > 0 ? Value(cost.bytes * count / busy_s) : Value()});
      } else {
        cells.resize(cells.size() + 6);
      }
      if (row.roofline) {
        cells.insert(
            cells.end(),
            {row.roofline->compute_bound ? "compute" : "memory",
             row.roofline_ns,
             row.busy_ns > 0
                 ? Value(Percent(row.roofline->seconds * count, busy_s))
                 : Value(),
             row.above_ns});
      } else {
        cells.resize(cells.size() + 4);
      }
      cells.emplace_back(EventOf(row));
      table.AddRow(cells);
    }
    return table;
  }

  static std::string_view Fidelity(const CostView::Group& group) {
    if (!group.cost) return cost::MissingName(group.missing);
    return group.cost->fidelity == cost::Fidelity::kExact ? "exact"
                                                          : "estimated";
  }

  Table Opportunities() {
    Table table(OpportunitySchema());
    struct Sum {
      StringId name;
      std::string_view family;
      size_t count = 0;
      int64_t busy_ns = 0;
      double roofline_s = 0;
      int64_t above_ns = 0;
    };
    std::vector<Sum> sums;
    absl::flat_hash_map<uint32_t, size_t> by_name;
    int64_t busy_ns = 0;
    for (const Row& row : rows_) {
      busy_ns += row.busy_ns;
      if (!row.roofline) continue;
      const StringId name = GroupOf(row).name;
      const auto [it, is_new] = by_name.try_emplace(name.value, sums.size());
      if (is_new) sums.push_back({name, row.family});
      Sum& sum = sums[it->second];
      sum.count += row.stats.count;
      sum.busy_ns += row.busy_ns;
      sum.roofline_s +=
          row.roofline->seconds * static_cast<double>(row.stats.count);
      sum.above_ns += row.above_ns;
    }
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) {
      return a.above_ns > b.above_ns;
    });
    int64_t running = 0;
    for (const Sum& sum : sums) {
      running += sum.above_ns;
      table.Add(
          context_.trace.strings[sum.name], sum.family, sum.count, sum.busy_ns,
          RoundNs(sum.roofline_s * 1e9),
          Percent(sum.roofline_s * 1e9, static_cast<double>(sum.busy_ns)),
          sum.above_ns,
          Percent(static_cast<double>(running), static_cast<double>(busy_ns)));
    }
    for (size_t i = 0; i < std::min<size_t>(sums.size(), 3); ++i) {
      const Sum& sum = sums[i];
      // Less than a hundredth of the busy time is no opportunity.
      if (sum.above_ns * 100 < busy_ns) continue;
      const std::string op(context_.trace.strings[sum.name]);
      Note note = MakeNote(
          Severity::kOpportunity, "above_roofline",
          fmt::format(
              "{}: {} {:.0f} % of {} roofline on {}.", op,
              sum.count == 1 ? "1 call reaches"
                             : Counted(sum.count, "call") + " reach",
              Percent(sum.roofline_s * 1e9, static_cast<double>(sum.busy_ns)),
              sum.count == 1 ? "its" : "their",
              context_.efficiency->device->title),
          {{"opportunities", "op", op, {}}, {"op_efficiency", "op", op, {}}});
      note.worth_ns = sum.above_ns;
      note.claim = "bound";
      notes_.push_back(std::move(note));
    }
    return table;
  }

  // One table per family: the parameters of its models, in order of first use.
  void Families(ResultSet& result) const {
    std::map<std::string_view, std::vector<const Row*>> families;
    for (const Row& row : rows_) {
      if (GroupOf(row).model != nullptr && GroupOf(row).cost)
        families[row.family].push_back(&row);
    }
    for (const auto& [family, rows] : families) {
      std::vector<std::string> names;
      for (const Row* row : rows) {
        for (const std::string& name : GroupOf(*row).model->model->parameters) {
          if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
        }
      }
      if (names.empty()) continue;
      Schema schema{"efficiency_" + std::string(family),
                    "Parameters of the models of this family.",
                    {{"op", ColumnType::kText, "Op."}}};
      for (const std::string& name : names) {
        schema.columns.push_back(
            {name, ColumnType::kReal, "Parameter of the cost model."});
      }
      for (Column column :
           {Column{"types", ColumnType::kText, "Element types, JSON.",
                   Shown::kHidden},
            Column{"count", ColumnType::kInt, "Calls."},
            Column{"kernel_time_us", ColumnType::kTime, "Sum of durations."},
            Column{"flops", ColumnType::kReal, "FLOPs of one call.",
                   Shown::kCount},
            Column{"bytes", ColumnType::kReal, "Bytes of one call.",
                   Shown::kBytes},
            Column{"percent_of_roofline", ColumnType::kReal,
                   "Least time by busy time.", Shown::kPercent}})
        schema.columns.push_back(std::move(column));
      Table table(std::move(schema));
      for (const Row* row : rows) {
        const CostView::Group& group = GroupOf(*row);
        const auto& own = group.model->model->parameters;
        std::vector<Value> cells = {context_.trace.strings[group.name]};
        for (const std::string& name : names) {
          const auto it = std::find(own.begin(), own.end(), name);
          Value cell;
          if (it != own.end()) {
            const cost::Value& value =
                group.cost->parameters[static_cast<size_t>(it - own.begin())];
            if (value.is_number()) cell = Value(value.number());
          }
          cells.push_back(cell);
        }
        cells.insert(
            cells.end(),
            {context_.trace.strings[group.types], row->stats.count,
             row->kernel_time_ns, group.cost->flops, group.cost->bytes,
             row->roofline && row->busy_ns > 0
                 ? Value(Percent(row->roofline->seconds * 1e9 *
                                     static_cast<double>(row->stats.count),
                                 static_cast<double>(row->busy_ns)))
                 : Value()});
        table.AddRow(cells);
      }
      result.tables.push_back(std::move(table));
    }
  }

  const Context& context_;
  const CostView& view_;
  std::vector<Row> rows_;
  int64_t total_ns_ = 0;
  std::vector<Note> notes_;
};

Result<ResultSet> Run(const Context& context) {
  if (context.efficiency == nullptr) return ResultSet();
  return Analysis(context).Run();
}

}  // namespace

AnalysisInfo Info() {
  return {"efficiency",
          "FLOPs, bytes and rooflines of ops, and what could be won.",
          [] {
            return std::vector<Schema>{OpSchema(), OpportunitySchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::efficiency
