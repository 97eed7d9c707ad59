// SPDX-License-Identifier: Apache-2.0

#include "compat/tracelens/sheets.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/cost_view.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "compat/tracelens/perf_sheets.h"

namespace lamina::compat::tracelens {

namespace {

constexpr const char* kMeaning = "See docs/tracelens.md.";

}  // namespace

Column Text(std::string name) {
  return {std::move(name), ColumnType::kText, kMeaning};
}
Column Number(std::string name) {
  return {std::move(name), ColumnType::kReal, kMeaning};
}
Column Count(std::string name) {
  return {std::move(name), ColumnType::kInt, kMeaning};
}

Column Flag(std::string name) {
  return {std::move(name), ColumnType::kBool, kMeaning};
}

Result<ResultSet> MakeSheets(const Context& context, Options options) {
  const Model model(context, options);
  std::optional<Overlaps> overlaps;
  if (options.overlaps) {
    LAMINA_ASSIGN(overlaps, Overlaps::Find(model));
  }
  const Overlaps* const beside = overlaps ? &*overlaps : nullptr;
  ResultSet result;
  if (context.trace.info.format == "xplane") {
    AddJaxSheets(model, result);
    return result;
  }
  AddTimelineSheet(model, result);
  AddOpSheets(model, beside, result);
  LAMINA_TRY(AddPerfSheets(model, beside, result));
  AddKernelSheets(model, result);
  if (!options.inference) AddCollectiveSheet(model, result);
  return result;
}

Status AddPerfSheets(const Model& model, const Overlaps* overlaps,
                     ResultSet& result) {
  if (model.gpu_only()) return {};
  LAMINA_ASSIGN(const auto* const efficiency,
                model.context().Get<analysis::Efficiency>());
  Pricer pricer(model, *efficiency);
  const std::vector<PseudoOp> pseudo_ops = FindPseudoOps(model);
  AddUnifiedSheets(model, pricer, pseudo_ops, overlaps, result);
  AddFamilySheets(model, pricer, pseudo_ops, overlaps, result);
  return {};
}

// gpu_timeline: linked work only, all devices merged. With recompute
// detection one block per half, each from its own work; with a threshold idle
// time in two rows.

namespace {

using analysis::Timeline;

void AddRows(Table& table, const Timeline& t, bool split_idle,
             std::optional<bool> recompute) {
  const auto add = [&](std::string_view type, int64_t ns) {
    const auto percent =
        Percent(static_cast<double>(ns), static_cast<double>(t.total_ns));
    if (recompute) {
      table.Add(type, Ms(ns), percent, *recompute);
    } else {
      table.Add(type, Ms(ns), percent);
    }
  };
  add("computation_time", t.computation_ns);
  add("exposed_comm_time", t.exposed_communication_ns);
  add("exposed_memcpy_time", t.exposed_copies_ns);
  add("busy_time", t.busy_ns);
  if (split_idle) {
    add("micro_idle_time", t.micro_idle_ns);
    add("macro_idle_time", t.idle_ns - t.micro_idle_ns);
  } else {
    add("idle_time", t.idle_ns);
  }
  add("total_time", t.total_ns);
  add("total_comm_time", t.communication.length_ns());
  add("total_memcpy_time", t.copies.length_ns());
}

}  // namespace

void AddTimelineSheet(const Model& model, ResultSet& result) {
  const Trace& trace = model.trace();
  Schema schema{"gpu_timeline",
                "Time of the devices, linked work only.",
                {{"type", ColumnType::kText, "What the time was."},
                 {"time ms", ColumnType::kReal, "Milliseconds."},
                 {"percent", ColumnType::kReal, "Share of total_time."}}};
  const bool split = model.options().recompute;
  if (split) {
    schema.columns.push_back(
        {"is_recompute", ColumnType::kBool, "Half of the split."});
  }
  Table table(std::move(schema));
  const auto bucket = [&](SliceId s) {
    return analysis::PeerBucket(trace.KindOf(s), trace.Name(s));
  };
  const auto micro_idle_ns = model.context().settings.micro_idle_ns;
  const auto timeline = [&](std::optional<bool> half) {
    std::vector<SliceId> slices;
    for (const SliceId s : model.timeline()) {
      const NodeId launch = model.tree().launch(s);
      const bool recompute = launch.valid() && model.IsRecompute(launch);
      if (!half || recompute == *half) slices.push_back(s);
    }
    return analysis::MakeTimeline(trace, slices, bucket, micro_idle_ns);
  };
  const bool split_idle = micro_idle_ns.has_value();
  if (split) {
    AddRows(table, timeline(false), split_idle, false);
    AddRows(table, timeline(true), split_idle, true);
  } else {
    AddRows(table, timeline(std::nullopt), split_idle, std::nullopt);
  }
  result.tables.push_back(std::move(table));
}

// coll_analysis: communication of one rank. Groups with a missing field are
// left out, as TraceLens does; lamina's own table `collectives` has them.

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::string_view PeerName(const Trace& trace, const analysis::Collective& c) {
  if (c.args != nullptr && c.args->name.valid())
    return trace.Text(c.args->name);
  switch (c.kind) {
    case analysis::CollectiveKind::kAllReduce:
      return "allreduce";
    case analysis::CollectiveKind::kAllGather:
      return "allgather";
    case analysis::CollectiveKind::kReduceScatter:
      return "reducescatter";
    case analysis::CollectiveKind::kBroadcast:
      return "broadcast";
    case analysis::CollectiveKind::kReduce:
      return "reduce";
    case analysis::CollectiveKind::kSendRecv:
      return "sendrecv";
    default:
      return {};
  }
}

}  // namespace

