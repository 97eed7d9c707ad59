// SPDX-License-Identifier: Apache-2.0
//
// host_ops, host_op_shapes, threads, host_steps: what the host did, with or
// without device work. unread_events: what is in the file and in no other
// table. Over 250 lines because five tables have their schemas here.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <tuple>
#include <vector>

#include "analysis/common/collective_names.h"
#include "analysis/common/context.h"
#include "analysis/common/host_view.h"
#include "analysis/common/stats.h"

namespace lamina::analysis::host_ops {
namespace {

Schema OpsSchema() {
  return {
      "host_ops",
      "Ops by name, with their time on the host.",
      {{"op", ColumnType::kText, "Name."},
       {"family", ColumnType::kText, "What it computes.", Shown::kHidden},
       {"calls", ColumnType::kInt, "Times it was called."},
       {"total_us", ColumnType::kTime,
        "Durations, without calls inside a call of the same name."},
       {"self_us", ColumnType::kTime, "Without the ops below."},
       {"percent_self", ColumnType::kReal, "Share of all self time.",
        Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean duration."},
       {"p50_us", ColumnType::kTime, "Median duration.", Shown::kHidden},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest."},
       {"api_us", ColumnType::kTime,
        "Part of self_us inside calls of a runtime or driver."},
       {"kernels", ColumnType::kInt, "Device slices launched inside."},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
       {"threads", ColumnType::kInt, "Threads that called it.", Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of its first call.",
        Shown::kHidden}}};
}

Schema ShapesSchema() {
  return {"host_op_shapes",
          "Ops by name and recorded arguments, with their time on the host.",
          {{"op", ColumnType::kText, "Name."},
           {"input_dims", ColumnType::kText, "Shapes."},
           {"input_types", ColumnType::kText, "Types."},
           {"calls", ColumnType::kInt, "Times it was called."},
           {"total_us", ColumnType::kTime,
            "Durations, without calls inside a call of the same name."},
           {"self_us", ColumnType::kTime, "Without the ops below."},
           {"mean_us", ColumnType::kTime, "Mean duration."},
           {"flops_per_s", ColumnType::kReal,
            "FLOPs of the cost model over mean_us; of ops that run on the "
            "host only."},
           {"first_uid", ColumnType::kInt, "Event number of its first call.",
            Shown::kHidden}}};
}

Schema ThreadsSchema() {
  return {"threads",
          "Threads of the host and what each did.",
          {{"process", ColumnType::kText, "Process id."},
           {"thread", ColumnType::kText, "Thread id."},
           {"name", ColumnType::kText, "Name, where recorded."},
           {"role", ColumnType::kText,
            "main: it holds the steps or most ops; backward: it runs the "
            "autograd engine; loader: it waits for data; comm: it runs "
            "collectives only; other."},
           {"ops", ColumnType::kInt, "Names of ops."},
           {"calls", ColumnType::kInt, "Calls of ops."},
           {"self_us", ColumnType::kTime, "Union of its ops."},
           {"busy_us", ColumnType::kTime, "Union of all its events."},
           {"span_us", ColumnType::kTime, "First start to last end."},
           {"share_of_window", ColumnType::kReal,
            "self_us of the time of all host events.", Shown::kPercent},
           {"first_us", ColumnType::kTime,
            "First start, from the first event of the trace.", Shown::kHidden},
           {"last_us", ColumnType::kTime, "Last end.", Shown::kHidden}}};
}

Schema StepsSchema() {
  return {"host_steps",
          "What the host did in each step.",
          {{"step", ColumnType::kInt, "Number of the step."},
           {"start_us", ColumnType::kTime,
            "Begin, from the first event of the trace."},
           {"host_us", ColumnType::kTime, "Length of the range."},
           {"op_union_us", ColumnType::kTime, "Some thread ran an op."},
           {"main_us", ColumnType::kTime, "The thread of the step ran an op."},
           {"idle_us", ColumnType::kTime,
            "No thread had an event other than the step and Python frames."},
           {"loader_us", ColumnType::kTime, "Waiting for the data loader."},
           {"optimizer_us", ColumnType::kTime, "Ranges of the optimizer."},
           {"collective_us", ColumnType::kTime,
            "Ranges and ops that name collectives."}}};
}

Schema UnreadSchema() {
  return {"unread_events",
          "Complete events of the file that are in no other table.",
          {{"source", ColumnType::kText, "Category, else process."},
           {"category", ColumnType::kText, "As recorded.", Shown::kHidden},
           {"process", ColumnType::kText, "Its name."},
           {"device", ColumnType::kText,
            "yes: work or counters of a device; no: of the host, or not "
            "known."},
           {"events", ColumnType::kInt, "Complete events."},
           {"time_us", ColumnType::kTime, "Sum of durations."},
           {"busy_us", ColumnType::kTime, "Union of durations."},
           {"first_name", ColumnType::kText, "Name of the first."},
           {"reason", ColumnType::kText, "What they are."}}};
}

struct Row {
  const HostThread* thread = nullptr;
  const HostOp* first = nullptr;
  size_t calls = 0;
  int64_t total_ns = 0;
  int64_t self_ns = 0;
  int64_t api_ns = 0;
  int64_t kernel_time_ns = 0;
  size_t kernels = 0;
  std::vector<int64_t> times;
  absl::flat_hash_set<uint32_t> threads;
};

class Tables {
 public:
  explicit Tables(const Context& context)
      : context_(context),
        trace_(context.trace),
        view_(HostView::Build(context)) {}

  ResultSet Make() {
    ResultSet result;
    Collect();
    result.tables.push_back(Ops());
    result.tables.push_back(Shapes());
    result.tables.push_back(Threads());
    result.tables.push_back(Steps());
    result.tables.push_back(Unread());
    return result;
  }

 private:
  using ShapeKey = std::tuple<StringId, StringId, StringId>;

  void Collect() {
    for (const HostThread& thread : view_.threads) {
      for (const HostOp& op : thread.ops) {
        const StringId name = trace_.slices.name[op.slice.value];
        const trace::OpArgs* args = trace_.Op(op.slice);
        Add(ops_[name], thread, op);
        Add(shapes_[ShapeKey(name, args ? args->dims : StringId(),
                             args ? args->types : StringId())],
            thread, op);
      }
    }
  }

  void Add(Row& row, const HostThread& thread, const HostOp& op) {
    if (row.first == nullptr ||
        trace_.Uid(op.slice) < trace_.Uid(row.first->slice))
      row.first = &op;
    ++row.calls;
    row.self_ns += op.self_ns;
    row.api_ns += op.api_ns;
    row.times.push_back(trace_.Duration(op.slice));
    row.threads.insert(thread.track.value);
    if (!op.outermost) return;
    row.total_ns += trace_.Duration(op.slice);
    const tree::NodeId node = context_.tree.node(op.slice);
    if (!node.valid()) return;
    row.kernels += context_.tree.DeviceWork(node).size();
    row.kernel_time_ns += context_.tree.DeviceTime(node);
  }

  template <class Map>
  std::vector<typename Map::const_pointer> Sorted(const Map& rows) const {
    std::vector<typename Map::const_pointer> out;
    for (const auto& row : rows) out.push_back(&row);
    std::sort(out.begin(), out.end(), [&](const auto* a, const auto* b) {
      if (a->second.self_ns != b->second.self_ns)
        return a->second.self_ns > b->second.self_ns;
      const auto name_a = trace_.Name(a->second.first->slice);
      const auto name_b = trace_.Name(b->second.first->slice);
      if (name_a != name_b) return name_a < name_b;
      return trace_.Uid(a->second.first->slice) <
             trace_.Uid(b->second.first->slice);
    });
    return out;
  }

  Table Ops() {
    Table table(OpsSchema());
    for (const auto* entry : Sorted(ops_)) {
      const Row& row = entry->second;
      std::vector<int64_t> times = row.times;
      const Stats stats = Summarize(times);
      const std::string_view name = trace_.Text(entry->first);
      const std::string_view family = context_.catalog.OpFamily(name);
      table.Add(name, family.empty() ? "other" : family, row.calls,
                row.total_ns, row.self_ns,
                PercentOf(row.self_ns, view_.self_ns), RoundNs(stats.mean),
                RoundNs(stats.median), stats.p99, stats.max, row.api_ns,
                row.kernels, row.kernel_time_ns, row.threads.size(),
                trace_.Uid(row.first->slice));
    }
    return table;
  }

  Table Shapes() {
    Table table(ShapesSchema());
    for (const auto* entry : Sorted(shapes_)) {
      const Row& row = entry->second;
      const auto& [name, dims, types] = entry->first;
      if (!dims.valid()) continue;
      std::vector<int64_t> times = row.times;
      const Stats stats = Summarize(times);
      std::optional<double> rate;
      if (row.kernels == 0 && stats.mean > 0) {
        const auto flops = FlopsOf(*row.first);
        if (flops) rate = *flops / (stats.mean * 1e-9);
      }
      table.Add(trace_.Text(name), trace_.Text(dims), trace_.Text(types),
                row.calls, row.total_ns, row.self_ns, RoundNs(stats.mean), rate,
                trace_.Uid(row.first->slice));
    }
    return table;
  }

  std::optional<double> FlopsOf(const HostOp& op) const {
    const trace::OpArgs* args = trace_.Op(op.slice);
    if (context_.efficiency == nullptr || args == nullptr) return std::nullopt;
    const cost::ModelSet& models = context_.efficiency->costs->models();
    const cost::OpModel* model = models.Find(trace_.Name(op.slice));
    if (model == nullptr || model->model == nullptr) return std::nullopt;
    const auto call =
        cost::ParseCall(trace_.Name(op.slice), trace_.Text(args->dims),
                        trace_.Text(args->types), trace_.Text(args->concrete));
    if (!call) return std::nullopt;
    const auto cost = models.Evaluate(*model, *call, false);
    if (!cost || cost->flops <= 0) return std::nullopt;
    return cost->flops;
  }

  Table Threads() {
    Table table(ThreadsSchema());
    for (const HostThread& t : view_.threads) {
      const trace::Track& track = trace_.tracks[t.track.value];
      table.Add(trace_.Text(track.pid), trace_.Text(track.tid),
                track.thread_name.valid()
                    ? Value(trace_.Text(track.thread_name))
                    : Value(),
                ThreadRoleName(t.role), t.names, t.calls, t.self_ns, t.busy_ns,
                t.last_ns - t.first_ns,
                PercentOf(t.self_ns, view_.window.length_ns()),
                t.first_ns - trace_.first_ns, t.last_ns - trace_.first_ns);
    }
    return table;
  }

  // The union of the slices that `keep` chooses, by start.
  template <class Keep>
  IntervalSet UnionOf(Keep keep) const {
    std::vector<Interval> intervals;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      if (!trace_.captured.Has(s) && keep(s))
        intervals.push_back({trace_.Start(s), trace_.End(s)});
    }
    return IntervalSet::Of(std::move(intervals));
  }

  Table Steps() {
    Table table(StepsSchema());
    const auto& steps = context_.steps.steps();
    if (steps.empty()) return table;
    const auto is_host = [&](SliceId s) {
      const trace::Kind kind = trace_.KindOf(s);
      return kind == trace::Kind::kOp || kind == trace::Kind::kAnnotation;
    };
    absl::flat_hash_set<uint32_t> is_step;
    for (const tree::Step& step : steps) is_step.insert(step.slice.value);
    const IntervalSet events = UnionOf([&](SliceId s) {
      return (is_host(s) || trace::IsApiCall(trace_.KindOf(s))) &&
             !is_step.contains(s.value) &&
             !trace_.Name(s).starts_with("ProfilerStep#");
    });
    const IntervalSet loader = UnionOf([&](SliceId s) {
      return is_host(s) && trace_.Name(s).starts_with("enumerate(DataLoader)");
    });
    const IntervalSet optimizer = UnionOf([&](SliceId s) {
      return is_host(s) && trace_.Name(s).starts_with("Optimizer.");
    });
    const IntervalSet collective = UnionOf([&](SliceId s) {
      return is_host(s) && NamesCollective(trace_.Name(s));
    });
    absl::flat_hash_map<uint32_t, IntervalSet> by_track;
    for (const HostThread& thread : view_.threads) {
      std::vector<Interval> intervals;
      for (const HostOp& op : thread.ops)
        intervals.push_back({trace_.Start(op.slice), op.end_ns});
      by_track[thread.track.value] = IntervalSet::Of(std::move(intervals));
    }
    for (const tree::Step& step : steps) {
      const auto within = [&](const IntervalSet& set) {
        const auto all = set.intervals();
        auto it = std::partition_point(
            all.begin(), all.end(),
            [&](const Interval& i) { return i.end_ns <= step.host.start_ns; });
        int64_t sum = 0;
        for (; it != all.end() && it->start_ns < step.host.end_ns; ++it) {
          sum += std::min(it->end_ns, step.host.end_ns) -
                 std::max(it->start_ns, step.host.start_ns);
        }
        return sum;
      };
      const uint32_t track = trace_.slices.track[step.slice.value].value;
      table.Add(step.number, step.host.start_ns - trace_.first_ns,
                step.host.length_ns(), within(view_.ops),
                within(by_track[track]), step.host.length_ns() - within(events),
                within(loader), within(optimizer), within(collective));
    }
    return table;
  }

  Table Unread() {
    Table table(UnreadSchema());
    for (const UnreadEvents& u : FindUnread(trace_)) {
      table.Add(u.source, u.category, u.process, u.device ? "yes" : "no",
                u.events, u.time_ns, u.busy_ns, trace_.Name(u.first), u.reason);
    }
    return table;
  }

  const Context& context_;
  const Trace& trace_;
  HostView view_;
  absl::flat_hash_map<StringId, Row> ops_;
  absl::flat_hash_map<ShapeKey, Row> shapes_;
};

Result<ResultSet> Run(const Context& context) { return Tables(context).Make(); }

}  // namespace

AnalysisInfo Info() {
  return {"host_ops", "What the host did, by op, thread and step.",
          [] {
            return std::vector<Schema>{OpsSchema(), ShapesSchema(),
                                       ThreadsSchema(), StepsSchema(),
                                       UnreadSchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::host_ops
