// SPDX-License-Identifier: Apache-2.0
//
// ops_summary_by_category, ops_summary, ops_unique_args.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/stats.h"
#include "base/escape.h"
#include "compat/tracelens/sheets.h"

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

Column Text(std::string name) { return {std::move(name), ColumnType::kText, "See docs/tracelens.md."}; }
Column Number(std::string name) { return {std::move(name), ColumnType::kReal, "See docs/tracelens.md."}; }
Column Count(std::string name) { return {std::move(name), ColumnType::kInt, "See docs/tracelens.md."}; }

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
    row.emplace_back(Percent(static_cast<double>(direct_ns),
                             static_cast<double>(total_)));
    row.emplace_back(Percent(static_cast<double>(running_),
                             static_cast<double>(total_)));
  }

 private:
  int64_t total_;
  int64_t running_ = 0;
};

void AddByCategory(const Model& model, ResultSet& result) {
  const bool split = model.options().recompute;
  Schema schema{"ops_summary_by_category", "Launchers by category.", {}};
  schema.columns = {Text("op category")};
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  for (const Column& column :
       {Count("Count"), Number("total_direct_kernel_time_ms"),
        Number("Percentage (%)"), Number("Cumulative Percentage (%)")})
    schema.columns.push_back(column);
  Table table(std::move(schema));
  Shares shares(model);
  using Key = std::pair<std::string_view, bool>;
  for (const auto& [key, rows] :
       GroupBy<Key>(model, [](const Launch& launch) {
         return Key(launch.category, launch.recompute);
       })) {
    std::vector<Value> row = {key.first};
    if (split) row.emplace_back(key.second);
    row.emplace_back(rows.launches.size());
    row.emplace_back(Ms(rows.direct_ns));
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

void AddSummary(const Model& model, ResultSet& result) {
  const bool split = model.options().recompute;
  Schema schema{"ops_summary", "Launchers by name.", {}};
  schema.columns = {Text("name")};
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  for (const Column& column :
       {Number("total_direct_kernel_time_sum"),
        Number("total_subtree_kernel_time_sum"),
        Number("total_direct_kernel_time_ms"),
        Number("total_subtree_kernel_time_ms"), Count("Count"),
        Text("Categories"), Number("Percentage (%)"),
        Number("Cumulative Percentage (%)")})
    schema.columns.push_back(column);
  Table table(std::move(schema));
  Shares shares(model);
  using Key = std::pair<std::string_view, bool>;
  for (const auto& [key, rows] :
       GroupBy<Key>(model, [&](const Launch& launch) {
         return Key(model.tree().name(launch.node), launch.recompute);
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
    std::vector<Value> row = {key.first};
    if (split) row.emplace_back(key.second);
    row.emplace_back(Us(rows.direct_ns));
    row.emplace_back(Us(rows.subtree_ns));
    row.emplace_back(Ms(rows.direct_ns));
    row.emplace_back(Ms(rows.subtree_ns));
    row.emplace_back(rows.launches.size());
    row.emplace_back(list);
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

void AddUniqueArgs(const Model& model, ResultSet& result) {
  const bool split = model.options().recompute;
  Schema schema{"ops_unique_args", "Launchers by name and arguments.", {}};
  schema.columns = {Text("name"),         Text("op category"),
                    Text("process_name"), Text("process_label"),
                    Text("thread_name"),  Text("Input Dims"),
                    Text("Input type"),   Text("Input Strides"),
                    Text("Concrete Inputs")};
  if (split)
    schema.columns.push_back({"is_recompute", ColumnType::kBool, "Half."});
  schema.columns.push_back(Count("operation_count"));
  for (const char* statistic :
       {"mean", "median", "std", "min", "max", "sum"}) {
    schema.columns.push_back(
        Number(std::string("total_direct_kernel_time_") + statistic));
    schema.columns.push_back(
        Number(std::string("total_subtree_kernel_time_") + statistic));
  }
  schema.columns.push_back(Count("ex_UID"));
  schema.columns.push_back(Number("Percentage (%)"));
  schema.columns.push_back(Number("Cumulative Percentage (%)"));
  Table table(std::move(schema));

  const Trace& trace = model.trace();
  using Key = std::tuple<StringId, std::string_view, std::string, std::string,
                         std::string, StringId, StringId, StringId, StringId,
                         bool>;
  const auto key_of = [&](const Launch& launch) {
    const SliceId slice = model.tree().slice(launch.node);
    const trace::OpArgs* op = trace.Op(slice);
    return Key(trace.slices.name[slice.value], launch.category,
               model.ProcessName(launch.node), model.ProcessLabel(launch.node),
               model.ThreadName(launch.node), op ? op->dims : StringId(),
               op ? op->types : StringId(), op ? op->strides : StringId(),
               op ? op->concrete : StringId(), launch.recompute);
  };
  Shares shares(model);
  for (const auto& [key, rows] : GroupBy<Key>(model, key_of)) {
    std::vector<int64_t> direct;
    std::vector<int64_t> subtree;
    for (const Launch* launch : rows.launches) {
      direct.push_back(launch->direct_ns);
      subtree.push_back(launch->subtree_ns);
    }
    const Stats d = analysis::Summarize(direct);
    const Stats s = analysis::Summarize(subtree);
    const NodeId first = rows.launches[0]->node;
    const auto dims = model.Dims(first, Form::kTuple);
    const auto types = model.Types(first, Form::kTuple);
    const auto strides = model.Strides(first, Form::kTuple);
    const auto concrete = model.Concrete(first, Form::kTuple);
    std::vector<Value> row = {trace.Text(std::get<0>(key)),
                              std::get<1>(key),
                              std::get<2>(key),
                              std::get<3>(key),
                              std::get<4>(key),
                              dims,
                              types,
                              strides,
                              concrete};
    if (split) row.emplace_back(std::get<9>(key));
    row.emplace_back(rows.launches.size());
    const auto micro = [](const std::optional<double>& ns) {
      return ns ? Value(*ns / 1000.0) : Value();
    };
    for (const auto& [x, y] :
         {std::pair(micro(d.mean), micro(s.mean)),
          std::pair(micro(d.median), micro(s.median)),
          std::pair(micro(d.std_dev), micro(s.std_dev)),
          std::pair(Value(Us(d.min)), Value(Us(s.min))),
          std::pair(Value(Us(d.max)), Value(Us(s.max))),
          std::pair(Value(Us(d.sum)), Value(Us(s.sum)))}) {
      row.push_back(x);
      row.push_back(y);
    }
    row.emplace_back(FirstUid(model, rows));
    shares.Append(row, rows.direct_ns);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

void AddOpSheets(const Model& model, ResultSet& result) {
  if (model.tree().size() == 0) return;  // no host events
  AddByCategory(model, result);
  AddSummary(model, result);
  AddUniqueArgs(model, result);
}

}  // namespace lamina::compat::tracelens
