// SPDX-License-Identifier: Apache-2.0
//
// ops_summary_by_category, ops_summary, ops_unique_args. In one file, because
// they group launches in one way.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/stats.h"
#include "base/escape.h"
#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/sheets.h"
#include "compat/tracelens/stacks.h"

namespace lamina::compat::tracelens {
namespace {

using analysis::Stats;
using Form = Model::Form;

// Launches of one row.
struct Rows {
  std::vector<const Launch*> launches;
  int64_t direct_ns = 0;
  int64_t subtree_ns = 0;
};

uint32_t FirstUid(const Model& model, const Rows& rows) {
  return model.trace().Uid(model.tree().slice(rows.launches[0]->node));
}

// Groups launches by `key`, largest direct time first, ties by first event.
template <class Key, class KeyOf>
std::vector<std::pair<Key, Rows>> GroupBy(const Model& model, KeyOf key_of) {
  std::map<Key, Rows> groups;
  for (const Launch& launch : model.launches()) {
    Rows& rows = groups[key_of(launch)];
    rows.launches.push_back(&launch);
    rows.direct_ns += launch.direct_ns;
    rows.subtree_ns += launch.subtree_ns;
  }
  std::vector<std::pair<Key, Rows>> out(groups.begin(), groups.end());
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    if (a.second.direct_ns != b.second.direct_ns)
      return a.second.direct_ns > b.second.direct_ns;
    return FirstUid(model, a.second) < FirstUid(model, b.second);
  });
  return out;
}

class Shares {
 public:
  explicit Shares(const Model& model) : total_(model.direct_total_ns()) {}
  void Append(std::vector<Value>& row, int64_t direct_ns) {
    running_ += direct_ns;
    row.emplace_back(
        Percent(static_cast<double>(direct_ns), static_cast<double>(total_)));
    row.emplace_back(
        Percent(static_cast<double>(running_), static_cast<double>(total_)));
  }

 private:
  int64_t total_;
  int64_t running_ = 0;
};

// The inference layout groups by the module around the launcher, too.
std::string ModuleKey(const Model& model, const Launch& launch) {
  return model.options().inference ? ParentModule(model, launch.node)
                                   : std::string();
}

