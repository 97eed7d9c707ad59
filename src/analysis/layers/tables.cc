// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina layers`, from the stacks, passes and layers found.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "analysis/layers/details.h"
#include "analysis/layers/kernel_tables.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/lanes.h"
#include "analysis/layers/layer_sums.h"
#include "analysis/layers/passes.h"
#include "analysis/layers/schemas.h"
#include "analysis/layers/variants.h"
#include "analysis/path/chain.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "trace/categories.h"

namespace lamina::analysis::layers {
namespace {

// Slow layers that a note names.
constexpr size_t kNamedOutliers = 5;

class Tables {
 public:
  Tables(const Context& context, const Rules& rules, const LayerModel& model,
         const Options& options)
      : context_(context),
        trace_(context.trace),
        rules_(rules),
        model_(model),
        options_(options),
        labels_(context, rules, Profile::kDefault, std::nullopt) {
    const auto slices = trace_.device_slices();
    for (const SliceId s : slices) {
      total_ns_ += trace_.Duration(s);
      if (s == slices[0] || trace_.Start(s) < zero_ns_)
        zero_ns_ = trace_.Start(s);
    }
    for (const Layer& layer : model_.layers)
      sums_.push_back(SumOfLayer(context_, labels_, layer));
    std::map<int64_t, int64_t> next;  // by device
    places_.resize(trace_.slices.size());
    for (const SliceId s : slices) {
      if (trace_.KindOf(s) == trace::Kind::kKernel)
        places_[s.value] = static_cast<uint32_t>(next[DeviceOf(trace_, s)]++);
    }
    for (uint32_t i = 0; i < model_.stacks.size(); ++i)
      stacks_.push_back(SumOfStack(model_, sums_, i));
  }

  Result<ResultSet> Run() {
    ResultSet result;
    if (trace_.device_slices().empty()) return result;
    result.tables.push_back(Passes());
    result.tables.push_back(Stacks());
    result.tables.push_back(Types());
    const Details details{context_, rules_, model_, options_};
    if (!options_.list.empty()) result.tables.push_back(LayerKernels(details));
    if (!options_.debug.empty()) {
      result.tables.push_back(LayerVotes(details));
      result.tables.push_back(LayerDebug(details));
    }
    if (options_.names) result.tables.push_back(NameRuleTable(details));
    if (options_.variants)
      result.tables.push_back(FindVariantKernels(details).table);
    LAMINA_ASSIGN(Table layers, Layers());
    result.tables.push_back(std::move(layers));
    result.tables.push_back(StageTable(details, labels_, total_ns_));
    result.tables.push_back(OrphanTable(details, total_ns_));
    if (!model_.checks.empty())
      result.tables.push_back(CheckColumns().Make(model_.checks));
    Notes();
    result.notes = std::move(notes_);
    return result;
  }

 private:
  Table Passes() const {
    std::vector<PassRow> rows;
    int64_t number = 0;
    for (const Pass& pass : model_.passes) {
      if (!options_.Wants(pass.stage)) {
        ++number;
        continue;
      }
      std::vector<SliceId> work = pass.outside;
      for (const uint32_t l : pass.layers) {
        const auto& own = model_.layers[l].work;
        work.insert(work.end(), own.begin(), own.end());
      }
      std::sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        return std::pair(trace_.Start(a), a.value) <
               std::pair(trace_.Start(b), b.value);
      });
      const trace::DeviceArgs* args = trace_.Device(FirstOf(model_, pass));
      rows.push_back({.pass = number++,
                      .device = pass.device,
                      .stream = args != nullptr && args->stream != trace::kNoInt
                                    ? std::optional(args->stream)
                                    : std::nullopt,
                      .start = trace_.Start(work[0]) - zero_ns_,
                      .wall = WallOf(trace_, work),
                      .kernel_time = SumOf(trace_, work),
                      .busy = UnionOf(trace_, work),
                      .kernels = work.size(),
                      .stage = StageName(pass.stage),
                      .stage_evidence = pass.evidence,
                      .batch = pass.batch,
                      .tokens = pass.tokens,
                      .layers = pass.layers.size(),
                      .evidence = pass.begins,
                      .cut = pass.cut,
                      .graph_launches = GraphLaunches(work),
                      .annotation = pass.annotation});
    }
    return PassColumns().Make(rows);
  }

  // Graph launches that device work came from.
  size_t GraphLaunches(const std::vector<SliceId>& work) const {
    std::set<uint32_t> launches;
    for (const SliceId s : work) {
      const NodeId launch = context_.tree.launch(s);
      if (launch.valid() && trace::IsGraphLaunch(context_.tree.name(launch)))
        launches.insert(launch.value);
    }
    return launches.size();
  }

