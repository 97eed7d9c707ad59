// SPDX-License-Identifier: Apache-2.0
//
// mfu_steps, mfu_run, mfu_modules: which share of what the device can do went
// into the model.
//
//   H = FLOPs of all work on matrix units, recomputation included
//   M = H without what activation checkpointing computes again
//   MFU = M / (P T), HFU = H / (P T)
//
// P is the peak of the type with most of H, T the period of the step: its
// begin to that of the next. Several devices have a row each; a run is the sum
// of FLOPs over the sum of P T. Where the cost models see less than nine tenths
// of the compute time, or a fifth of H is estimated, a cell is empty and `why`
// says so: half a utilisation is none. Over 250 lines because the three tables
// share the sums.
#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/cost_view.h"
#include "analysis/common/recompute.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "analysis/layers/layers.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "cost/arguments.h"
#include "table/row_columns.h"

namespace lamina::analysis::mfu {
namespace {

constexpr double kLeastModelled = 0.9;
constexpr double kMostEstimated = 0.2;

// What rows of steps and of the run share.
struct Cells {
  int64_t period;  // nanoseconds
  double model_tflop, hardware_tflop, vector_tflop;
  std::optional<std::string> dominant_type;
  std::optional<double> type_share, peak_tflops, mfu, hfu, exact_utilisation,
      busy_utilisation;
  std::optional<int64_t> tokens;
  std::optional<double> tokens_per_s;
  double modelled_share;
  std::string_view recompute;
  std::optional<std::string> why;
};
struct StepRow {
  int64_t step;
  std::string_view device;
  Cells cells;
};
struct RunRow {
  size_t steps, devices;
  Cells cells;
};

template <class Row, class T>
auto Of(T Cells::*member) {
  return [member](const Row& row) -> const T& { return row.cells.*member; };
}

template <class Row>
RowColumns<Row> WithCells(RowColumns<Row> columns) {
  for (
      const RowColumn<Row>& column : std::initializer_list<RowColumn<Row>>{
          {"period_us", ColumnType::kTime,
           "Begin of the step to that of the next, or its busy time where that "
           "is longer; of the last until its device work was done.",
           Of<Row>(&Cells::period)},
          {"model_tflop", ColumnType::kReal,
           "TFLOP on matrix units without recomputation.",
           Of<Row>(&Cells::model_tflop)},
          {"hardware_tflop", ColumnType::kReal, "With it.",
           Of<Row>(&Cells::hardware_tflop)},
          {"vector_tflop", ColumnType::kReal, "Of other units: in no share.",
           Of<Row>(&Cells::vector_tflop), Shown::kHidden},
          {"dominant_type", ColumnType::kText,
           "Unit and precision with most of hardware_tflop; '?' when assumed.",
           Of<Row>(&Cells::dominant_type)},
          {"type_share", ColumnType::kReal, "Its share.",
           Of<Row>(&Cells::type_share), Shown::kPercent},
          {"peak_tflops", ColumnType::kReal, "Peak of the device for it.",
           Of<Row>(&Cells::peak_tflops)},
          {"mfu", ColumnType::kReal, "model_tflop of what the peak allows.",
           Of<Row>(&Cells::mfu), Shown::kPercent},
          {"hfu", ColumnType::kReal, "hardware_tflop of it.",
           Of<Row>(&Cells::hfu), Shown::kPercent},
          {"exact_utilisation", ColumnType::kReal,
           "Each type by its own peak, over the period.",
           Of<Row>(&Cells::exact_utilisation), Shown::kHidden},
          {"busy_utilisation", ColumnType::kReal,
           "hardware_tflop of what the peak allows while the device was busy.",
           Of<Row>(&Cells::busy_utilisation), Shown::kHidden},
          {"tokens", ColumnType::kInt,
           "Of --tokens, else indices of the first embedding, where all of the "
           "step agree.",
           Of<Row>(&Cells::tokens), Shown::kHidden},
          {"tokens_per_s", ColumnType::kReal, "Over the period.",
           Of<Row>(&Cells::tokens_per_s)},
          {"modelled_share", ColumnType::kReal,
           "Compute time whose op has a cost model, of all, unlinked included.",
           Of<Row>(&Cells::modelled_share), Shown::kPercent},
          {"recompute", ColumnType::kText,
           "yes: taken off model_tflop; none found; unknown: not looked for "
           "(--recompute, with Python stacks in the trace).",
           Of<Row>(&Cells::recompute)},
          {"why", ColumnType::kText, "Why there is no utilisation.",
           Of<Row>(&Cells::why)}})
    columns.columns.push_back(column);
  return columns;
}

const RowColumns<StepRow>& StepColumns() {
  static const RowColumns<StepRow> columns = WithCells<StepRow>(
      {"mfu_steps",
       "Model and hardware FLOPs utilisation, step by step.",
       {{"step", ColumnType::kInt, "Number of the step.", &StepRow::step},
        {"device", ColumnType::kText, "process:device.", &StepRow::device}}});
  return columns;
}

const RowColumns<RunRow>& RunColumns() {
  static const RowColumns<RunRow> columns = WithCells<RunRow>(
      {"mfu_run",
       "Utilisation over the steps with device work, of all devices.",
       {{"steps", ColumnType::kInt, "Steps, once per device.", &RunRow::steps},
        {"devices", ColumnType::kInt, "Devices.", &RunRow::devices}}});
  return columns;
}

struct ModuleRow {
  std::string_view scope, name;
  double tflop, share;
  int64_t device_time;  // nanoseconds
  std::optional<double> utilisation;
};
const RowColumns<ModuleRow>& ModuleColumns() {
  static const RowColumns<ModuleRow> columns{
      "mfu_modules",
      "Matrix FLOPs by family, by module and by layer: shares of each add up "
      "to the whole.",
      {{"scope", ColumnType::kText, "family, module or layer.",
        &ModuleRow::scope},
       {"name", ColumnType::kText,
        "Family, path of the module, or stack and number of the layer, over "
        "all passes.",
        &ModuleRow::name},
       {"tflop", ColumnType::kReal, "TFLOP on matrix units.",
        &ModuleRow::tflop},
       {"share", ColumnType::kReal, "Of all.", &ModuleRow::share, Shown::kBar},
       {"device_us", ColumnType::kTime,
        "Time of the device work of these calls.", &ModuleRow::device_time},
       {"utilisation", ColumnType::kReal,
        "Of what the peak of each type allows in device_us.",
        &ModuleRow::utilisation, Shown::kPercent}}};
  return columns;
}

struct Sum {
  std::map<std::string, double> by_type;  // matrix FLOPs
  double model = 0;                       // without recomputation
  double vector = 0;
  double estimated = 0;  // part of the matrix FLOPs
  int64_t compute_ns = 0;
  int64_t modelled_ns = 0;
  int64_t period_ns = 0;
  int64_t busy_ns = 0;
  bool assumed_type = false;
  int64_t tokens = trace::kNoInt;
  size_t parts = 0;