void AddByCategory(const Model& model, ResultSet& result) {
  const bool split = model.options().recompute;
  const bool inference = model.options().inference;
  Schema schema{"ops_summary_by_category", "Launchers by category.", {}};
  schema.columns = {Text("op category")};
  if (inference) schema.columns.push_back(Text("parent_module"));
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  schema.columns.push_back(Count("Count"));
  if (inference) schema.columns.push_back(Text("call_stack_first"));
  for (const Column& column :
       {Number("total_direct_kernel_time_ms"), Number("Percentage (%)"),
        Number("Cumulative Percentage (%)")})
    schema.columns.push_back(column);
  Table table(std::move(schema));
  Shares shares(model);
  using Key = std::tuple<std::string_view, std::string, bool>;
  for (const auto& [key, rows] : GroupBy<Key>(model, [&](const Launch& launch) {
         return Key(launch.category, ModuleKey(model, launch),
                    launch.recompute);
       })) {
    std::vector<Value> row = {std::get<0>(key)};
    if (inference) row.emplace_back(std::get<1>(key));
    if (split) row.emplace_back(std::get<2>(key));
    row.emplace_back(rows.launches.size());
    std::string stack;
    if (inference) {
      stack = CallStack(model, rows.launches[0]->node);
      row.emplace_back(stack);
    }
    row.emplace_back(Ms(rows.direct_ns));
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

void AddSummary(const Model& model, ResultSet& result) {
  const bool split = model.options().recompute;
  const bool inference = model.options().inference;
  Schema schema{"ops_summary", "Launchers by name.", {}};
  schema.columns = {Text("name")};
  if (inference) schema.columns.push_back(Text("parent_module"));
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  schema.columns.push_back(Number("total_direct_kernel_time_sum"));
  schema.columns.push_back(Number("total_subtree_kernel_time_sum"));
  if (inference)
    schema.columns.push_back(Count("total_subtree_kernel_time_count"));
  schema.columns.push_back(Number("total_direct_kernel_time_ms"));
  if (!inference)
    schema.columns.push_back(Number("total_subtree_kernel_time_ms"));
  schema.columns.push_back(Count("Count"));
  schema.columns.push_back(Text("Categories"));
  if (inference) schema.columns.push_back(Text("call_stack_first"));
  schema.columns.push_back(Number("Percentage (%)"));
  schema.columns.push_back(Number("Cumulative Percentage (%)"));
  Table table(std::move(schema));
  Shares shares(model);
  using Key = std::tuple<std::string, std::string, bool>;
  for (const auto& [key, rows] : GroupBy<Key>(model, [&](const Launch& launch) {
         return Key(model.Name(launch.node), ModuleKey(model, launch),
                    launch.recompute);
       })) {
    std::set<std::string_view> categories;
    for (const Launch* launch : rows.launches)
      categories.insert(launch->category);
    std::string list = "[";
    for (const std::string_view category : categories) {
      if (list.size() > 1) list += ", ";
      AppendPythonQuoted(list, category);
    }
    list += "]";
    std::vector<Value> row = {std::get<0>(key)};
    if (inference) row.emplace_back(std::get<1>(key));
    if (split) row.emplace_back(std::get<2>(key));
    row.emplace_back(Us(rows.direct_ns));
    row.emplace_back(Us(rows.subtree_ns));
    if (inference) row.emplace_back(rows.launches.size());
    row.emplace_back(Ms(rows.direct_ns));
    if (!inference) row.emplace_back(Ms(rows.subtree_ns));
    row.emplace_back(rows.launches.size());
    row.emplace_back(list);
    std::string stack;
    if (inference) {
      stack = CallStack(model, rows.launches[0]->node);
      row.emplace_back(stack);
    }
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

// With `overlaps`, which may be null, what ran beside them is a key, too.
void AddUniqueArgs(const Model& model, const Overlaps* overlaps,
                   ResultSet& result) {
  const bool split = model.options().recompute;
  const bool inference = model.options().inference;
  Schema schema{"ops_unique_args", "Launchers by name and arguments.", {}};
  schema.columns = {Text("name")};
  if (overlaps != nullptr) {
    schema.name += kOverlapSheet;
    schema.columns.push_back(Text("overlapping_kernel_names"));
  }
  schema.columns.push_back(Text("op category"));
  if (inference) schema.columns.push_back(Text("parent_module"));
  for (const char* name :
       {"process_name", "process_label", "thread_name", "Input Dims",
        "Input type", "Input Strides", "Concrete Inputs"})
    schema.columns.push_back(Text(name));
  if (inference) schema.columns.push_back(Count("num_kernels"));
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  schema.columns.push_back(Count("operation_count"));
  for (const char* statistic : {"mean", "median", "std", "min", "max", "sum"}) {
    schema.columns.push_back(
        Number(std::string("total_direct_kernel_time_") + statistic));
    schema.columns.push_back(
        Number(std::string("total_subtree_kernel_time_") + statistic));
  }
  schema.columns.push_back(Count("ex_UID"));
  if (inference) schema.columns.push_back(Text("call_stack"));
  schema.columns.push_back(Text("kernel_details_summary"));
  schema.columns.push_back(Text("trunc_kernel_details"));
  if (overlaps != nullptr) {
    OverlapCells::AppendColumns("overlapping_kernels_details_summary", schema);
  }
  schema.columns.push_back(Number("Percentage (%)"));
  schema.columns.push_back(Number("Cumulative Percentage (%)"));
  Table table(std::move(schema));

  const Trace& trace = model.trace();
  using Key = std::tuple<std::string, std::string_view, std::string,
                         std::string, std::string, StringId, StringId, StringId,
                         StringId, bool, std::string, size_t, std::string>;
  const auto overlap_of = [&](const Launch& launch) {
    return overlaps != nullptr
               ? overlaps->Of(trace, model.launchers().Work(*launch.launcher))
               : OverlapInfo();
  };
  const auto key_of = [&](const Launch& launch) {
    const SliceId slice = model.tree().slice(launch.node);
    const trace::OpArgs* op = trace.Op(slice);
    return Key(model.Name(launch.node), launch.category,
               model.ProcessName(launch.node), model.ProcessLabel(launch.node),
               model.ThreadName(launch.node), op ? op->dims : StringId(),
               op ? op->types : StringId(), op ? op->strides : StringId(),
               op ? op->concrete : StringId(), launch.recompute,
               ModuleKey(model, launch), inference ? launch.kernels : 0,
               overlap_of(launch).names);
  };
  Shares shares(model);
  for (const auto& [key, rows] : GroupBy<Key>(model, key_of)) {
    std::vector<int64_t> direct;
    std::vector<int64_t> subtree;
    std::vector<std::vector<KernelPlace>> kernels;
    std::vector<OverlapInfo> beside;
    for (const Launch* launch : rows.launches) {
      direct.push_back(launch->direct_ns);
      subtree.push_back(launch->subtree_ns);
      const auto work = model.launchers().Work(*launch->launcher);
      kernels.push_back(PlacesOf(trace, {work.begin(), work.end()}));
      if (overlaps != nullptr) beside.push_back(overlap_of(*launch));
    }
    const std::vector<KernelPlace> places = SummarizePlaces(kernels);
    const std::string details = DetailsCell(places);
    const auto truncated = TruncatedCell(places);
    const OverlapCells overlap(beside);
    const Stats d = analysis::Summarize(direct);
    const Stats s = analysis::Summarize(subtree);
    const NodeId first = rows.launches[0]->node;
    const auto dims = model.Dims(first, Form::kTuple);
    const auto types = model.Types(first, Form::kTuple);
    const auto strides = model.Strides(first, Form::kTuple);
    const auto concrete = model.Concrete(first, Form::kTuple);
    std::vector<Value> row = {std::get<0>(key)};
    const std::string& names = std::get<12>(key);
    if (overlaps != nullptr)
      row.push_back(names.empty() ? Value() : Value(names));
    row.emplace_back(std::get<1>(key));
    if (inference) row.emplace_back(std::get<10>(key));
    for (const Value& value : {Value(std::get<2>(key)), Value(std::get<3>(key)),
                               Value(std::get<4>(key)), Value(dims),
                               Value(types), Value(strides), Value(concrete)})
      row.push_back(value);
    if (inference) row.emplace_back(std::get<11>(key));
    if (split) row.emplace_back(std::get<9>(key));
    row.emplace_back(rows.launches.size());
    const auto micro = [](const std::optional<double>& ns) {
      return ns ? Value(*ns / 1000.0) : Value();
    };
    for (const auto& [x, y] : {std::pair(micro(d.mean), micro(s.mean)),
                               std::pair(micro(d.median), micro(s.median)),
                               std::pair(micro(d.std_dev), micro(s.std_dev)),
                               std::pair(Value(Us(d.min)), Value(Us(s.min))),
                               std::pair(Value(Us(d.max)), Value(Us(s.max))),
                               std::pair(Value(Us(d.sum)), Value(Us(s.sum)))}) {
      row.push_back(x);
      row.push_back(y);
    }
    row.emplace_back(FirstUid(model, rows));
    std::string stack;
    if (inference) {
      stack = CallStack(model, first);
      row.emplace_back(stack);
    }
    row.emplace_back(details);
    row.emplace_back(truncated);
    if (overlaps != nullptr) overlap.AppendTo(false, row);
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

}  // namespace

void AddOpSheets(const Model& model, const Overlaps* overlaps,
                 ResultSet& result) {
  if (model.gpu_only()) return;
  AddByCategory(model, result);
  AddSummary(model, result);
  AddUniqueArgs(model, nullptr, result);
  if (overlaps != nullptr) AddUniqueArgs(model, overlaps, result);
}

}  // namespace lamina::compat::tracelens
