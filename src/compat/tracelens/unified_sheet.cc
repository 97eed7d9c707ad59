// SPDX-License-Identifier: Apache-2.0
//
// What the rows of unified_perf_summary add up: ops, such that every device
// event that is no communication is in one of them.

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/common/cost_view.h"
#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/model.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/perf_sheets.h"
#include "compat/tracelens/pricer.h"
#include "compat/tracelens/pseudo_ops.h"
#include "compat/tracelens/sheets.h"
#include "compat/tracelens/stacks.h"

namespace lamina::compat::tracelens {

// One row's worth of an op: the node, what it stands for and its work.
struct Item {
  NodeId node;
  std::string name;
  std::vector<SliceId> work;
  const Priced* priced = nullptr;  // null: no model
  bool synthetic = false;
  const PseudoOp* pseudo = nullptr;
};

// Ops with a model or kernels of their own, in the order of the tree; then
// pseudo-ops whose work is left; then a synthetic op for every kernel that is
// left. The items point into `pricer` and `pseudo_ops`.
std::vector<Item> UnifiedItems(const Model& model, Pricer& pricer,
                               const std::vector<PseudoOp>& pseudo_ops);

namespace {

class Walk {
 public:
  Walk(const Model& model, Pricer& pricer,
       const std::vector<PseudoOp>& pseudo_ops)
      : model_(model),
        tree_(model.tree()),
        pricer_(pricer),
        pseudo_ops_(pseudo_ops) {}

  std::vector<Item> Run() {
    covered_.resize(model_.trace().slices.size(), false);
    const size_t size = tree_.size();
    FindModels();
    for (uint32_t n = 0; n < size;) {
      const NodeId node(n);
      if (!tree_.HasDeviceWork(node)) {
        n = tree_.end(node).value;
        continue;
      }
      n = Visit(node) ? tree_.end(node).value : n + 1;
    }
    Pseudo();
    Synthetic();
    return std::move(items_);
  }

 private:
  bool Communication(SliceId s) const {
    return analysis::PeerBucket(model_.trace().KindOf(s),
                                model_.trace().Name(s)) ==
           analysis::Bucket::kCommunication;
  }

  // Prefix counts of ops with device work and a model, to ask subtrees.
  void FindModels() {
    models_before_.resize(tree_.size() + 1, 0);
    std::vector<bool> pseudo(tree_.size());
    for (const PseudoOp& op : pseudo_ops_) {
      if (pricer_.Price(op) == nullptr) continue;
      for (const SliceId s : op.work) pseudo[tree_.launch(s).value] = true;
    }
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      const bool has =
          pseudo[n] || (tree_.IsOp(node) && tree_.HasDeviceWork(node) &&
                        pricer_.Find(node) != nullptr);
      models_before_[n + 1] = models_before_[n] + (has ? 1 : 0);
    }
  }
  bool ModelBelow(NodeId node) const {
    return models_before_[tree_.end(node).value] !=
           models_before_[node.value + 1];
  }

  void Take(NodeId node, const Priced* priced) {
    Item item;
    item.node = node;
    item.name = model_.Name(node);
    item.priced = priced;
    for (const SliceId s : tree_.DeviceWork(node)) {
      covered_[s.value] = true;
      item.work.push_back(s);
    }
    items_.push_back(std::move(item));
  }

  // True when the subtree of the node is done.
  bool Visit(NodeId node) {
    if (!tree_.IsOp(node)) return false;
    if (const cost::OpModel* found = pricer_.Find(node)) {
      const Priced& priced = pricer_.Price(node, node, false);
      // TraceLens has no model of a compiled kernel whose sizes are missing.
      const bool known = priced.cost || !Pricer::IsCompiled(*found);
      Take(node, known ? &priced : nullptr);
      return true;
    }
    if (!ModelBelow(node)) {
      const NodeId forward = ForwardOf(node);
      if (forward.valid()) {
        Take(node, &pricer_.Price(node, forward, true));
        return true;
      }
    } else {
      return false;
    }
    if (!LaunchesItself(node)) return false;
    const auto work = tree_.DeviceWork(node);
    if (std::any_of(work.begin(), work.end(),
                    [&](SliceId s) { return Communication(s); }))
      return false;
    Take(node, nullptr);
    return true;
  }

