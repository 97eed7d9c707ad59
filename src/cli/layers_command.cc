// SPDX-License-Identifier: Apache-2.0
//
// lamina layers: forward passes, layers and stages.
#include <algorithm>

#include "analysis/layers/layers.h"
#include "base/decimal.h"
#include "cli/commands.h"
#include "emit/chrome/copy.h"

namespace lamina::cli {
namespace {

using analysis::layers::Detector;
using trace::SliceId;

struct Options {
  std::string trace;
  std::string detector = "auto";
  std::string layer;
  uint32_t min_layers = 3;
  std::string explain;
  std::string perfetto;
};

// Tracks for passes, layers and the parts of layers above the device's own, as
// records to stand in front of the first event.
std::string Tracks(const analysis::Context& context,
                   const analysis::layers::LayerModel& model) {
  const trace::Trace& trace = context.trace;
  std::string out;
  // A process of its own, with a number that no profiler gives.
  constexpr int64_t kProcess = 2000000000;
  const auto span = [&](std::string_view name, int64_t device, int64_t tid,
                        int64_t start, int64_t end) {
    emit::AppendSpan(out, name, "lamina", kProcess + device, tid, start,
                     end - start, "");
  };
  for (const analysis::layers::Pass& pass : model.passes) {
    if (pass.layers.empty()) continue;
    const int64_t first =
        trace.Start(model.layers[pass.layers.front()].work[0]);
    int64_t last = first;
    for (const uint32_t l : pass.layers) {
      const analysis::layers::Layer& layer = model.layers[l];
      int64_t end = 0;
      for (const SliceId s : layer.work) end = std::max(end, trace.End(s));
      last = std::max(last, end);
      span(model.stacks[layer.stack].name + " " + std::to_string(layer.index),
           pass.device, 2, trace.Start(layer.work[0]), end);
      // One span per run of kernels that do the same part.
      for (size_t i = 0; i < layer.work.size();) {
        const auto part = analysis::layers::PartOf(
            context.catalog.family(context.device.family(layer.work[i])).name);
        size_t j = i;
        int64_t reached = 0;
        while (j < layer.work.size() &&
               analysis::layers::PartOf(
                   context.catalog.family(context.device.family(layer.work[j]))
                       .name) == part) {
          reached = std::max(reached, trace.End(layer.work[j]));
          ++j;
        }
        if (j < layer.work.size())
          reached = std::min(reached, trace.Start(layer.work[j]));
        if (reached > trace.Start(layer.work[i]))
          span(analysis::layers::PartName(part), pass.device, 3,
               trace.Start(layer.work[i]), reached);
        i = j;
      }
    }
    const size_t number = static_cast<size_t>(&pass - model.passes.data());
    span("pass " + std::to_string(number) + " " + pass.stage, pass.device, 1,
         first, last);
    for (const auto& [tid, name] :
         {std::pair{1, "pass"}, std::pair{2, "layer"}, std::pair{3, "part"}})
      emit::AppendName(out, "thread_name", kProcess + pass.device, tid, name);
    emit::AppendName(out, "process_name", kProcess + pass.device, 0,
                     "lamina: device " + std::to_string(pass.device));
  }
  return out;
}

// A copy of the trace with the tracks.
Status WritePerfetto(const std::string& input, const std::string& output,
                     const analysis::Context& context,
                     const analysis::layers::LayerModel& model) {
  const auto& offsets = context.trace.slices.offset;
  if (offsets.empty()) return {};
  emit::Addition addition;
  addition.offset = *std::min_element(offsets.begin(), offsets.end());
  addition.before = Tracks(context, model);
  if (input == "-") {
    return Fail(UsageError("--perfetto needs a file to copy",
                           "give the trace by its name, not as -"));
  }
  LAMINA_TRY(CheckCopyable(context.trace, "--perfetto"));
  LAMINA_ASSIGN(const auto source, OpenByteSource(input));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  LAMINA_TRY(emit::CopyWithAdditions(*source, *sink, {&addition, 1}));
  return sink->Close();
}

// Which rule of every table a kernel name meets.
Table Explain(const rules::Catalog& catalog,
              const analysis::layers::Rules& rules, const std::string& kernel) {
  Table table({"explain",
               "What the rules say of a kernel name.",
               {{"table", ColumnType::kText, "Rule table."},
                {"value", ColumnType::kText, "What the rule means."},
                {"rule", ColumnType::kText, "Its id; empty: no rule matches."},
                {"match", ColumnType::kText, "Its pattern."},
                {"file", ColumnType::kText, "File and line."}}});
  const auto add = [&](std::string_view name,
                       const rules::PatternTable& patterns) {
    const int found = patterns.Find(kernel);
    if (found == rules::PatternTable::kNone) {
      table.Add(name, "", "", "", "");
      return;
    }
    const rules::PatternRule& rule = patterns.rule(found);
    table.Add(name, rule.value, rule.id, rule.match,
              rule.file + ":" + std::to_string(rule.line));
  };
  add("kernel_family", catalog.kernel_table());
  for (const auto& [name, patterns] : rules.all()) add(name, *patterns);
  return table;
}

Result<int> RunLayers(const Options& options, Common& common) {
  analysis::layers::Options layers;
  LAMINA_ASSIGN(layers.list, ParseNumbers("--layer", options.layer));
  layers.min_layers = options.min_layers;
  layers.detector = options.detector == "repeat"   ? Detector::kRepeat
                    : options.detector == "module" ? Detector::kModule
                                                   : Detector::kAuto;
  LAMINA_ASSIGN(auto session,
                engine::Session::Open(options.trace, common.Open()));
  LAMINA_ASSIGN(const auto rules, analysis::layers::LoadRules(session->data()));
  if (!options.explain.empty()) {
    Document document;
    document.command = "layers";
    document.inputs = {options.trace};
    document.result.tables.push_back(
        Explain(session->catalog(), *rules, options.explain));
    LAMINA_TRY(Write(document, common));
    return kFine;
  }
  analysis::Settings settings;
  settings.threads = common.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  Document document;
  document.command = "layers";
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), common.captures.begin(),
                         common.captures.end());
  {
    const ScopedStage stage(&common.times, "layers");
    const analysis::layers::LayerModel model =
        analysis::layers::FindLayers(*context, *rules, layers);
    document.result =
        analysis::layers::LayerTables(*context, *rules, model, layers);
    if (!options.perfetto.empty()) {
      LAMINA_TRY(
          WritePerfetto(options.trace, options.perfetto, *context, model));
    }
  }
  // On a terminal every layer one by one is too much unless asked for.
  if (common.format == "table" && common.top == 0) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() == "layers" || table.rows() == 0;
    });
  }
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace, "Trace file")->required();
  app.add_option("--detector", options->detector,
                 "auto: modules where the trace has them, else repeats in the "
                 "sequence of kernels")
      ->check(CLI::IsMember({"auto", "repeat", "module"}))
      ->capture_default_str();
  app.add_option("--layer", options->layer,
                 "List the kernels of these layers of the first pass: 3, 0-2 "
                 "or 1,5-7");
  app.add_option("--explain", options->explain,
                 "Say which rules decide about this kernel name, and stop");
  app.add_option("--min-layers", options->min_layers,
                 "Fewer copies are no layers")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  app.add_option("--perfetto", options->perfetto,
                 "Write the trace with tracks for passes, layers and parts "
                 "to this file (.json or .json.gz)");
  common.AddCapturesTo(app);
  common.AddTo(app);
  return [options, &common] { return RunLayers(*options, common); };
}

}  // namespace

CommandInfo LayersCommand() {
  return {"layers", "Forward passes, transformer layers and stages",
          "lamina layers trace.json.gz --layer 0", &Add};
}

}  // namespace lamina::cli
