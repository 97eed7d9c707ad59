// SPDX-License-Identifier: Apache-2.0
//
// ops_summary_by_category, ops_summary, ops_unique_args. In one file, because
// they group launches in one way.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/common/cost_view.h"
#include "analysis/common/stats.h"
#include "base/escape.h"
#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/perf_sheets.h"
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

// The family sheets (GEMM, SDPA_fwd ...): ops with a cost by name and
// parameters, one column per parameter; and the same by what ran beside them.

namespace {

// One sheet: rows by name and parameters.
struct Family {
  struct Row {
    std::string name;
    uint32_t uid = 0;
    std::vector<NodeId> nodes;
    size_t kernels = 0;  // below each
    bool recompute = false;
    const Priced* priced = nullptr;
    Measures measures;
    std::vector<std::vector<SliceId>> work;  // by call
    std::vector<OverlapInfo> overlaps;       // of the overlap sheets, by call
    // Of all rows that differ only in what ran beside them.
    int64_t group_ns = 0;
    uint32_t group_uid = 0;
  };
  std::vector<std::string> params;  // in order of first use
  std::map<std::string, size_t> index;
  std::map<std::string, std::vector<size_t>> groups;  // rows, one per call
  std::vector<Row> rows;
};

// Sorts ops into families.
class Families {
 public:
  // `overlaps` may be null.
  Families(const Model& model, Pricer& pricer, const Overlaps* overlaps)
      : model_(model),
        tree_(model.tree()),
        pricer_(pricer),
        overlaps_(overlaps) {}

  std::map<std::string, Family> Run(const std::vector<PseudoOp>& pseudo_ops) {
    for (const NodeId node : OpsInFileOrder()) AddOp(node);
    for (const PseudoOp& pseudo : pseudo_ops) {
      const Priced* priced = pricer_.Price(pseudo);
      if (priced == nullptr || !priced->cost) continue;
      AddRow(priced->model->sheet + "_fwd", std::string(pseudo.name),
             pseudo.donor, pseudo.uid, *priced, pseudo.work);
    }
    return std::move(sheets_);
  }

 private:
  uint32_t Uid(NodeId node) const {
    return model_.trace().Uid(tree_.slice(node));
  }

  std::vector<NodeId> OpsInFileOrder() const {
    std::vector<NodeId> ops;
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      if (tree_.IsOp(node) && pricer_.Find(node) != nullptr)
        ops.push_back(node);
    }
    std::sort(ops.begin(), ops.end(),
              [&](NodeId a, NodeId b) { return Uid(a) < Uid(b); });
    return ops;
  }

  void AddOp(NodeId node) {
    const cost::OpModel& op = *pricer_.Find(node);
    if (op.sheet.empty()) return;
    // Forward and backward in one sheet.
    const bool joint =
        op.sheet == "GEMM" || op.sheet.ends_with("Elementwise") ||
        (op.sheet == "Normalization" && !model_.options().inference);
    const bool backward_name =
        op.sheet != "Normalization" && op.model->name.ends_with("_bwd");
    AddWork(joint ? op.sheet : op.sheet + (backward_name ? "_bwd" : "_fwd"),
            node, node, false);
    const NodeId backward = tree_.backward(node);
    if (!backward.valid() || !pricer_.models().HasBackward(op)) return;
    // Backward norms and convolutions have rows by their own names.
    if (!joint && op.sheet != "CONV")
      AddWork(op.sheet + "_bwd", node, backward, true);
  }

  // The call `node`, done by the kernels below `worker`.
  void AddWork(const std::string& sheet, NodeId node, NodeId worker,
               bool backward) {
    const Priced& priced = pricer_.Price(worker, node, backward);
    if (!priced.cost) return;
    const auto work = tree_.DeviceWork(worker);
    AddRow(sheet, model_.Name(node), node, Uid(node), priced,
           {work.begin(), work.end()});
  }