  // The forward op whose model prices this only main op of its wrapper.
  NodeId ForwardOf(NodeId node) {
    NodeId up = node;
    for (int level = 0; level <= 5 && up.valid();
         ++level, up = tree_.parent(up)) {
      const NodeId forward = tree_.forward(up);
      if (!forward.valid()) continue;
      if (up == node) return {};  // the wrapper itself
      std::string_view wanted = tree_.name(up);
      const size_t colon = wanted.find(": ");
      wanted = colon == std::string_view::npos ? std::string_view()
                                               : wanted.substr(colon + 2);
      size_t mains = 0;
      bool self = false;
      for (uint32_t n = up.value + 1; n < tree_.end(up).value; ++n) {
        const NodeId below(n);
        if (!tree_.IsOp(below) || !tree_.HasDeviceWork(below)) continue;
        if (!wanted.empty() && tree_.name(below) != wanted) continue;
        ++mains;
        self = self || below == node;
      }
      const cost::OpModel* model = pricer_.Find(forward);
      return mains == 1 && self && model != nullptr &&
                     pricer_.models().HasBackward(*model)
                 ? forward
                 : NodeId();
    }
    return {};
  }

  // Through calls and Python frames only.
  bool LaunchesItself(NodeId node) const {
    for (uint32_t n = node.value + 1; n < tree_.end(node).value;) {
      const NodeId below(n);
      if (tree_.IsOp(below)) {
        n = tree_.end(below).value;
        continue;
      }
      if (!tree_.OwnDeviceWork(below).empty()) return true;
      ++n;
    }
    return !tree_.OwnDeviceWork(node).empty();
  }

  // Those whose work no op with a model has taken.
  void Pseudo() {
    for (const PseudoOp& pseudo : pseudo_ops_) {
      if (std::any_of(pseudo.work.begin(), pseudo.work.end(),
                      [&](SliceId s) { return covered_[s.value]; }))
        continue;
      Item item;
      item.node = pseudo.donor;
      item.name = pseudo.name;
      item.work = pseudo.work;
      item.priced = pricer_.Price(pseudo);
      item.pseudo = &pseudo;
      for (const SliceId s : pseudo.work) covered_[s.value] = true;
      items_.push_back(std::move(item));
    }
  }

  void Synthetic() {
    for (const SliceId s : tree_.launched()) {
      if (covered_[s.value] || Communication(s)) continue;
      const NodeId launch = tree_.launch(s);
      const NodeId op = tree_.EnclosingOp(launch);
      Item item;
      item.node = op.valid() ? op : launch;
      item.name = model_.Name(item.node) + "->" +
                  std::string(model_.trace().Name(s)) + " (Synthetic Op)";
      item.work = {s};
      item.synthetic = true;
      items_.push_back(std::move(item));
    }
  }

  const Model& model_;
  const tree::Tree& tree_;
  Pricer& pricer_;
  const std::vector<PseudoOp>& pseudo_ops_;
  std::vector<bool> covered_;
  std::vector<uint32_t> models_before_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<Item> UnifiedItems(const Model& model, Pricer& pricer,
                               const std::vector<PseudoOp>& pseudo_ops) {
  return Walk(model, pricer, pseudo_ops).Run();
}

// unified_perf_summary: every device event that is no communication, by op;
// and unified_perf_summary_kl_overlap, by what ran beside it, too.

namespace {

using Form = Model::Form;

// Items that look the same.
struct UnifiedRow {
  std::vector<const Item*> items;
  std::string_view category;
  Measures measures;
  std::vector<OverlapInfo> overlaps;  // of the overlap sheet, by item
};

// Which columns there are.
struct UnifiedColumns {
  bool inference = false;
  bool recompute = false;
  bool rooflines = false;
  bool overlaps = false;
};

Schema UnifiedSchema(const UnifiedColumns& has) {
  Schema schema{"unified_perf_summary",
                "Every device event that is no communication, by op.",
                {}};
  std::vector<Column>& out = schema.columns;
  const auto texts = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) out.push_back(Text(name));
  };
  const auto numbers = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) out.push_back(Number(name));
  };
  texts({"name"});
  if (has.overlaps) {
    schema.name += kOverlapSheet;
    texts({"overlapping_kernel_names"});
  }
  texts({"op category", "process_name", "process_label", "thread_name",
         "Input Dims", "Input type", "Input Strides", "Concrete Inputs"});
  if (has.recompute) out.push_back(Flag("is_recompute"));
  out.push_back(Count("ex_UID"));
  out.push_back(Count("operation_count"));
  numbers({"total_duration_us", "mean_duration_us", "std_duration_us", "GFLOPS",
           "Data Moved (MB)", "FLOPS/Byte"});
  texts({"Compute Spec"});
  if (has.rooflines) texts({"Roofline Bound"});
  numbers({"TB/s_mean", "TB/s_std", "TFLOPS/s_mean", "TFLOPS/s_std",
           "Kernel Time (µs)_mean", "Kernel Time (µs)_std",
           "Kernel Time (µs)_sum", "duration_us_median", "duration_us_min",
           "duration_us_max", "TB/s_median", "TB/s_min", "TB/s_max",
           "TFLOPS/s_median", "TFLOPS/s_min", "TFLOPS/s_max"});
  if (has.rooflines) {
    numbers({"Roofline Time (µs)_first", "Pct Roofline_mean",
             "Pct Roofline_median", "Pct Roofline_std", "Pct Roofline_min",
             "Pct Roofline_max"});
  }
  numbers({"Kernel Time (µs)_median", "Kernel Time (µs)_min",
           "Kernel Time (µs)_max"});
  texts({"kernel_details_summary", "trunc_kernel_details"});
  if (has.overlaps)
    OverlapCells::AppendColumns("overlapping_kernels_details_summary", schema);
  texts({"perf_params"});
  out.push_back(Flag("has_perf_model"));
  if (has.inference) texts({"entry_point", "call_stack_full"});
  numbers({"Percentage (%)", "Cumulative Percentage (%)"});
  return schema;
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
uint32_t Uid(const Model& model, const UnifiedRow& row) {
  const Item& item = *row.items[0];
  return item.pseudo != nullptr
             ? item.pseudo->uid
             : model.trace().Uid(model.tree().slice(item.node));
}

