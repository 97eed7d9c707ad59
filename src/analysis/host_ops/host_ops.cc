// SPDX-License-Identifier: Apache-2.0
//
// host_ops, host_op_shapes, threads, host_steps: what the host did, with or
// without device work. unread_events: what is in the file and in no other
// table. Over 250 lines because five tables have their schemas here.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/common/collective_names.h"
#include "analysis/common/context.h"
#include "analysis/common/cost_view.h"
#include "analysis/common/host_view.h"
#include "analysis/common/stats.h"
#include "table/row_columns.h"

namespace lamina::analysis::host_ops {
namespace {

// Rows of the tables; times in nanoseconds.
struct OpRow {
  std::string_view op, family;
  size_t calls;
  int64_t total, self;
  double percent_self;
  int64_t mean, p50, p99, max, api;
  size_t kernels;
  int64_t kernel_time;
  size_t threads;
  uint32_t first_uid;
};
const RowColumns<OpRow>& OpColumns() {
  static const RowColumns<OpRow> columns{
      "host_ops",
      "Ops by name, with their time on the host; without any, ranges and calls "
      "of the runtime and of the operating system.",
      {{"op", ColumnType::kText, "Name.", &OpRow::op},
       {"family", ColumnType::kText, "What it computes.", &OpRow::family,
        Shown::kHidden},
       {"calls", ColumnType::kInt, "Times it was called.", &OpRow::calls},
       {"total_us", ColumnType::kTime,
        "Durations, without calls inside a call of the same name.",
        &OpRow::total},
       {"self_us", ColumnType::kTime, "Without the ops below.", &OpRow::self},
       {"percent_self", ColumnType::kReal, "Share of all self time.",
        &OpRow::percent_self, Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean duration.", &OpRow::mean},
       {"p50_us", ColumnType::kTime, "Median duration.", &OpRow::p50,
        Shown::kHidden},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        &OpRow::p99, Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", &OpRow::max},
       {"api_us", ColumnType::kTime,
        "Part of self_us inside calls of a runtime or driver.", &OpRow::api},
       {"kernels", ColumnType::kInt, "Device slices launched inside.",
        &OpRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &OpRow::kernel_time},
       {"threads", ColumnType::kInt, "Threads that called it.", &OpRow::threads,
        Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of its first call.",
        &OpRow::first_uid, Shown::kHidden}}};
  return columns;
}

struct ShapeRow {
  std::string_view op, input_dims, input_types;
  size_t calls;
  int64_t total, self, mean;
  std::optional<double> flops_per_s;
  uint32_t first_uid;
};
const RowColumns<ShapeRow>& ShapeColumns() {
  static const RowColumns<ShapeRow> columns{
      "host_op_shapes",
      "Ops by name and recorded arguments, with their time on the host.",
      {{"op", ColumnType::kText, "Name.", &ShapeRow::op},
       {"input_dims", ColumnType::kText, "Shapes.", &ShapeRow::input_dims},
       {"input_types", ColumnType::kText, "Types.", &ShapeRow::input_types},
       {"calls", ColumnType::kInt, "Times it was called.", &ShapeRow::calls},
       {"total_us", ColumnType::kTime,
        "Durations, without calls inside a call of the same name.",
        &ShapeRow::total},
       {"self_us", ColumnType::kTime, "Without the ops below.",
        &ShapeRow::self},
       {"mean_us", ColumnType::kTime, "Mean duration.", &ShapeRow::mean},
       {"flops_per_s", ColumnType::kReal,
        "FLOPs of the cost model over mean_us; of ops that run on the "
        "host only.",
        &ShapeRow::flops_per_s},
       {"first_uid", ColumnType::kInt, "Event number of its first call.",
        &ShapeRow::first_uid, Shown::kHidden}}};
  return columns;
}

struct ThreadRow {
  std::string_view process, thread;
  std::optional<std::string_view> name;
  std::string_view role;
  size_t ops, calls;
  int64_t self, busy, span;
  double share_of_window;
  int64_t first, last;
};
const RowColumns<ThreadRow>& ThreadColumns() {
  static const RowColumns<ThreadRow> columns{
      "threads",
      "Threads of the host and what each did.",
      {{"process", ColumnType::kText, "Process id.", &ThreadRow::process},
       {"thread", ColumnType::kText, "Thread id.", &ThreadRow::thread},
       {"name", ColumnType::kText, "Name, where recorded.", &ThreadRow::name},
       {"role", ColumnType::kText,
        "main: it holds the steps or most ops; backward: it runs the "
        "autograd engine; loader: it waits for data; comm: it runs "
        "collectives only; other.",
        &ThreadRow::role},
       {"op_names", ColumnType::kInt, "Names of ops.", &ThreadRow::ops},
       {"calls", ColumnType::kInt,
        "Calls of ops; of a thread without any, all that it did.",
        &ThreadRow::calls},
       {"self_us", ColumnType::kTime, "Union of its ops.", &ThreadRow::self},
       {"busy_us", ColumnType::kTime, "Union of all its events.",
        &ThreadRow::busy},
       {"span_us", ColumnType::kTime, "First start to last end.",
        &ThreadRow::span},
       {"share_of_window", ColumnType::kReal,
        "self_us of the time of all host events.", &ThreadRow::share_of_window,
        Shown::kPercent},
       {"first_us", ColumnType::kTime,
        "First start, from the first event of the trace.", &ThreadRow::first,
        Shown::kHidden},
       {"last_us", ColumnType::kTime, "Last end.", &ThreadRow::last,
        Shown::kHidden}}};
  return columns;
}

struct StepRow {
  int64_t step, start, host, op_union, main_thread, idle, loader, optimizer,
      collective;
};
const RowColumns<StepRow>& StepColumns() {
  static const RowColumns<StepRow> columns{
      "host_steps",
      "What the host did in each step.",
      {{"step", ColumnType::kInt, "Number of the step.", &StepRow::step},
       {"start_us", ColumnType::kTime,
        "Begin, from the first event of the trace.", &StepRow::start},
       {"host_us", ColumnType::kTime, "Length of the range.", &StepRow::host},
       {"op_union_us", ColumnType::kTime, "Some thread ran an op.",
        &StepRow::op_union},
       {"main_us", ColumnType::kTime, "The thread of the step ran an op.",
        &StepRow::main_thread},
       {"idle_us", ColumnType::kTime,
        "No thread had an event other than the step and Python frames.",
        &StepRow::idle},
       {"loader_us", ColumnType::kTime, "Waiting for the data loader.",
        &StepRow::loader},
       {"optimizer_us", ColumnType::kTime, "Ranges of the optimizer.",
        &StepRow::optimizer},
       {"collective_us", ColumnType::kTime,
        "Ranges and ops that name collectives.", &StepRow::collective}}};
  return columns;
}

struct UnreadRow {
  std::string source, category, process;
  std::string_view device;
  size_t events;
  int64_t time, busy;
  std::string_view first_name;
  std::string reason;
};
const RowColumns<UnreadRow>& UnreadColumns() {
  static const RowColumns<UnreadRow> columns{
      "unread_events",
      "Complete events of the file that are in no other table.",
      {{"source", ColumnType::kText, "Category, else process.",
        &UnreadRow::source},
       {"category", ColumnType::kText, "As recorded.", &UnreadRow::category,
        Shown::kHidden},
       {"process", ColumnType::kText, "Its name.", &UnreadRow::process},
       {"of_device", ColumnType::kText,
        "yes: work or counters of a device; no: of the host, or not "
        "known.",
        &UnreadRow::device},
       {"events", ColumnType::kInt, "Complete events.", &UnreadRow::events},
       {"time_us", ColumnType::kTime, "Sum of durations.", &UnreadRow::time},
       {"busy_us", ColumnType::kTime, "Union of durations.", &UnreadRow::busy},
       {"first_name", ColumnType::kText, "Name of the first.",
        &UnreadRow::first_name},
       {"reason", ColumnType::kText, "What they are.", &UnreadRow::reason}}};
  return columns;
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
  Tables(const Context& context, const cost::ModelSet& models)
      : context_(context),
        models_(models),
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
    std::vector<OpRow> rows;
    for (const auto* entry : Sorted(ops_)) {
      const Row& row = entry->second;
      std::vector<int64_t> times = row.times;
      const Stats stats = Summarize(times);
      const std::string_view name = trace_.Text(entry->first);
      const std::string_view family = context_.catalog.OpFamily(name);
      rows.push_back({.op = name,
                      .family = family.empty() ? "other" : family,
                      .calls = row.calls,
                      .total = row.total_ns,
                      .self = row.self_ns,
                      .percent_self = PercentOf(row.self_ns, view_.self_ns),
                      .mean = RoundNs(stats.mean),
                      .p50 = RoundNs(stats.median),
                      .p99 = stats.p99,
                      .max = stats.max,
                      .api = row.api_ns,
                      .kernels = row.kernels,
                      .kernel_time = row.kernel_time_ns,
                      .threads = row.threads.size(),
                      .first_uid = trace_.Uid(row.first->slice)});
    }
    return OpColumns().Make(rows);
  }

  Table Shapes() {
    std::vector<ShapeRow> rows;
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
      rows.push_back({.op = trace_.Text(name),
                      .input_dims = trace_.Text(dims),
                      .input_types = trace_.Text(types),
                      .calls = row.calls,
                      .total = row.total_ns,
                      .self = row.self_ns,
                      .mean = RoundNs(stats.mean),
                      .flops_per_s = rate,
                      .first_uid = trace_.Uid(row.first->slice)});
    }
    return ShapeColumns().Make(rows);
  }