void AddCollectiveSheet(const Model& model, ResultSet& result) {
  const Trace& trace = model.trace();
  using Key = std::tuple<std::string_view, std::string_view, std::string_view,
                         int64_t, std::string_view, int64_t, int64_t,
                         std::string_view, std::string_view, int64_t>;
  std::map<Key, std::vector<int64_t>> groups;
  for (const auto& c :
       analysis::CollectCollectives(model.tree(), model.context().device)) {
    const trace::DeviceArgs& device = *trace.Device(c.slice);
    if (device.correlation == trace::kNoInt &&
        device.external_id == trace::kNoInt)
      continue;
    if (c.args == nullptr) continue;
    const trace::CollectiveArgs& a = *c.args;
    const bool complete = a.group.valid() && a.group_ranks.valid() &&
                          a.group_size != trace::kNoInt && a.dtype.valid() &&
                          a.in_elements != trace::kNoInt &&
                          a.out_elements != trace::kNoInt &&
                          a.in_split.valid() && a.out_split.valid() &&
                          device.stream != trace::kNoInt;
    if (!complete) continue;
    groups[Key(trace.Text(a.group), trace.Text(a.group_ranks),
               PeerName(trace, c), a.group_size, trace.Text(a.dtype),
               a.in_elements, a.out_elements, trace.Text(a.in_split),
               trace.Text(a.out_split), device.stream)]
        .push_back(trace.Duration(c.slice));
  }
  if (groups.empty()) return;
  const auto text = [](std::string name) {
    return Column{std::move(name), ColumnType::kText, "See docs/tracelens.md."};
  };
  const auto number = [](std::string name) {
    return Column{std::move(name), ColumnType::kReal, "See docs/tracelens.md."};
  };
  const auto count = [](std::string name) {
    return Column{std::move(name), ColumnType::kInt, "See docs/tracelens.md."};
  };
  Table table(
      {"coll_analysis",
       "Communication kernels of this rank.",
       {count("rank"), text("Process Group Name"), text("Process Group Ranks"),
        text("Collective name"), count("Group size"), text("dtype"),
        count("In msg nelems"), count("Out msg nelems"), text("In split size"),
        text("Out split size"), count("stream"),
        number("In msg size (MB)_first"), number("Out msg size (MB)_first"),
        number("dur_sum"), number("dur_mean"), number("dur_std"),
        number("dur_min"), number("dur_max"), count("operation_count")}});
  const int64_t rank = trace.info.rank.value_or(0);
  struct Row {
    const Key* key;
    analysis::Stats stats;
  };
  std::vector<Row> rows;
  for (auto& [key, times] : groups)
    rows.push_back({&key, analysis::Summarize(times)});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.stats.sum != b.stats.sum) return a.stats.sum > b.stats.sum;
    return *a.key < *b.key;
  });
  for (const Row& row : rows) {
    const auto& [group, ranks, name, size, dtype, in, out, in_split, out_split,
                 stream] = *row.key;
    const auto bytes = analysis::CollectiveElementBytes(dtype);
    const auto mib = [&](int64_t elements) -> std::optional<double> {
      if (!bytes) return std::nullopt;
      return static_cast<double>(elements) * static_cast<double>(*bytes) / kMiB;
    };
    std::optional<double> std_dev;
    if (row.stats.std_dev) std_dev = *row.stats.std_dev / 1000.0;
    table.Add(rank, group, ranks, name, size, dtype, in, out, in_split,
              out_split, stream, mib(in), mib(out), Us(row.stats.sum),
              row.stats.mean / 1000.0, std_dev, Us(row.stats.min),
              Us(row.stats.max), row.stats.count);
  }
  result.tables.push_back(std::move(table));
}

