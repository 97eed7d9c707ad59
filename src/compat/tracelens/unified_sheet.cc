// SPDX-License-Identifier: Apache-2.0
//
// unified_perf_summary: every device event that is no communication, by op.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "compat/tracelens/measures.h"
#include "compat/tracelens/perf_sheets.h"
#include "compat/tracelens/sheets.h"
#include "compat/tracelens/stacks.h"
#include "compat/tracelens/unified_items.h"

namespace lamina::compat::tracelens {
namespace {

using Form = Model::Form;

// Items that look the same.
struct Row {
  std::vector<const Item*> items;
  std::string_view category;
  Measures measures;
};

Schema UnifiedSchema(bool inference) {
  Schema schema{"unified_perf_summary",
                "Every device event that is no communication, by op.",
                {}};
  schema.columns = {
      Text("name"),
      Text("op category"),
      Text("process_name"),
      Text("process_label"),
      Text("thread_name"),
      Text("Input Dims"),
      Text("Input type"),
      Text("Input Strides"),
      Text("Concrete Inputs"),
      Count("ex_UID"),
      Count("operation_count"),
      Number("total_duration_us"),
      Number("mean_duration_us"),
      Number("std_duration_us"),
      Number("GFLOPS"),
      Number("Data Moved (MB)"),
      Number("FLOPS/Byte"),
      Text("Compute Spec"),
      Number("TB/s_mean"),
      Number("TB/s_std"),
      Number("TFLOPS/s_mean"),
      Number("TFLOPS/s_std"),
      Number("Kernel Time (µs)_mean"),
      Number("Kernel Time (µs)_std"),
      Number("Kernel Time (µs)_sum"),
      Number("duration_us_median"),
      Number("duration_us_min"),
      Number("duration_us_max"),
      Number("TB/s_median"),
      Number("TB/s_min"),
      Number("TB/s_max"),
      Number("TFLOPS/s_median"),
      Number("TFLOPS/s_min"),
      Number("TFLOPS/s_max"),
      Number("Kernel Time (µs)_median"),
      Number("Kernel Time (µs)_min"),
      Number("Kernel Time (µs)_max"),
      Text("perf_params"),
      {"has_perf_model", ColumnType::kBool, "See docs/tracelens.md."}};
  if (inference) {
    schema.columns.push_back(Text("entry_point"));
    schema.columns.push_back(Text("call_stack_full"));
  }
  schema.columns.push_back(Number("Percentage (%)"));
  schema.columns.push_back(Number("Cumulative Percentage (%)"));
  return schema;
}

std::vector<SliceId> ByStart(const Trace& trace, std::vector<SliceId> work) {
  std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
    return trace.Start(a) < trace.Start(b);
  });
  return work;
}

// Work of the first item, ascending by the time that its place takes in all
// items.
std::vector<SliceId> ByTotal(const Model& model,
                             const std::vector<const Item*>& items) {
  const Trace& trace = model.trace();
  struct Place {
    SliceId slice;
    int64_t total_ns = 0;
  };
  std::vector<Place> places;
  for (const Item* item : items) {
    const std::vector<SliceId> work = ByStart(trace, item->work);
    if (places.empty()) {
      for (const SliceId s : work) places.push_back({s});
    }
    for (size_t i = 0; i < std::min(places.size(), work.size()); ++i)
      places[i].total_ns += trace.Duration(work[i]);
  }
  std::stable_sort(places.begin(), places.end(),
                   [&](const Place& a, const Place& b) {
                     return std::pair(a.total_ns, trace.Name(a.slice)) <
                            std::pair(b.total_ns, trace.Name(b.slice));
                   });
  std::vector<SliceId> out;
  for (const Place& place : places) out.push_back(place.slice);
  return out;
}

// The number that identifies the first item of a row.
uint32_t Uid(const Model& model, const Row& row) {
  const Item& item = *row.items[0];
  return item.pseudo != nullptr
             ? item.pseudo->uid
             : model.trace().Uid(model.tree().slice(item.node));
}

// Most time first.
std::vector<Row> GroupItems(const Model& model,
                            const std::vector<Item>& items) {
  using Key =
      std::tuple<std::string, std::string_view, std::string, std::string,
                 std::string, uint32_t, uint32_t, uint32_t, uint32_t>;
  const Trace& trace = model.trace();
  std::map<Key, Row> groups;
  for (const Item& item : items) {
    const trace::OpArgs* op = trace.Op(model.tree().slice(item.node));
    const std::string_view category =
        model.Category(item.name, ByStart(trace, item.work));
    const auto id = [&](StringId trace::OpArgs::*member) {
      return op != nullptr ? (op->*member).value : UINT32_MAX;
    };
    Row& row =
        groups[Key(item.name, category, model.ProcessName(item.node),
                   model.ProcessLabel(item.node), model.ThreadName(item.node),
                   id(&trace::OpArgs::dims), id(&trace::OpArgs::types),
                   id(&trace::OpArgs::strides), id(&trace::OpArgs::concrete))];
    row.category = category;
    row.items.push_back(&item);
    row.measures.Add(trace, item.work, item.priced);
  }
  std::vector<Row> rows;
  for (auto& [key, row] : groups) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    if (a.measures.kernel_ns != b.measures.kernel_ns)
      return a.measures.kernel_ns > b.measures.kernel_ns;
    return std::pair(Uid(model, a), a.items[0]->name) <
           std::pair(Uid(model, b), b.items[0]->name);
  });
  return rows;
}