  std::optional<double> FlopsOf(const HostOp& op) const {
    const trace::OpArgs* args = trace_.Op(op.slice);
    if (args == nullptr) return std::nullopt;
    const cost::OpModel* model = models_.Find(trace_.Name(op.slice));
    if (model == nullptr || model->model == nullptr) return std::nullopt;
    const auto call =
        cost::ParseCall(trace_.Name(op.slice), trace_.Text(args->dims),
                        trace_.Text(args->types), trace_.Text(args->concrete));
    if (!call) return std::nullopt;
    const auto cost = models_.Evaluate(*model, *call, false);
    if (!cost || cost->flops <= 0) return std::nullopt;
    return cost->flops;
  }

  Table Threads() {
    std::vector<ThreadRow> rows;
    for (const HostThread& t : view_.threads) {
      const trace::Track& track = trace_.tracks[t.track.value];
      rows.push_back(
          {.process = trace_.Text(track.pid),
           .thread = trace_.Text(track.tid),
           .name = track.thread_name.valid()
                       ? std::optional<std::string_view>(
                             trace_.Text(track.thread_name))
                       : std::nullopt,
           .role = ThreadRoleName(t.role),
           .ops = t.names,
           .calls = t.calls > 0 ? t.calls : t.events,
           .self = t.self_ns,
           .busy = t.busy_ns,
           .span = t.last_ns - t.first_ns,
           .share_of_window = PercentOf(t.self_ns, view_.window.length_ns()),
           .first = t.first_ns - trace_.first_ns,
           .last = t.last_ns - trace_.first_ns});
    }
    return ThreadColumns().Make(rows);
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
    std::vector<StepRow> rows;
    const auto& steps = context_.steps.steps();
    if (steps.empty()) return StepColumns().Make(rows);
    const auto is_host = [&](SliceId s) {
      const trace::Kind kind = trace_.KindOf(s);
      return kind == trace::Kind::kOp || kind == trace::Kind::kAnnotation;
    };
    absl::flat_hash_set<uint32_t> is_step;
    for (const tree::Step& step : steps) is_step.insert(step.slice.value);
    enum class Does : uint8_t {
      kStep,
      kLoader,
      kOptimizer,
      kCollective,
      kElse
    };
    OfNames does(trace_, [](std::string_view name) {
      if (name.starts_with("ProfilerStep#")) return Does::kStep;
      if (name.starts_with("enumerate(DataLoader)")) return Does::kLoader;
      if (name.starts_with("Optimizer.")) return Does::kOptimizer;
      return NamesCollective(name) ? Does::kCollective : Does::kElse;
    });
    const IntervalSet events = UnionOf([&](SliceId s) {
      return (is_host(s) || trace::IsApiCall(trace_.KindOf(s))) &&
             !is_step.contains(s.value) && does(s) != Does::kStep;
    });
    const auto ranges = [&](Does what) {
      return UnionOf([&](SliceId s) { return is_host(s) && does(s) == what; });
    };
    const IntervalSet loader = ranges(Does::kLoader);
    const IntervalSet optimizer = ranges(Does::kOptimizer);
    const IntervalSet collective = ranges(Does::kCollective);
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
      rows.push_back({.step = step.number,
                      .start = step.host.start_ns - trace_.first_ns,
                      .host = step.host.length_ns(),
                      .op_union = within(view_.ops),
                      .main_thread = within(by_track[track]),
                      .idle = step.host.length_ns() - within(events),
                      .loader = within(loader),
                      .optimizer = within(optimizer),
                      .collective = within(collective)});
    }
    return StepColumns().Make(rows);
  }

  Table Unread() {
    std::vector<UnreadRow> rows;
    for (const UnreadEvents& u : FindUnread(trace_)) {
      rows.push_back({.source = u.source,
                      .category = u.category,
                      .process = u.process,
                      .device = u.device ? "yes" : "no",
                      .events = u.events,
                      .time = u.time_ns,
                      .busy = u.busy_ns,
                      .first_name = trace_.Name(u.first),
                      .reason = u.reason});
    }
    return UnreadColumns().Make(rows);
  }

  const Context& context_;
  const cost::ModelSet& models_;
  const Trace& trace_;
  HostView view_;
  absl::flat_hash_map<StringId, Row> ops_;
  absl::flat_hash_map<ShapeKey, Row> shapes_;
};

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const auto* const costs, context.Get<CostModels>());
  return Tables(context, *costs->models).Make();
}

}  // namespace

AnalysisInfo Info() {
  return {"host_ops", "What the host did, by op, thread and step.",
          [] {
            return std::vector<Schema>{
                OpColumns().schema(), ShapeColumns().schema(),
                ThreadColumns().schema(), StepColumns().schema(),
                UnreadColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::host_ops