  double hardware() const {
    double sum = 0;
    for (const auto& [type, flops] : by_type) sum += flops;
    return sum;
  }
  void Add(const Sum& other) {
    for (const auto& [type, flops] : other.by_type) by_type[type] += flops;
    model += other.model;
    vector += other.vector;
    estimated += other.estimated;
    compute_ns += other.compute_ns;
    modelled_ns += other.modelled_ns;
    period_ns += other.period_ns;
    busy_ns += other.busy_ns;
    assumed_type = assumed_type || other.assumed_type;
    if (other.tokens == trace::kNoInt || (parts > 0 && tokens == trace::kNoInt))
      tokens = trace::kNoInt;
    else
      tokens = (parts > 0 ? tokens : 0) + other.tokens;
    ++parts;
  }
};

class Analysis {
 public:
  Analysis(const Context& context, const Efficiency& efficiency)
      : context_(context),
        efficiency_(efficiency),
        trace_(context.trace),
        view_(*efficiency.costs) {}

  // Errors: data files that cannot be used.
  Result<ResultSet> Run() {
    Collect();
    const auto& calls = view_.calls();
    if (std::any_of(calls.begin(), calls.end(),
                    [&](const CostView::Call& c) { return IsProduct(c); })) {
      LAMINA_ASSIGN(layers_, context_.Get<layers::LayerModel>());
    }
    ResultSet result;
    std::vector<StepRow> steps;
    Sum run;
    for (const auto& [key, sum] : sums_) {
      if (sum.compute_ns == 0) continue;
      steps.push_back({.step = context_.steps.steps()[key.first].number,
                       .device = devices_[key.second].name,
                       .cells = CellsOf(sum)});
      run.Add(sum);
    }
    std::vector<RunRow> runs;
    if (run.parts > 0) {
      runs.push_back({.steps = run.parts,
                      .devices = devices_.size(),
                      .cells = CellsOf(run)});
      Say(run, result);
    }
    result.tables.push_back(StepColumns().Make(steps));
    result.tables.push_back(RunColumns().Make(runs));
    result.tables.push_back(Parts());
    return result;
  }