  void AddRow(const std::string& sheet, const std::string& name, NodeId node,
              uint32_t uid, const Priced& priced,
              const std::vector<SliceId>& work) {
    Family& family = sheets_[sheet];
    std::string key = name;
    const bool recompute = model_.IsRecompute(node);
    if (recompute) key += "\x1frecompute";
    if (model_.options().inference) key += '\x1f' + std::to_string(work.size());
    for (const Param& param : priced.params) {
      if (std::find(family.params.begin(), family.params.end(), param.name) ==
          family.params.end())
        family.params.push_back(param.name);
      key += '\x1f' + param.name + '\x1f' + param.python;
    }
    const std::string group = key;
    OverlapInfo beside;
    if (overlaps_ != nullptr) {
      beside = overlaps_->OfLauncher(model_, node);
      key += '\x1f' + beside.names;
    }
    const auto [it, is_new] = family.index.try_emplace(key, family.rows.size());
    if (is_new) {
      Family::Row& row = family.rows.emplace_back();
      row.priced = &priced;
      row.kernels = work.size();
      row.recompute = recompute;
      row.name = name;
      row.uid = uid;
    }
    Family::Row& row = family.rows[it->second];
    row.nodes.push_back(node);
    row.measures.Add(model_.trace(), work, &priced);
    row.work.push_back(ByStart(model_.trace(), work));
    if (overlaps_ != nullptr) row.overlaps.push_back(std::move(beside));
    family.groups[group].push_back(it->second);
  }

  const Model& model_;
  const tree::Tree& tree_;
  Pricer& pricer_;
  const Overlaps* overlaps_;
  std::map<std::string, Family> sheets_;
};

// Which columns there are.
struct OpColumns {
  bool kernels = false;  // their number
  bool recompute = false;
  bool rooflines = false;
  bool overlaps = false;
};

Schema FamilySchema(const std::string& name, const Family& family,
                    const OpColumns& has) {
  Schema schema{name, "Ops of one family by their parameters.", {Text("name")}};
  if (has.overlaps) {
    schema.name += kOverlapSheet;
    schema.columns.push_back(Text("overlapping_kernel_names_first"));
  }
  for (const std::string& param : family.params)
    schema.columns.push_back(Text("param: " + param));
  if (has.kernels) schema.columns.push_back(Count("num_kernels"));
  if (has.recompute) schema.columns.push_back(Flag("is_recompute"));
  for (const char* column :
       {"GFLOPS_first", "Data Moved (MB)_first", "FLOPS/Byte_first"})
    schema.columns.push_back(Number(column));
  for (const char* rate : {"TB/s", "TFLOPS/s"}) {
    for (const char* statistic : kStatistics)
      schema.columns.push_back(Number(std::string(rate) + "_" + statistic));
  }
  for (const char* column : {"process_name_first", "process_label_first",
                             "thread_name_first", "Compute Spec"})
    schema.columns.push_back(Text(column));
  if (has.rooflines) {
    schema.columns.push_back(Number("Roofline Time (µs)_first"));
    schema.columns.push_back(Text("Roofline Bound_first"));
    for (const char* statistic : kStatistics)
      schema.columns.push_back(
          Number(std::string("Pct Roofline_") + statistic));
  }
  schema.columns.push_back(Text("kernel_details__summarize_kernel_stats"));
  schema.columns.push_back(Text("trunc_kernel_details"));
  if (has.overlaps) {
    OverlapCells::AppendColumns(
        "overlapping_kernels_details__summarize_kernel_stats", schema);
  }
  for (const char* column : {"Input Dims_first", "Input type_first",
                             "Input Strides_first", "Concrete Inputs_first"})
    schema.columns.push_back(Text(column));
  for (const char* statistic : kStatistics)
    schema.columns.push_back(
        Number(std::string("Kernel Time (µs)_") + statistic));
  schema.columns.push_back(Number("Kernel Time (µs)_sum"));
  schema.columns.push_back(Count("name_count"));
  schema.columns.push_back(Count("UID_first"));
  return schema;
}

