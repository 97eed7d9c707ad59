// SPDX-License-Identifier: Apache-2.0
//
// The family sheets (GEMM, SDPA_fwd ...): ops with a cost by name and
// parameters, one column per parameter; and the same by what ran beside them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/perf_sheets.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

using Form = Model::Form;

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
struct Columns {
  bool kernels = false;  // their number
  bool recompute = false;
  bool rooflines = false;
  bool overlaps = false;
};

Schema FamilySchema(const std::string& name, const Family& family,
                    const Columns& has) {
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

void AddCells(const Model& model, const Family& family, const Columns& has,
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
    Columns has;
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