  Result<Table> Layers() const {
    std::vector<LayerRow> rows;
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      if (!options_.Wants(model_.StageOf(layer))) continue;
      const LayerSum& sum = sums_[i];
      const StackInfo& stack = model_.stacks[layer.stack];
      rows.push_back({.pass = layer.pass,
                      .stack = stack.name,
                      .layer = layer.index,
                      .variant = VariantLetter(layer.variant),
                      .type = sum.type,
                      .type_by = sum.type_by,
                      .stage = StageName(model_.StageOf(layer)),
                      .start = trace_.Start(layer.work[0]) - zero_ns_,
                      .wall = sum.wall_ns,
                      .kernel_time = sum.kernel_ns,
                      .parts = sum.parts,
                      .gap = sum.wall_ns - sum.busy_ns,
                      .kernels = layer.work.size(),
                      .first_kernel = FirstKernel(layer),
                      .first_uid = trace_.Uid(layer.work[0]),
                      .module = layer.module,
                      .boundary = stack.boundary,
                      .exact = layer.exact,
                      .confidence = stacks_[layer.stack].confidence,
                      .partial = layer.partial});
    }
    if (options_.verdicts) LAMINA_TRY(AddVerdicts(rows));
    return LayerColumns().Make(rows);
  }

  // What bounds each layer: by the critical path from its begin to that of the
  // next layer of its pass, of the last one to its own end.
  Status AddVerdicts(std::vector<LayerRow>& rows) const {
    if (rows.empty()) return {};
    LAMINA_ASSIGN(const path::Graph* const graph, context_.Get<path::Graph>());
    const auto chain =
        path::RecordedPath(*graph, graph->sink(), graph->start_ns());
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t begin = rows[r].start;
      int64_t end = begin + rows[r].wall;
      if (r + 1 < rows.size() && rows[r + 1].pass == rows[r].pass &&
          rows[r + 1].start > begin)
        end = rows[r + 1].start;
      path::Verdict found = path::VerdictOf(
          path::SumWithin(chain, zero_ns_ + begin, zero_ns_ + end));
      if (found.text.empty()) continue;
      rows[r].verdict = std::move(found.text);
      rows[r].strength = found.percent;
    }
    return {};
  }

  Table Types() {
    std::vector<TypeRow> out;
    const std::vector<std::string> above = ModulesAbove(model_);
    using Key = std::tuple<uint32_t, uint32_t, std::string, Stage>;
    std::map<Key, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      if (!options_.Wants(model_.StageOf(layer))) continue;
      groups[{layer.stack, layer.variant, sums_[i].type, model_.StageOf(layer)}]
          .push_back(i);
    }
    std::vector<std::pair<int64_t, decltype(groups)::const_iterator>> rows;
    for (auto group = groups.cbegin(); group != groups.cend(); ++group) {
      int64_t sum = 0;
      for (const uint32_t l : group->second) sum += sums_[l].kernel_ns;
      rows.emplace_back(sum, group);
    }
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [time, group] : rows) {
      const auto& [key, members] = *group;
      std::vector<int64_t> kernel;
      std::vector<int64_t> wall;
      for (const uint32_t l : members) {
        kernel.push_back(sums_[l].kernel_ns);
        wall.push_back(sums_[l].wall_ns);
      }
      const Stats k = Summarize(kernel);
      const Stats w = Summarize(wall);
      int64_t outliers = 0;
      for (const uint32_t l : members) {
        if (static_cast<double>(sums_[l].kernel_ns) > 1.5 * k.median) {
          ++outliers;
          outliers_.push_back(l);
        }
      }
      const std::string letter = VariantLetter(std::get<1>(key));
      out.push_back({.stack = model_.stacks[std::get<0>(key)].name,
                     .variant = letter,
                     .type = std::get<2>(key),
                     .stage = StageName(std::get<3>(key)),
                     .layers = members.size(),
                     .kernel_time = k.sum,
                     .percent = PercentOf(k.sum, total_ns_),
                     .mean = RoundNs(k.mean),
                     .p50 = RoundNs(k.median),
                     .p99 = k.p99,
                     .min = k.min,
                     .max = k.max,
                     .mean_wall = RoundNs(w.mean),
                     .kernels = model_.layers[members[0]].work.size(),
                     .outliers = outliers,
                     .module = above[std::get<0>(key)]});
    }
    return TypeColumns().Make(out);
  }

  Table Stacks() const {
    std::vector<StackRow> rows;
    for (uint32_t i = 0; i < model_.stacks.size(); ++i) {
      const StackInfo& stack = model_.stacks[i];
      const StackSum& sum = stacks_[i];
      if (sum.layers == 0) continue;
      rows.push_back({.stack = stack.name,
                      .period = stack.period,
                      .layers_per_unit = stack.per_unit,
                      .pattern = sum.pattern,
                      .layers_per_pass = sum.per_pass,
                      .passes = sum.passes,
                      .layers = sum.layers,
                      .percent = PercentOf(sum.ns, total_ns_),
                      .exact_percent = 100.0 * sum.exactness,
                      .boundary = stack.boundary,
                      .confidence = sum.confidence});
    }
    return StackColumns().Make(rows);
  }

  // Place of the first kernel of a layer among those of its device.
  uint32_t FirstKernel(const Layer& layer) const {
    for (const SliceId s : layer.work) {
      if (trace_.KindOf(s) == trace::Kind::kKernel) return places_[s.value];
    }
    return 0;
  }

  void Notes() {
    if (model_.layers.empty()) {
      notes_.push_back(MakeNote(
          Severity::kVerdict, "no_layers",
          options_.detector == Detector::kClassic
              ? "No layers found: no name of a kernel says that a layer begins "
                "there; `--detector auto` needs no names."
              : "No layers found: no unit that looks like a layer repeats in "
                "the sequence of kernels, and the trace has no modules that "
                "do." +
                    std::string(model_.passes.empty()
                                    ? ""
                                    : " Stages are those that the ranges of "
                                      "steps say.")));
      return;
    }
    int64_t inside = 0;
    for (const LayerSum& sum : sums_) inside += sum.kernel_ns;
    notes_.push_back(MakeNote(
        Severity::kVerdict, "layers",
        fmt::format("{} in {}; {:.1f} % of the device time is in layers.",
                    Counted(model_.layers.size(), "layer"),
                    Counted(model_.passes.size(), "pass", "passes"),
                    PercentOf(inside, total_ns_)),
        {{"layer_stacks", "", "", {}}}));
    NoteUnknownStage();
    for (const LayerModel::Check& check : model_.checks) {
      if (check.by_module == check.by_repeat) continue;
      notes_.push_back(MakeNote(
          Severity::kWarning, "detectors_disagree",
          fmt::format("Modules give {} on {}, repeats in the kernel sequence "
                      "{}; the modules were taken.",
                      Counted(check.by_module, "layer"), check.name,
                      check.by_repeat),
          {{"layer_check", "where", check.name, {}}}));
    }
    if (!outliers_.empty()) NoteSlowLayers();
  }

  // One number for how much the rules of stages leave open.
  void NoteUnknownStage() {
    int64_t unknown = 0;
    for (const Pass& pass : model_.passes) {
      if (pass.stage == Stage::kUnknown) unknown += SumOf(trace_, pass.outside);
    }
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      if (model_.StageOf(model_.layers[i]) == Stage::kUnknown)
        unknown += sums_[i].kernel_ns;
    }
    unknown += SumOf(trace_, model_.no_pass);
    if (unknown == 0 && options_.detector != Detector::kClassic) return;
    notes_.push_back(
        MakeNote(Severity::kInfo, "unknown_stage",
                 fmt::format("Unknown: {:.1f} % of the device time is of no "
                             "known stage.",
                             PercentOf(unknown, total_ns_)),
                 {{"stage_kernel_type", "stage", "unknown", {}}}));
  }

  void NoteSlowLayers() {
    std::vector<std::string> longest;
    std::vector<Evidence> evidence;
    for (const uint32_t l : outliers_) {
      if (longest.size() == kNamedOutliers) break;
      const Layer& layer = model_.layers[l];
      longest.push_back(fmt::format("pass {} layer {} ({})", layer.pass,
                                    layer.index,
                                    HumanTime(sums_[l].kernel_ns)));
      evidence.push_back({"layers", "", "", {trace_.Uid(layer.work[0])}});
    }
    notes_.push_back(MakeNote(
        Severity::kInfo, "slow_layers",
        fmt::format("{} more than 1.5 times the median of {} kind: {}.",
                    outliers_.size() == 1
                        ? "1 layer takes"
                        : Counted(outliers_.size(), "layer") + " take",
                    outliers_.size() == 1 ? "its" : "their",
                    fmt::join(longest, ", ")),
        std::move(evidence)));
  }

  const Context& context_;
  const Trace& trace_;
  const Rules& rules_;
  const LayerModel& model_;
  const Options& options_;
  Labels labels_;
  std::vector<LayerSum> sums_;    // by layer
  std::vector<StackSum> stacks_;  // by stack
  std::vector<uint32_t> places_;  // of kernels on their device, by slice
  std::vector<uint32_t> outliers_;
  std::vector<Note> notes_;
  int64_t total_ns_ = 0;
  int64_t zero_ns_ = 0;
};

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const LayerRules* const known, context.Get<LayerRules>());
  LAMINA_ASSIGN(const LayerModel* const model, context.Get<LayerModel>());
  return LayerTables(context, *known->rules, *model, {});
}

}  // namespace

Result<ResultSet> LayerTables(const Context& context, const Rules& rules,
                              const LayerModel& model, const Options& options) {
  return Tables(context, rules, model, options).Run();
}

AnalysisInfo Info() {
  return {"layers", "Forward passes and the layers in them.",
          [] {
            std::vector<Schema> schemas = {
                PassColumns().schema(),  StackColumns().schema(),
                TypeColumns().schema(),  LayerColumns().schema(),
                StageColumns().schema(), OrphanColumns().schema(),
                CheckColumns().schema(), VariantColumns().schema()};
            for (Schema& schema : DetailSchemas())
              schemas.push_back(std::move(schema));
            return schemas;
          },
          &Run};
}

}  // namespace lamina::analysis::layers
