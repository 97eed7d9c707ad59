// SPDX-License-Identifier: Apache-2.0
//
// unified_perf_summary and the family sheets.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/stats.h"
#include "base/decimal.h"
#include "compat/tracelens/perf_params.h"
#include "compat/tracelens/pseudo_ops.h"
#include "compat/tracelens/sheets.h"
#include "compat/tracelens/stacks.h"
#include "cost/dtype.h"

namespace lamina::compat::tracelens {
namespace {

using Form = Model::Form;

// mean, median, std, min, max of doubles.
struct Five {
  std::optional<double> mean, median, std_dev, min, max;
};

Five Summary(std::vector<double> values) {
  Five out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += v;
  out.mean = sum / n;
  out.median =
      (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  out.min = values.front();
  out.max = values.back();
  if (values.size() > 1) {
    double squares = 0;
    for (const double v : values) squares += (v - *out.mean) * (v - *out.mean);
    out.std_dev = std::sqrt(squares / (n - 1));
  }
  return out;
}

// What one op costs by its model, as the layout shows it.
struct Priced {
  const cost::OpModel* model = nullptr;
  std::optional<cost::Cost> cost;
  std::vector<Param> params;
  std::string spec;
};

class Pricer {
 public:
  explicit Pricer(const Model& model)
      : model_(model), models_(*model.context().efficiency->costs) {}

  const cost::ModelSet& models() const { return models_.models(); }

  // The model that TraceLens has, too; null if none.
  const cost::OpModel* Find(NodeId node) {
    const StringId name =
        model_.trace().slices.name[model_.tree().slice(node).value];
    const auto [it, is_new] = by_name_.try_emplace(name.value, nullptr);
    if (is_new) {
      const cost::OpModel* found = models().Find(model_.Name(node));
      if (found != nullptr && !found->native) it->second = found;
    }
    return it->second;
  }

  static bool IsCompiled(const cost::OpModel& model) {
    return model.model->name == "triton";
  }

  // Of the call `source`; kernels are those of `node`.
  const Priced& Price(NodeId node, NodeId source, bool backward) {
    const Trace& trace = model_.trace();
    const SliceId slice = model_.tree().slice(source);
    const trace::OpArgs* op = trace.Op(slice);
    const auto work = model_.tree().DeviceWork(node);
    const StringId kernel =
        work.empty() ? StringId() : trace.slices.name[work[0].value];
    const StringId step = model_.context().steps.RequestsAt(source);
    const Key key{trace.slices.name[slice.value].value,
                  op ? op->dims.value : 0,
                  op ? op->types.value : 0,
                  op ? op->strides.value : 0,
                  op ? op->concrete.value : 0,
                  kernel.value,
                  step.value,
                  backward};
    const auto [it, is_new] = priced_.try_emplace(key);
    if (!is_new) return it->second;
    Priced& priced = it->second;
    priced.model = Find(source);
    if (priced.model == nullptr) return priced;
    const auto text = [&](StringId id) { return trace.strings[id]; };
    const std::string name = model_.Name(source);
    auto call = cost::ParseCall(name, op ? text(op->dims) : "",
                                op ? text(op->types) : "",
                                op ? text(op->concrete) : "");
    if (!call) return priced;
    call->step = cost::ParseStep(text(step));
    CountWeight(*priced.model, *call);
    auto cost = models().Evaluate(*priced.model, *call, backward);
    if (cost) priced.cost = std::move(*cost);
    priced.params = PerfParams(models(), *priced.model, *call,
                               priced.cost ? &*priced.cost : nullptr,
                               op ? text(op->strides) : "", text(kernel));
    if (priced.cost) priced.spec = Spec(priced, *call);
    return priced;
  }

  // Null when no model knows the pseudo-op.
  const Priced* Price(const PseudoOp& pseudo) {
    const Trace& trace = model_.trace();
    const cost::OpModel* found = models().Find(pseudo.name);
    const trace::OpArgs* op = trace.Op(model_.tree().slice(pseudo.donor));
    if (found == nullptr || op == nullptr) return nullptr;
    const StringId kernel = trace.slices.name[pseudo.work[0].value];
    const StringId step = model_.context().steps.RequestsAt(pseudo.donor);
    const auto [it, is_new] = pseudo_.try_emplace(std::tuple(
        pseudo.name, op->dims.value, op->types.value, op->concrete.value,
        kernel.value, step.value, pseudo.top_k.value_or(0)));
    Priced& priced = it->second;
    if (!is_new) return &priced;
    priced.model = found;
    const auto text = [&](StringId id) { return trace.strings[id]; };
    auto call = cost::ParseCall(pseudo.name, text(op->dims), text(op->types),
                                text(op->concrete));
    if (!call) return &priced;
    call->step = cost::ParseStep(text(step));
    if (pseudo.top_k) AddRouting(pseudo, text(kernel), *call);
    if (auto cost = models().Evaluate(*found, *call, false))
      priced.cost = std::move(*cost);
    priced.params = PerfParams(models(), *found, *call,
                               priced.cost ? &*priced.cost : nullptr,
                               text(op->strides), text(kernel));
    if (priced.cost) priced.spec = priced.cost->Spec();
    return &priced;
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                         uint32_t, uint32_t, bool>;

  // What the models of a router read behind its two tensors: the number of
  // experts of a token, gating, and the weights' type, which only the name of
  // the kernel holds.
  static void AddRouting(const PseudoOp& pseudo, std::string_view kernel,
                         cost::Call& call) {
    call.arguments.resize(5);
    call.arguments[2].concrete = FormatDouble(*pseudo.top_k);
    call.arguments[3].concrete = pseudo.gated.value_or(false) ? "1" : "0";
    cost::Argument& weight = call.arguments[4];
    if (kernel.find("fp4") != std::string_view::npos) {
      weight.type = "fp4";
      weight.concrete = "0.5";
    } else if (kernel.find("fp8") != std::string_view::npos) {
      weight.type = "fp8";
      weight.concrete = "1";
    }
  }

  // TraceLens counts the weight of an RMS norm that has none.
  static void CountWeight(const cost::OpModel& model, cost::Call& call) {
    const bool backward = model.model->name == "rms_norm_bwd";
    if (!backward && model.model->name != "rms_norm") return;
    const size_t weight = backward ? 4 : 2;
    if (weight < call.arguments.size() && call.arguments[weight].type.empty())
      call.arguments[weight].type = call.arguments[0].type;
  }

  // Compiled kernels have the plain name of their first sized type.
  static std::string Spec(const Priced& priced, const cost::Call& call) {
    if (!IsCompiled(*priced.model)) return priced.cost->Spec();
    for (const cost::Argument& argument : call.arguments) {
      std::string_view type = argument.type;
      if (!type.starts_with("c10::")) continue;
      std::string name(type.substr(5));
      std::transform(name.begin(), name.end(), name.begin(), ::tolower);
      return "vector_" + name;
    }
    return {};
  }

  const Model& model_;
  const analysis::CostView& models_;
  std::map<uint32_t, const cost::OpModel*> by_name_;
  std::map<Key, Priced> priced_;
  std::map<std::tuple<std::string_view, uint32_t, uint32_t, uint32_t, uint32_t,
                      uint32_t, double>,
           Priced>
      pseudo_;
};

// One row's worth of an op: the node, what it stands for and its work.
struct Item {
  NodeId node;
  std::string name;
  std::vector<SliceId> work;
  const Priced* priced = nullptr;  // null: no model
  bool synthetic = false;
  const PseudoOp* pseudo = nullptr;
};

// The walk of section "unified op table": every device event that is no
// communication is in one item.
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

// Times and rates over the items of a row.
struct Measures {
  std::vector<double> kernel_us, tflops, tbs;
  int64_t kernel_ns = 0;

  void Add(const Trace& trace, const std::vector<SliceId>& work,
           const Priced* priced) {
    const int64_t ns = analysis::UnionOf(trace, work);
    kernel_ns += ns;
    kernel_us.push_back(Us(ns));
    if (priced == nullptr || !priced->cost || ns == 0) return;
    const double seconds = static_cast<double>(ns) / 1e9;
    tflops.push_back(priced->cost->flops / seconds / 1e12);
    tbs.push_back(priced->cost->bytes / seconds / 1e12);
  }
};

const char* kStatistics[] = {"mean", "median", "std", "min", "max"};

void AppendFive(std::vector<Value>& row, const Five& five) {
  for (const auto& value :
       {five.mean, five.median, five.std_dev, five.min, five.max})
    row.emplace_back(value);
}

Value Intensity(const Priced* priced) {
  if (priced == nullptr || !priced->cost || priced->cost->bytes == 0) return {};
  return priced->cost->flops / priced->cost->bytes;
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
    std::vector<SliceId> work = item->work;
    std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
      return trace.Start(a) < trace.Start(b);
    });
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

void AddUnified(const Model& model, Pricer& pricer,
                const std::vector<PseudoOp>& pseudo_ops, ResultSet& result) {
  const bool inference = model.options().inference;
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
  Table table(std::move(schema));

  const Trace& trace = model.trace();
  const std::vector<Item> items = Walk(model, pricer, pseudo_ops).Run();
  struct Row {
    std::vector<const Item*> items;
    std::string_view category;
    Measures measures;
  };
  using Key =
      std::tuple<std::string, std::string_view, std::string, std::string,
                 std::string, uint32_t, uint32_t, uint32_t, uint32_t>;
  std::map<Key, Row> groups;
  int64_t total_ns = 0;
  for (const Item& item : items) {
    const trace::OpArgs* op = trace.Op(model.tree().slice(item.node));
    std::vector<SliceId> by_start = item.work;
    std::stable_sort(
        by_start.begin(), by_start.end(),
        [&](SliceId a, SliceId b) { return trace.Start(a) < trace.Start(b); });
    const std::string_view category = model.Category(item.name, by_start);
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
  std::vector<const Row*> rows;
  for (auto& [key, row] : groups) {
    rows.push_back(&row);
    total_ns += row.measures.kernel_ns;
  }
  const auto uid = [&](const Row& row) {
    const Item& item = *row.items[0];
    return item.pseudo != nullptr ? item.pseudo->uid
                                  : trace.Uid(model.tree().slice(item.node));
  };
  std::sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    if (a->measures.kernel_ns != b->measures.kernel_ns)
      return a->measures.kernel_ns > b->measures.kernel_ns;
    return std::pair(uid(*a), a->items[0]->name) <
           std::pair(uid(*b), b->items[0]->name);
  });
  int64_t running = 0;
  for (const Row* row : rows) {
    const Item& first = *row->items[0];
    const Priced* priced = first.priced;
    const bool costed = priced != nullptr && priced->cost;
    const Five kernel = Summary(row->measures.kernel_us);
    const Five tbs = Summary(row->measures.tbs);
    const Five tflops = Summary(row->measures.tflops);
    std::vector<double> durations;
    double duration_sum = 0;
    for (const Item* item : row->items) {
      if (item->pseudo != nullptr) continue;  // not in the time of the host
      const double us = Us(trace.Duration(model.tree().slice(item->node)));
      duration_sum += us;
      durations.push_back(us);
    }
    const Five host = Summary(durations);
    running += row->measures.kernel_ns;
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
        row->category,
        process,
        label,
        thread,
        dims,
        types,
        strides,
        concrete,
        uid(*row),
        row->items.size(),
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
        Us(row->measures.kernel_ns),
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
    std::string entry;
    std::string stack;
    if (inference) {
      // A synthetic op stands for one kernel and has no place of its own.
      const NodeId place = first.pseudo != nullptr
                               ? model.tree().launch(first.work[0])
                               : first.node;
      entry = first.synthetic ? "Not found" : EntryPoint(model, place);
      const std::vector<SliceId> work = ByTotal(model, row->items);
      stack = first.synthetic
                  ? KernelList(model, work)
                  : CallStackFull(model, work,
                                  first.pseudo != nullptr ? first.pseudo->name
                                                          : std::string_view());
      cells.emplace_back(entry);
      cells.emplace_back(stack);
    }
    cells.emplace_back(Percent(static_cast<double>(row->measures.kernel_ns),
                               static_cast<double>(total_ns)));
    cells.emplace_back(
        Percent(static_cast<double>(running), static_cast<double>(total_ns)));
    table.AddRow(cells);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

// One sheet: rows by name and parameters.
struct Family {
  struct Row {
    std::string name;
    uint32_t uid = 0;
    std::vector<NodeId> nodes;
    size_t kernels = 0;  // below each
    const Priced* priced = nullptr;
    Measures measures;
  };
  std::vector<std::string> params;  // in order of first use
  std::map<std::string, size_t> index;
  std::vector<Row> rows;
};

void AddFamilies(const Model& model, Pricer& pricer,
                 const std::vector<PseudoOp>& pseudo_ops, ResultSet& result) {
  const Trace& trace = model.trace();
  const tree::Tree& tree = model.tree();
  std::map<std::string, Family> sheets;
  const auto add_row = [&](const std::string& sheet, const std::string& name,
                           NodeId node, uint32_t uid, const Priced& priced,
                           const std::vector<SliceId>& work) {
    Family& family = sheets[sheet];
    std::string key = name;
    const size_t kernels = work.size();
    if (model.options().inference) key += '\x1f' + std::to_string(kernels);
    for (const Param& param : priced.params) {
      if (std::find(family.params.begin(), family.params.end(), param.name) ==
          family.params.end())
        family.params.push_back(param.name);
      key += '\x1f' + param.name + '\x1f' + param.python;
    }
    const auto [it, is_new] = family.index.try_emplace(key, family.rows.size());
    if (is_new) {
      family.rows.emplace_back();
      family.rows.back().priced = &priced;
      family.rows.back().kernels = kernels;
      family.rows.back().name = name;
      family.rows.back().uid = uid;
    }
    Family::Row& row = family.rows[it->second];
    row.nodes.push_back(node);
    row.measures.Add(trace, work, &priced);
  };
  const auto add = [&](const std::string& sheet, NodeId node, NodeId worker,
                       bool backward) {
    const Priced& priced = pricer.Price(worker, node, backward);
    if (!priced.cost) return;
    const auto work = tree.DeviceWork(worker);
    add_row(sheet, model.Name(node), node, trace.Uid(tree.slice(node)), priced,
            {work.begin(), work.end()});
  };
  // In the order of the file.
  std::vector<NodeId> ops;
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const NodeId node(n);
    if (tree.IsOp(node) && pricer.Find(node) != nullptr) ops.push_back(node);
  }
  std::sort(ops.begin(), ops.end(), [&](NodeId a, NodeId b) {
    return trace.Uid(tree.slice(a)) < trace.Uid(tree.slice(b));
  });
  for (const NodeId node : ops) {
    const cost::OpModel& op = *pricer.Find(node);
    if (op.sheet.empty()) continue;
    const bool joint =
        op.sheet == "GEMM" || op.sheet.ends_with("Elementwise") ||
        (op.sheet == "Normalization" && !model.options().inference);
    const bool backward_name =
        op.sheet != "Normalization" && (op.model->name.ends_with("_bwd"));
    add(joint ? op.sheet : op.sheet + (backward_name ? "_bwd" : "_fwd"), node,
        node, false);
    const NodeId backward = tree.backward(node);
    if (!backward.valid() || !pricer.models().HasBackward(op)) continue;
    // Backward norms are in the joint sheet by their own names.
    if (!joint) add(op.sheet + "_bwd", node, backward, true);
  }
  for (const PseudoOp& pseudo : pseudo_ops) {
    const Priced* priced = pricer.Price(pseudo);
    if (priced == nullptr || !priced->cost) continue;
    add_row(priced->model->sheet + "_fwd", std::string(pseudo.name),
            pseudo.donor, pseudo.uid, *priced, pseudo.work);
  }
  for (auto& [name, family] : sheets) {
    Schema schema{
        name, "Ops of one family by their parameters.", {Text("name")}};
    for (const std::string& param : family.params)
      schema.columns.push_back(Text("param: " + param));
    if (model.options().inference)
      schema.columns.push_back(Count("num_kernels"));
    for (Column& column : std::vector<Column>{Number("GFLOPS_first"),
                                              Number("Data Moved (MB)_first"),
                                              Number("FLOPS/Byte_first")})
      schema.columns.push_back(std::move(column));
    for (const char* rate : {"TB/s", "TFLOPS/s"}) {
      for (const char* statistic : kStatistics)
        schema.columns.push_back(Number(std::string(rate) + "_" + statistic));
    }
    for (const char* column :
         {"process_name_first", "process_label_first", "thread_name_first",
          "Compute Spec", "Input Dims_first", "Input type_first",
          "Input Strides_first", "Concrete Inputs_first"})
      schema.columns.push_back(Text(column));
    for (const char* statistic : kStatistics)
      schema.columns.push_back(
          Number(std::string("Kernel Time (µs)_") + statistic));
    schema.columns.push_back(Number("Kernel Time (µs)_sum"));
    schema.columns.push_back(Count("name_count"));
    schema.columns.push_back(Count("UID_first"));
    Table table(std::move(schema));
    std::stable_sort(family.rows.begin(), family.rows.end(),
                     [](const Family::Row& a, const Family::Row& b) {
                       return a.measures.kernel_ns > b.measures.kernel_ns;
                     });
    for (const Family::Row& row : family.rows) {
      const NodeId first = row.nodes[0];
      const Priced& priced = *row.priced;
      std::vector<Value> cells = {row.name};
      std::vector<std::optional<std::string>> texts;
      for (const std::string& param : family.params) {
        const auto it =
            std::find_if(priced.params.begin(), priced.params.end(),
                         [&](const Param& p) { return p.name == param; });
        texts.push_back(it == priced.params.end() ? std::nullopt : it->Cell());
      }
      for (const auto& text : texts) cells.emplace_back(text);
      if (model.options().inference) cells.emplace_back(row.kernels);
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
                    priced.spec.empty() ? Value() : Value(priced.spec), dims,
                    types, strides, concrete});
      AppendFive(cells, Summary(row.measures.kernel_us));
      cells.emplace_back(Us(row.measures.kernel_ns));
      cells.emplace_back(row.nodes.size());
      cells.emplace_back(row.uid);
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }
}

}  // namespace

void AddPerfSheets(const Model& model, ResultSet& result) {
  if (model.tree().size() == 0 || model.context().efficiency == nullptr) return;
  Pricer pricer(model);
  const std::vector<PseudoOp> pseudo_ops = FindPseudoOps(model);
  AddUnified(model, pricer, pseudo_ops, result);
  AddFamilies(model, pricer, pseudo_ops, result);
}

}  // namespace lamina::compat::tracelens