 private:
  // Step and device.
  using Key = std::pair<size_t, size_t>;

  void Collect() {
    devices_ = WorkByDevice(trace_);
    const auto& steps = context_.steps.steps();
    const auto bucket = [&](SliceId s) { return context_.device.bucket(s); };
    device_of_.assign(trace_.device.size(), 0);
    for (size_t d = 0; d < devices_.size(); ++d) {
      std::map<size_t, std::vector<SliceId>> work;
      for (const SliceId s : devices_[d].slices) {
        device_of_[trace_.slices.detail[s.value]] = d;
        if (steps.empty()) continue;
        const uint32_t step = context_.steps.StepOf(s);
        if (step != tree::Steps::kOutside) work[step].push_back(s);
      }
      int64_t before = std::numeric_limits<int64_t>::min();
      for (const auto& [step, slices] : work) {
        Sum& sum = sums_[{step, d}];
        const Timeline timeline = MakeTimeline(trace_, slices, bucket);
        sum.busy_ns = timeline.busy_ns;
        // The host may run ahead: a step takes no less than its work.
        sum.period_ns = std::max(PeriodOf(step, timeline.window.end_ns, before),
                                 sum.busy_ns);
        before = timeline.window.end_ns;
        for (const SliceId s : slices) {
          if (bucket(s) == Bucket::kCompute)
            sum.compute_ns += trace_.Duration(s);
        }
      }
    }
    // Without any Python frame in the tree nothing shows recomputation.
    recompute_ = FindRecompute(context_.tree);
    for (uint32_t n = 0; n < context_.tree.size() && !looked_; ++n)
      looked_ = context_.tree.kind(NodeId(n)) == trace::Kind::kPython;
    for (const CostView::Call& call : view_.calls()) AddCall(call);
    AddTokens();
  }

  // Of a step that no other follows: until its device work, which ends at
  // `end_ns`, was done, from its begin or, where that is later, from the end of
  // the work of the step before.
  int64_t PeriodOf(size_t i, int64_t end_ns, int64_t before_ns) const {
    const auto& steps = context_.steps.steps();
    if (i + 1 < steps.size() &&
        trace_.slices.track[steps[i].slice.value] ==
            trace_.slices.track[steps[i + 1].slice.value] &&
        steps[i + 1].host.start_ns > steps[i].host.start_ns)
      return steps[i + 1].host.start_ns - steps[i].host.start_ns;
    return std::max(steps[i].host.length_ns(),
                    end_ns - std::max(steps[i].host.start_ns, before_ns));
  }