// kernel_summary and the short-kernel study: kernels only, linked or not,
// communication too.

namespace {

using analysis::Stats;
using Form = Model::Form;

constexpr size_t kBins = 100;

bool HasGraphWord(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return lower.find("graphlaunch") != std::string::npos ||
         lower.find("cudagraph") != std::string::npos;
}

class KernelSheets {
 public:
  explicit KernelSheets(const Model& model)
      : model_(model), trace_(model.trace()), host_(!model.gpu_only()) {
    FindOwnWork();
  }

  void Add(ResultSet& result) const {
    result.tables.push_back(Summary());
    result.tables.push_back(Histogram());
    result.tables.push_back(Short());
  }

 private:
  // The nearest op above a kernel, "execute" not skipped.
  NodeId Op(SliceId s) const {
    const NodeId launch = model_.tree().launch(s);
    return launch.valid() ? model_.tree().EnclosingOp(launch) : launch;
  }

  // Each op's own kernels by start, for its category.
  void FindOwnWork() {
    for (const SliceId s : trace_.device_slices()) {
      const NodeId op = Op(s);
      if (op.valid()) own_work_.try_emplace(op, s);
    }
  }

  std::string_view Category(SliceId s) const {
    const NodeId op = Op(s);
    if (op.valid()) {
      const auto it = own_work_.find(op);
      const SliceId first = it == own_work_.end() ? s : it->second;
      return model_.Category(model_.tree().name(op), {&first, 1});
    }
    const NodeId launch = model_.tree().launch(s);
    if (!launch.valid()) return {};
    return HasGraphWord(model_.tree().name(launch)) ? "graph" : "runtime";
  }

  std::string_view Parent(SliceId s) const {
    const NodeId op = Op(s);
    if (op.valid()) return model_.tree().name(op);
    const NodeId launch = model_.tree().launch(s);
    return launch.valid() ? model_.tree().name(launch) : std::string_view();
  }