// Times of the ops on the host; pseudo-ops have none.
std::vector<double> HostTimes(const Model& model, const Row& row) {
  std::vector<double> out;
  for (const Item* item : row.items) {
    if (item->pseudo != nullptr) continue;
    out.push_back(Us(model.trace().Duration(model.tree().slice(item->node))));
  }
  return out;
}

// Cells `entry_point` and `call_stack_full`.
std::pair<std::string, std::string> Stacks(const Model& model, const Row& row) {
  const Item& first = *row.items[0];
  const std::vector<SliceId> work = ByTotal(model, row.items);
  // A synthetic op stands for one kernel and has no place of its own.
  if (first.synthetic) return {"Not found", KernelList(model, work)};
  if (first.pseudo == nullptr)
    return {EntryPoint(model, first.node), CallStackFull(model, work, {})};
  return {EntryPoint(model, model.tree().launch(first.work[0])),
          CallStackFull(model, work, first.pseudo->name)};
}

// `running_ns`: the time of this row and those above.
void AddRow(const Model& model, const Row& row, int64_t running_ns,
            int64_t total_ns, Table& table) {
  const Item& first = *row.items[0];
  const Priced* priced = first.priced;
  const bool costed = priced != nullptr && priced->cost;
  const Five kernel = Summary(row.measures.kernel_us);
  const Five tbs = Summary(row.measures.tbs);
  const Five tflops = Summary(row.measures.tflops);
  const std::vector<double> durations = HostTimes(model, row);
  const Five host = Summary(durations);
  const double duration_sum =
      std::accumulate(durations.begin(), durations.end(), 0.0);
  const std::string process = model.ProcessName(first.node);
  const std::string label = model.ProcessLabel(first.node);
  const std::string thread = model.ThreadName(first.node);
  const auto dims = model.Dims(first.node, Form::kTuple);
  const auto types = model.Types(first.node, Form::kTuple);
  const auto strides = model.Strides(first.node, Form::kTuple);
  const auto concrete = model.Concrete(first.node, Form::kTuple);
  const std::string params =
      priced != nullptr ? ParamsDict(priced->params) : std::string();
  std::vector<Value> cells = {
      first.name,
      row.category,
      process,
      label,
      thread,
      dims,
      types,
      strides,
      concrete,
      Uid(model, row),
      row.items.size(),
      duration_sum,
      host.mean,
      host.std_dev,
      costed ? Value(priced->cost->flops / 1e9) : Value(),
      costed ? Value(priced->cost->bytes / 1048576.0) : Value(),
      Intensity(priced),
      costed && !priced->spec.empty() ? Value(priced->spec) : Value(),
      tbs.mean,
      tbs.std_dev,
      tflops.mean,
      tflops.std_dev,
      kernel.mean,
      kernel.std_dev,
      Us(row.measures.kernel_ns),
      host.median,
      host.min,
      host.max,
      tbs.median,
      tbs.min,
      tbs.max,
      tflops.median,
      tflops.min,
      tflops.max,
      kernel.median,
      kernel.min,
      kernel.max,
      priced != nullptr && !priced->params.empty() ? Value(params) : Value(),
      priced != nullptr};
  std::pair<std::string, std::string> stacks;
  if (model.options().inference) {
    stacks = Stacks(model, row);
    cells.emplace_back(stacks.first);
    cells.emplace_back(stacks.second);
  }
  const auto total = static_cast<double>(total_ns);
  cells.emplace_back(
      Percent(static_cast<double>(row.measures.kernel_ns), total));
  cells.emplace_back(Percent(static_cast<double>(running_ns), total));
  table.AddRow(cells);
}

}  // namespace

void AddUnifiedSheet(const Model& model, Pricer& pricer,
                     const std::vector<PseudoOp>& pseudo_ops,
                     ResultSet& result) {
  const std::vector<Item> items = UnifiedItems(model, pricer, pseudo_ops);
  const std::vector<Row> rows = GroupItems(model, items);
  int64_t total_ns = 0;
  for (const Row& row : rows) total_ns += row.measures.kernel_ns;
  Table table(UnifiedSchema(model.options().inference));
  int64_t running_ns = 0;
  for (const Row& row : rows) {
    running_ns += row.measures.kernel_ns;
    AddRow(model, row, running_ns, total_ns, table);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

}  // namespace lamina::compat::tracelens
