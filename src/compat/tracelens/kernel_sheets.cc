// SPDX-License-Identifier: Apache-2.0
//
// kernel_summary and the short-kernel study: kernels only, linked or not,
// communication too.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/stats.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
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