  void AddCall(const CostView::Call& call) {
    const auto work = view_.Work(call);
    const CostView::Group& group = view_.groups()[call.group];
    if (work.empty() || context_.steps.steps().empty()) return;
    const uint32_t step = context_.steps.StepOf(work[0]);
    if (step == tree::Steps::kOutside) return;
    Sum& sum = sums_[{step, device_of_[trace_.slices.detail[work[0].value]]}];
    if (!group.cost) return;
    const cost::Cost& cost = *group.cost;
    for (const SliceId s : work) {
      if (context_.device.bucket(s) == Bucket::kCompute)
        sum.modelled_ns += trace_.Duration(s);
    }
    if (!group.spec.starts_with("matrix_")) {
      sum.vector += cost.flops;
      return;
    }
    sum.by_type[group.spec] += cost.flops;
    sum.assumed_type = sum.assumed_type || group.assumed_spec;
    const bool again =
        call.node.valid() && recompute_[call.node.value] && looked_;
    found_again_ = found_again_ || again;
    if (!again) sum.model += cost.flops;
    if (cost.fidelity == cost::Fidelity::kEstimated)
      sum.estimated += cost.flops;
  }

  // Indices of the first embedding of each step, if all embeddings that look
  // up words agree.
  void AddTokens() {
    const tree::Tree& tree = context_.tree;
    std::map<uint32_t, int64_t> tokens;
    for (uint32_t n = 0; n < tree.size(); ++n) {
      const NodeId node(n);
      if (!tree.IsOp(node) || !tree.HasDeviceWork(node)) continue;
      const auto looked_up = LookedUpTokens(tree, node);
      if (!looked_up) continue;
      const int64_t value = *looked_up;
      const uint32_t step =
          context_.steps.StepOf(tree.DeviceWork(node).front());
      if (step == tree::Steps::kOutside) continue;
      const auto [it, is_new] = tokens.try_emplace(step, value);
      if (!is_new && it->second != value) it->second = trace::kNoInt;
    }
    for (auto& [key, sum] : sums_) {
      const auto it = tokens.find(static_cast<uint32_t>(key.first));
      if (it != tokens.end()) sum.tokens = it->second;
      if (context_.settings.tokens) sum.tokens = *context_.settings.tokens;
    }
  }

  struct Shares {
    std::string type;
    double type_share = 0;
    std::optional<double> peak;  // FLOP/s
    std::optional<double> mfu, hfu, exact, busy;
    double modelled = 0;
    std::string why;
  };

  std::optional<double> PeakOf(const std::string& type) const {
    const auto& device = efficiency_.device;
    return device ? device->Peak(type) : std::nullopt;
  }

  Shares SharesOf(const Sum& sum) const {
    Shares out;
    const double hardware = sum.hardware();
    out.modelled = sum.compute_ns > 0 ? static_cast<double>(sum.modelled_ns) /
                                            static_cast<double>(sum.compute_ns)
                                      : 0;
    double most = 0;
    for (const auto& [type, flops] : sum.by_type) {
      if (flops <= most) continue;
      most = flops;
      out.type = type;
    }
    if (hardware <= 0) {
      out.why = view_.calls().empty() || sum.modelled_ns > 0
                    ? "no work on matrix units has a cost"
                    : "no op has a cost model with the arguments recorded "
                      "(record_shapes=True)";
    } else if (out.modelled < kLeastModelled) {
      out.why =
          fmt::format("only {:.0f} % of the compute time has a cost model",
                      100 * out.modelled);
    }
    if (hardware <= 0) return out;
    out.type_share = most / hardware;
    out.peak = PeakOf(out.type);
    if (!out.why.empty()) return out;
    if (!out.peak) {
      out.why = efficiency_.device
                    ? "the device has no peak for " + out.type
                    : std::string("no peaks: the device is not known");
      return out;
    }
    if (sum.estimated > kMostEstimated * hardware) {
      out.why = fmt::format("{:.0f} % of the FLOPs are estimated",
                            100 * sum.estimated / hardware);
      return out;
    }
    const double period_s = static_cast<double>(sum.period_ns) / 1e9;
    if (period_s <= 0) {
      out.why = "the step has no length";
      return out;
    }
    const double allowed = *out.peak * period_s;
    out.mfu = 100 * sum.model / allowed;
    out.hfu = 100 * hardware / allowed;
    if (sum.busy_ns > 0) {
      out.busy =
          100 * hardware / (*out.peak * static_cast<double>(sum.busy_ns) / 1e9);
    }
    double exact = 0;
    bool all = true;
    for (const auto& [type, flops] : sum.by_type) {
      const auto peak = PeakOf(type);
      all = all && peak.has_value();
      if (peak) exact += flops / *peak;
    }
    if (all) out.exact = 100 * exact / period_s;
    return out;
  }