// Most time first.
std::vector<UnifiedRow> GroupItems(const Model& model,
                                   const std::vector<Item>& items,
                                   const Overlaps* overlaps) {
  using Key =
      std::tuple<std::string, std::string_view, std::string, std::string,
                 std::string, uint32_t, uint32_t, uint32_t, uint32_t, bool>;
  const Trace& trace = model.trace();
  std::map<std::pair<Key, std::string>, UnifiedRow> groups;
  // Rows that differ in what ran beside them stay together.
  std::map<Key, std::pair<int64_t, uint32_t>> totals;  // time, first number
  for (const Item& item : items) {
    const trace::OpArgs* op = trace.Op(model.tree().slice(item.node));
    // By what it launches itself, where it launches anything.
    const Launch* const launch = item.synthetic || item.pseudo != nullptr
                                     ? nullptr
                                     : model.LaunchOf(item.node);
    const std::string_view category =
        launch != nullptr
            ? launch->category
            : model.Category(item.name, ByStart(trace, item.work));
    const auto id = [&](StringId trace::OpArgs::*member) {
      return op != nullptr ? (op->*member).value : UINT32_MAX;
    };
    const Key key(item.name, category, model.ProcessName(item.node),
                  model.ProcessLabel(item.node), model.ThreadName(item.node),
                  id(&trace::OpArgs::dims), id(&trace::OpArgs::types),
                  id(&trace::OpArgs::strides), id(&trace::OpArgs::concrete),
                  model.IsRecompute(item.node));
    OverlapInfo beside;
    if (overlaps != nullptr)
      beside = item.pseudo != nullptr
                   ? overlaps->Of(trace, item.work)
                   : overlaps->OfOp(model, item.node, item.work);
    UnifiedRow& row = groups[{key, beside.names}];
    if (overlaps != nullptr) row.overlaps.push_back(std::move(beside));
    row.category = category;
    row.items.push_back(&item);
    row.measures.Add(trace, item.work, item.priced);
  }
  for (const auto& [key, row] : groups) {
    const auto [it, is_new] =
        totals.try_emplace(key.first, int64_t{0}, Uid(model, row));
    it->second.first += row.measures.kernel_ns;
    it->second.second = std::min(it->second.second, Uid(model, row));
  }
  struct Placed {
    std::pair<int64_t, uint32_t> total;
    UnifiedRow row;
  };
  std::vector<Placed> placed;
  for (auto& [key, row] : groups)
    placed.push_back({totals[key.first], std::move(row)});
  const auto place = [&](const Placed& p) {
    return std::tuple(-p.total.first, p.total.second,
                      std::string_view(p.row.items[0]->name),
                      -p.row.measures.kernel_ns, Uid(model, p.row));
  };
  std::stable_sort(
      placed.begin(), placed.end(),
      [&](const Placed& a, const Placed& b) { return place(a) < place(b); });
  std::vector<UnifiedRow> rows;
  for (Placed& p : placed) rows.push_back(std::move(p.row));
  return rows;
}