void AddCells(const Model& model, const Family& family, const OpColumns& has,
              const Family::Row& row, Table& table) {
  const NodeId first = row.nodes[0];
  const Priced& priced = *row.priced;
  std::vector<Value> cells = {row.name};
  if (has.overlaps) {
    const std::string& names = row.overlaps[0].names;
    cells.push_back(names.empty() ? Value() : Value(names));
  }
  std::vector<std::optional<std::string>> texts;
  for (const std::string& param : family.params) {
    const auto it =
        std::find_if(priced.params.begin(), priced.params.end(),
                     [&](const Param& p) { return p.name == param; });
    texts.push_back(it == priced.params.end() ? std::nullopt : it->Cell());
  }
  for (const auto& text : texts) cells.emplace_back(text);
  if (has.kernels) cells.emplace_back(row.kernels);
  if (has.recompute) cells.emplace_back(row.recompute);
  cells.emplace_back(priced.cost->flops / 1e9);
  cells.emplace_back(priced.cost->bytes / 1048576.0);
  cells.push_back(Intensity(&priced));
  AppendFive(cells, Summary(row.measures.tbs));
  AppendFive(cells, Summary(row.measures.tflops));
  const std::string process = model.ProcessName(first);
  const std::string label = model.ProcessLabel(first);
  const std::string thread = model.ThreadName(first);
  const auto dims = model.Dims(first, Form::kList);
  const auto types = model.Types(first, Form::kList);
  const auto strides = model.Strides(first, Form::kList);
  const auto concrete = model.Concrete(first, Form::kList);
  cells.insert(cells.end(),
               {process, label, thread,
                priced.spec.empty() ? Value() : Value(priced.spec)});
  if (has.rooflines) {
    AppendRoofline(cells, &priced);
    AppendFive(cells, Summary(row.measures.roofline_percent));
  }
  std::vector<std::vector<KernelPlace>> kernels;
  for (const auto& work : row.work)
    kernels.push_back(PlacesOf(model.trace(), work));
  const std::vector<KernelPlace> places = SummarizePlaces(kernels);
  const std::string details = DetailsCell(places);
  const auto truncated = TruncatedCell(places);
  const OverlapCells overlap(row.overlaps);
  cells.insert(cells.end(), {details, truncated});
  if (has.overlaps) overlap.AppendTo(true, cells);
  cells.insert(cells.end(), {dims, types, strides, concrete});
  AppendFive(cells, Summary(row.measures.kernel_us));
  cells.emplace_back(Us(row.measures.kernel_ns));
  cells.emplace_back(row.nodes.size());
  cells.emplace_back(row.uid);
  table.AddRow(cells);
}

// Most time first; rows that differ only in what ran beside them together.
void Sort(Family& family) {
  for (const auto& [key, calls] : family.groups) {
    const std::set<size_t> rows(calls.begin(), calls.end());
    int64_t sum_ns = 0;
    uint32_t uid = UINT32_MAX;
    for (const size_t i : rows) {
      sum_ns += family.rows[i].measures.kernel_ns;
      uid = std::min(uid, family.rows[i].uid);
    }
    for (const size_t i : rows) {
      family.rows[i].group_ns = sum_ns;
      family.rows[i].group_uid = uid;
    }
  }
  const auto place = [](const Family::Row& row) {
    return std::tuple(-row.group_ns, row.group_uid, std::string_view(row.name),
                      -row.measures.kernel_ns, row.uid);
  };
  std::stable_sort(family.rows.begin(), family.rows.end(),
                   [&](const Family::Row& a, const Family::Row& b) {
                     return place(a) < place(b);
                   });
}

void AddSheets(const Model& model, Pricer& pricer,
               const std::vector<PseudoOp>& pseudo_ops,
               const Overlaps* overlaps, ResultSet& result) {
  std::map<std::string, Family> sheets =
      Families(model, pricer, overlaps).Run(pseudo_ops);
  for (auto& [name, family] : sheets) {
    Sort(family);
    OpColumns has;
    has.kernels = model.options().inference;
    has.recompute = model.options().recompute;
    has.overlaps = overlaps != nullptr;
    has.rooflines = std::any_of(family.rows.begin(), family.rows.end(),
                                [](const Family::Row& row) {
                                  return row.priced->roofline.has_value();
                                });
    Table table(FamilySchema(name, family, has));
    for (const Family::Row& row : family.rows)
      AddCells(model, family, has, row, table);
    result.tables.push_back(std::move(table));
  }
}

}  // namespace

void AddFamilySheets(const Model& model, Pricer& pricer,
                     const std::vector<PseudoOp>& pseudo_ops,
                     const Overlaps* overlaps, ResultSet& result) {
  AddSheets(model, pricer, pseudo_ops, nullptr, result);
  if (overlaps != nullptr)
    AddSheets(model, pricer, pseudo_ops, overlaps, result);
}

}  // namespace lamina::compat::tracelens