  const char* Recompute() const {
    if (!looked_) return "unknown";
    return found_again_ ? "yes" : "none found";
  }

  Cells CellsOf(const Sum& sum) const {
    const Shares shares = SharesOf(sum);
    const double period_s = static_cast<double>(sum.period_ns) / 1e9;
    Cells cells{.period = sum.period_ns,
                .model_tflop = sum.model / 1e12,
                .hardware_tflop = sum.hardware() / 1e12,
                .vector_tflop = sum.vector / 1e12,
                .dominant_type = {},
                .type_share = {},
                .peak_tflops = {},
                .mfu = shares.mfu,
                .hfu = shares.hfu,
                .exact_utilisation = shares.exact,
                .busy_utilisation = shares.busy,
                .tokens = {},
                .tokens_per_s = {},
                .modelled_share = 100 * shares.modelled,
                .recompute = Recompute(),
                .why = {}};
    if (!shares.type.empty()) {
      cells.dominant_type = shares.type + (sum.assumed_type ? "?" : "");
      cells.type_share = 100 * shares.type_share;
    }
    if (shares.peak) cells.peak_tflops = *shares.peak / 1e12;
    if (sum.tokens != trace::kNoInt) {
      cells.tokens = sum.tokens;
      if (period_s > 0)
        cells.tokens_per_s = static_cast<double>(sum.tokens) / period_s;
    }
    if (!shares.why.empty()) cells.why = shares.why;
    return cells;
  }

  // A backward pass or an optimizer.
  bool IsTraining() const {
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const trace::Kind kind = trace_.slices.kind[i];
      const std::string_view name = trace_.Name(SliceId(i));
      if ((kind == trace::Kind::kOp &&
           name.starts_with("autograd::engine::evaluate_function")) ||
          (kind == trace::Kind::kAnnotation &&
           name.starts_with("Optimizer.step")))
        return true;
    }
    return false;
  }

  void Say(const Sum& run, ResultSet& result) const {
    if (!IsTraining() && !context_.settings.tokens) return;
    const Shares shares = SharesOf(run);
    std::string text;
    if (shares.mfu) {
      text = fmt::format(
          "MFU {:.1f} %, HFU {:.1f} % of {:.0f} TFLOP/s {} ({}); {}.",
          *shares.mfu, *shares.hfu, *shares.peak / 1e12, shares.type,
          efficiency_.device->title,
          looked_ ? found_again_ ? "recomputation is taken off"
                                 : "no recomputation found"
                  : "recomputation not looked for (recompute)");
    } else {
      text = "No MFU: " + shares.why + ".";
    }
    if (run.tokens != trace::kNoInt && run.period_ns > 0) {
      text += fmt::format(" {} tokens/s.",
                          GroupDigits(static_cast<int64_t>(
                              static_cast<double>(run.tokens) * 1e9 *
                              static_cast<double>(devices_.size()) /
                              static_cast<double>(run.period_ns))));
    }
    result.notes.push_back(
        MakeNote(Severity::kInfo, "mfu", std::move(text),
                 {{"mfu_run", "steps", std::to_string(run.parts), {}}}));
  }

  // By device row the layer, as its place in the model plus 1; empty without
  // layers.
  std::vector<size_t> LayersOfWork() const {
    std::vector<size_t> out;
    if (layers_ == nullptr || layers_->layers.empty()) return out;
    out.resize(trace_.device.size());
    for (size_t i = 0; i < layers_->layers.size(); ++i) {
      for (const SliceId s : layers_->layers[i].work)
        out[trace_.slices.detail[s.value]] = i + 1;
    }
    return out;
  }
  std::string LayerName(const std::vector<size_t>& layer_of, SliceId s) const {
    const size_t place =
        layer_of.empty() ? 0 : layer_of[trace_.slices.detail[s.value]];
    if (place == 0) return "(outside of layers)";
    const layers::Layer& layer = layers_->layers[place - 1];
    return layers_->stacks[layer.stack].name + " " +
           std::to_string(layer.index);
  }