// Times of the ops on the host; pseudo-ops have none.
std::vector<double> HostTimes(const Model& model, const UnifiedRow& row) {
  std::vector<double> out;
  for (const Item* item : row.items) {
    if (item->pseudo != nullptr) continue;
    out.push_back(Us(model.trace().Duration(model.tree().slice(item->node))));
  }
  return out;
}

// Cells `entry_point` and `call_stack_full`.
std::pair<std::string, std::string> Stacks(const Model& model,
                                           const UnifiedRow& row) {
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
void AddRow(const Model& model, const UnifiedColumns& has,
            const UnifiedRow& row, int64_t running_ns, int64_t total_ns,
            Table& table) {
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
  std::vector<std::vector<KernelPlace>> kernels;
  for (const Item* item : row.items)
    kernels.push_back(
        PlacesOf(model.trace(), ByStart(model.trace(), item->work)));
  const std::vector<KernelPlace> places = SummarizePlaces(kernels);
  const std::string details = DetailsCell(places);
  const auto truncated = TruncatedCell(places);
  const OverlapCells overlap(row.overlaps);
  std::vector<Value> roofline;  // time and bound
  AppendRoofline(roofline, priced);
  std::vector<Value> cells;
  const auto add = [&](std::initializer_list<Value> values) {
    cells.insert(cells.end(), values);
  };
  add({first.name});
  if (has.overlaps) {
    const std::string& names = row.overlaps[0].names;
    add({names.empty() ? Value() : Value(names)});
  }
  add({row.category, process, label, thread, dims, types, strides, concrete});
  if (has.recompute) add({model.IsRecompute(first.node)});
  add({Uid(model, row), row.items.size(), duration_sum, host.mean, host.std_dev,
       costed ? Value(priced->cost->flops / 1e9) : Value(),
       costed ? Value(priced->cost->bytes / 1048576.0) : Value(),
       Intensity(priced),
       costed && !priced->spec.empty() ? Value(priced->spec) : Value()});
  if (has.rooflines) add({roofline[1]});
  add({tbs.mean, tbs.std_dev, tflops.mean, tflops.std_dev, kernel.mean,
       kernel.std_dev, Us(row.measures.kernel_ns), host.median, host.min,
       host.max, tbs.median, tbs.min, tbs.max, tflops.median, tflops.min,
       tflops.max});
  if (has.rooflines) {
    add({roofline[0]});
    AppendFive(cells, Summary(row.measures.roofline_percent));
  }
  add({kernel.median, kernel.min, kernel.max, details, truncated});
  if (has.overlaps) overlap.AppendTo(true, cells);
  add({priced != nullptr && !priced->params.empty() ? Value(params) : Value(),
       priced != nullptr});
  std::pair<std::string, std::string> stacks;
  if (has.inference) {
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

void AddUnifiedSheets(const Model& model, Pricer& pricer,
                      const std::vector<PseudoOp>& pseudo_ops,
                      const Overlaps* overlaps, ResultSet& result) {
  const std::vector<Item> items = UnifiedItems(model, pricer, pseudo_ops);
  UnifiedColumns has;
  has.inference = model.options().inference;
  has.recompute = model.options().recompute;
  has.rooflines = std::any_of(items.begin(), items.end(), [](const Item& item) {
    return item.priced != nullptr && item.priced->roofline;
  });
  const auto add = [&](const Overlaps* beside) {
    has.overlaps = beside != nullptr;
    const std::vector<UnifiedRow> rows = GroupItems(model, items, beside);
    int64_t total_ns = 0;
    for (const UnifiedRow& row : rows) total_ns += row.measures.kernel_ns;
    Table table(UnifiedSchema(has));
    int64_t running_ns = 0;
    for (const UnifiedRow& row : rows) {
      running_ns += row.measures.kernel_ns;
      AddRow(model, has, row, running_ns, total_ns, table);
    }
    if (table.rows() > 0) result.tables.push_back(std::move(table));
  };
  add(nullptr);
  if (overlaps != nullptr) add(overlaps);
}

}  // namespace lamina::compat::tracelens