  Table Summary() const {
    Schema schema{"kernel_summary", "Kernels by op, name and stream.", {}};
    if (host_) {
      schema.columns = {Text("Parent op category"), Text("Parent cpu_op")};
    } else {
      schema.columns = {Text("Parent op category")};
    }
    for (const Column& column : {Text("Kernel name"), Text("Kernel stream"),
                                 Number("Kernel duration (µs)_sum"),
                                 Count("Kernel duration (µs)_count"),
                                 Number("Kernel duration (µs)_mean"),
                                 Number("Kernel duration (µs)_min"),
                                 Number("Kernel duration (µs)_max"),
                                 Number("Percent of kernels time (%)"),
                                 Number("Percent of total time (%)")})
      schema.columns.push_back(column);
    Table table(std::move(schema));
    using Key = std::tuple<std::string_view, std::string_view, std::string_view,
                           int64_t>;
    struct Row {
      std::vector<int64_t> times;
      int64_t sum = 0;
      uint32_t uid = 0;
    };
    std::map<Key, Row> rows;
    int64_t all = 0;
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      Row& row = rows[Key(Category(s), Parent(s), trace_.Name(s),
                          trace_.Device(s)->stream)];
      if (row.times.empty()) row.uid = trace_.Uid(s);
      row.times.push_back(trace_.Duration(s));
      row.sum += trace_.Duration(s);
      all += trace_.Duration(s);
    }
    std::vector<std::pair<Key, Row>> order(rows.begin(), rows.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      if (a.second.sum != b.second.sum) return a.second.sum > b.second.sum;
      return a.second.uid < b.second.uid;
    });
    for (auto& [key, row] : order) {
      const Stats stats = analysis::Summarize(row.times);
      const auto& [category, parent, name, stream] = key;
      const std::string stream_text =
          stream == trace::kNoInt ? "" : std::to_string(stream);
      std::vector<Value> cells = {category};
      if (host_) cells.emplace_back(parent);
      for (const Value& cell :
           {Value(name), Value(stream_text), Value(Us(stats.sum)),
            Value(stats.count), Value(stats.mean / 1000.0),
            Value(Us(stats.min)), Value(Us(stats.max)),
            Value(Percent(static_cast<double>(stats.sum),
                          static_cast<double>(all))),
            Value(Percent(static_cast<double>(stats.sum),
                          static_cast<double>(model_.total_time_ns())))})
        cells.push_back(cell);
      table.AddRow(cells);
    }
    return table;
  }

  bool IsShort(SliceId s) const {
    return trace_.KindOf(s) == trace::Kind::kKernel &&
           trace_.Duration(s) < model_.context().settings.short_kernel_ns;
  }

  Table Histogram() const {
    Table table({"short_kernel_histogram",
                 "Lengths of short kernels.",
                 {Number("bin_start"), Number("bin_end"), Count("count")}});
    std::vector<int64_t> times;
    for (const SliceId s : trace_.device_slices()) {
      if (IsShort(s)) times.push_back(trace_.Duration(s));
    }
    for (const auto& bin : analysis::MakeHistogram(std::move(times), kBins))
      table.Add(bin.start_us, bin.end_us, bin.count);
    return table;
  }

  Table Short() const {
    Schema schema{"short_kernels_summary", "Short kernels.", {}};
    if (host_) {
      schema.columns = {Text("Parent cpu_op"), Text("Input dims"),
                        Text("Input strides"), Text("Concrete Inputs")};
    }
    for (const Column& column :
         {Text("Kernel name"), Number("Short Kernel duration (µs) sum"),
          Count("Short Kernel count"),
          Number("Short Kernel duration (µs) mean"),
          Number("Short Kernel duration (µs) percent of total time")})
      schema.columns.push_back(column);
    Table table(std::move(schema));
    using Key = std::tuple<std::string_view, StringId, StringId, StringId,
                           std::string_view>;
    struct Row {
      NodeId op;
      int64_t sum = 0;
      size_t count = 0;
      uint32_t uid = 0;
    };
    std::map<Key, Row> rows;
    for (const SliceId s : trace_.device_slices()) {
      if (!IsShort(s)) continue;
      const NodeId op = Op(s);
      if (host_ && !op.valid()) continue;
      const trace::OpArgs* args =
          op.valid() ? trace_.Op(model_.tree().slice(op)) : nullptr;
      Row& row = rows[Key(
          op.valid() ? model_.tree().name(op) : std::string_view(),
          args ? args->dims : StringId(), args ? args->strides : StringId(),
          args ? args->concrete : StringId(), trace_.Name(s))];
      if (row.count == 0) {
        row.op = op;
        row.uid = trace_.Uid(s);
      }
      row.sum += trace_.Duration(s);
      ++row.count;
    }
    std::vector<std::pair<Key, Row>> order(rows.begin(), rows.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      if (a.second.sum != b.second.sum) return a.second.sum > b.second.sum;
      return a.second.uid < b.second.uid;
    });
    for (const auto& [key, row] : order) {
      std::vector<Value> cells;
      std::optional<std::string> dims, strides, concrete;
      if (host_) {
        dims = model_.Dims(row.op, Form::kTuple);
        strides = model_.Strides(row.op, Form::kTuple);
        concrete = model_.Concrete(row.op, Form::kTuple);
        cells = {Value(std::get<0>(key)), Value(dims), Value(strides),
                 Value(concrete)};
      }
      for (const Value& cell :
           {Value(std::get<4>(key)), Value(Us(row.sum)), Value(row.count),
            Value(Us(row.sum) / static_cast<double>(row.count)),
            Value(Percent(static_cast<double>(row.sum),
                          static_cast<double>(model_.total_time_ns())))})
        cells.push_back(cell);
      table.AddRow(cells);
    }
    return table;
  }

  const Model& model_;
  const Trace& trace_;
  bool host_;  // columns of ops
  std::map<NodeId, SliceId> own_work_;
};

}  // namespace

void AddKernelSheets(const Model& model, ResultSet& result) {
  KernelSheets(model).Add(result);
}

}  // namespace lamina::compat::tracelens