  // What parts and layers have rows of.
  bool IsProduct(const CostView::Call& call) const {
    const CostView::Group& group = view_.groups()[call.group];
    return !view_.Work(call).empty() && group.cost && group.cost->flops > 0 &&
           group.spec.starts_with("matrix_");
  }

  Table Parts() const {
    static constexpr const char* kScopes[] = {"family", "module", "layer"};
    struct Part {
      double flops = 0;
      double least_s = 0;
      bool peaks = true;
      int64_t ns = 0;
      size_t place = 0;  // of layers the first, plus 1
    };
    std::map<std::pair<int, std::string>, Part> parts;
    double all = 0;
    const std::vector<size_t> layer_of = LayersOfWork();
    for (const CostView::Call& call : view_.calls()) {
      const CostView::Group& group = view_.groups()[call.group];
      const auto work = view_.Work(call);
      if (!IsProduct(call)) continue;
      all += group.cost->flops;
      const auto owner =
          context_.modules.OwnerOf(context_.tree.launch(work[0]));
      const auto peak = PeakOf(group.spec);
      const std::pair<int, std::string> keys[] = {
          {0,
           std::string(
               context_.catalog.family(context_.device.family(work[0])).name)},
          {1, owner.path.valid() ? context_.modules.PathText(owner.path)
                                 : std::string("(outside)")},
          {2, LayerName(layer_of, work[0])}};
      for (const auto& key : keys) {
        if (key.first == 1 && context_.modules.empty()) continue;
        if (key.first == 2 && layer_of.empty()) continue;
        Part& part = parts[key];
        if (key.first == 2 && part.flops == 0)
          part.place = layer_of[trace_.slices.detail[work[0].value]];
        part.flops += group.cost->flops;
        part.peaks = part.peaks && peak.has_value();
        if (peak) part.least_s += group.cost->flops / *peak;
        for (const SliceId s : work) part.ns += trace_.Duration(s);
      }
    }
    std::vector<const std::pair<const std::pair<int, std::string>, Part>*>
        order;
    for (const auto& part : parts) order.push_back(&part);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) {
                       if (a->first.first != b->first.first)
                         return a->first.first < b->first.first;
                       if (a->second.place != b->second.place)
                         return a->second.place < b->second.place;
                       return a->second.flops > b->second.flops;
                     });
    std::vector<ModuleRow> rows;
    for (const auto* entry : order) {
      const Part& part = entry->second;
      rows.push_back(
          {.scope = kScopes[entry->first.first],
           .name = entry->first.second,
           .tflop = part.flops / 1e12,
           .share = 100 * part.flops / all,
           .device_time = part.ns,
           .utilisation =
               part.peaks && part.ns > 0
                   ? std::optional(100 * part.least_s /
                                   (static_cast<double>(part.ns) / 1e9))
                   : std::nullopt});
    }
    return ModuleColumns().Make(rows);
  }

  const Context& context_;
  const Efficiency& efficiency_;
  const Trace& trace_;
  const CostView& view_;
  std::vector<DeviceWork> devices_;
  std::vector<size_t> device_of_;  // by device row
  const layers::LayerModel* layers_ = nullptr;
  std::map<Key, Sum> sums_;
  std::vector<bool> recompute_;
  bool looked_ = false;
  bool found_again_ = false;
};

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const auto* const efficiency, context.Get<Efficiency>());
  return Analysis(context, *efficiency).Run();
}

}  // namespace

AnalysisInfo Info() {
  return {"mfu", "FLOPs utilisation by step, run, family and module.",
          [] {
            return std::vector<Schema>{StepColumns().schema(),
                                       RunColumns().schema(),
                                       ModuleColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::mfu
