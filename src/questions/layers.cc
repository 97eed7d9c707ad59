// SPDX-License-Identifier: Apache-2.0
//
// lamina layers: forward passes, layers and stages.
#include "analysis/layers/layers.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>

#include "analysis/common/device_advice.h"
#include "analysis/layers/details.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "emit/chrome/copy.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/report.h"
#include "page/page.h"
#include "questions/bodies.h"
#include "questions/trace_output.h"
#include "rules/catalog.h"

namespace lamina::questions {
namespace {

using analysis::layers::Detector;
using trace::SliceId;

struct LayersOptions {
  std::string trace;
  std::string detector = "auto";
  std::string profile;
  std::string layer;
  std::string debug_layers;
  std::string stage = "all";
  std::string layout = "native";
  uint32_t min_layers = 3;
  uint32_t layers_per_pass = 0;  // 0: not checked
  int64_t grid_threshold = 0;    // 0: as the profile says
  bool split_half_layers = false;
  bool show_layers = false;
  bool verbose = false;
  bool variants = false;
  std::string explain;
  std::string perfetto;
};

// Spans for passes, layers and the parts of layers, on tracks above the
// device's own.
std::vector<emit::perfetto::ExtraSpan> Spans(
    const analysis::Context& context,
    const analysis::layers::LayerModel& model) {
  const trace::Trace& trace = context.trace;
  std::vector<emit::perfetto::ExtraSpan> out;
  const auto span = [&](std::string_view name, int64_t device,
                        std::string_view lane, int64_t start, int64_t end) {
    out.push_back({"lamina: device " + std::to_string(device),
                   std::string(lane), std::string(name), start, end - start});
  };
  for (const analysis::layers::Pass& pass : model.passes) {
    if (pass.layers.empty()) continue;
    const int64_t first =
        trace.Start(model.layers[pass.layers.front()].work[0]);
    int64_t last = first;
    for (const uint32_t l : pass.layers) {
      const analysis::layers::Layer& layer = model.layers[l];
      int64_t end = trace.End(layer.work[0]);
      for (const SliceId s : layer.work) end = std::max(end, trace.End(s));
      last = std::max(last, end);
      span(model.stacks[layer.stack].name + " " + std::to_string(layer.index),
           pass.device, "layer", trace.Start(layer.work[0]), end);
      // One span per run of kernels that do the same part.
      for (size_t i = 0; i < layer.work.size();) {
        const auto part = analysis::layers::PartOf(
            context.catalog.family(context.device.family(layer.work[i])).name);
        size_t j = i;
        int64_t reached = trace.End(layer.work[i]);
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
          span(analysis::layers::PartName(part), pass.device, "part",
               trace.Start(layer.work[i]), reached);
        i = j;
      }
    }
    const size_t number = static_cast<size_t>(&pass - model.passes.data());
    span("pass " + std::to_string(number) + " " +
             std::string(analysis::layers::StageName(pass.stage)),
         pass.device, "pass", first, last);
  }
  return out;
}

// The spans as records of Chrome JSON, to stand in front of the first event.
std::string Records(const std::vector<emit::perfetto::ExtraSpan>& spans) {
  // Processes of their own, with numbers that no profiler gives.
  constexpr int64_t kProcess = 2000000000;
  constexpr std::array<std::string_view, 3> kLanes = {"pass", "layer", "part"};
  std::string out;
  std::map<std::string, int64_t> processes;
  for (const auto& span : spans) {
    const auto [it, is_new] = processes.try_emplace(
        span.group, kProcess + static_cast<int64_t>(processes.size()));
    if (is_new) {
      emit::AppendName(out, "process_name", it->second, 0, span.group);
      for (size_t i = 0; i < kLanes.size(); ++i)
        emit::AppendName(out, "thread_name", it->second,
                         static_cast<int64_t>(i) + 1, kLanes[i]);
    }
    const auto lane = std::find(kLanes.begin(), kLanes.end(), span.lane);
    emit::AppendSpan(out, span.name, "lamina", it->second,
                     lane - kLanes.begin() + 1, span.start_ns, span.dur_ns, "");
  }
  return out;
}

// The trace with the tracks. Chrome JSON is copied as it stands; any other
// form is written anew.
Status WritePerfetto(const std::string& input, const std::string& output,
                     const analysis::Context& context,
                     const analysis::layers::LayerModel& model, Asker& asker) {
  const auto spans = Spans(context, model);
  if (emit::perfetto::IsPerfettoName(output)) {
    emit::perfetto::Extras extras;
    extras.spans = spans;
    LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
    emit::perfetto::WriteTrace(context.trace, extras, *sink);
    return sink->Close();
  }
  LAMINA_TRY(CheckCopyable(context.trace, "⟨perfetto⟩"));
  const auto& offsets = context.trace.slices.offset;
  if (offsets.empty()) return {};
  emit::Addition addition;
  addition.offset = *std::min_element(offsets.begin(), offsets.end());
  addition.before = Records(spans);
  if (input == "-") {
    return Fail(UsageError("⟨perfetto⟩ needs a file to copy",
                           "give the trace by its name, not as -"));
  }
  LAMINA_ASSIGN(
      const emit::CopyLoss loss,
      emit::CopyFile(input, output, {&addition.offset, 1},
                     [&](size_t, emit::Addition& made) { made = addition; }));
  WarnOfLoss(input, loss, asker);
  return {};
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

Result<analysis::layers::Options> Settings(const LayersOptions& options,
                                           Asker& asker) {
  // Blocks in x above which the classic analyzer says decode.
  constexpr int64_t kClassicGrid = 10000;
  analysis::layers::Options layers;
  LAMINA_ASSIGN(layers.list, ParseNumbers("⟨layer⟩", options.layer));
  LAMINA_ASSIGN(layers.debug,
                ParseNumbers("⟨debug_layers⟩", options.debug_layers));
  layers.min_layers = options.min_layers;
  layers.detector = options.detector == "repeat"    ? Detector::kRepeat
                    : options.detector == "module"  ? Detector::kModule
                    : options.detector == "classic" ? Detector::kClassic
                                                    : Detector::kAuto;
  const bool classic = options.profile.empty()
                           ? layers.detector == Detector::kClassic
                           : options.profile == "classic";
  if (classic) {
    layers.profile = analysis::layers::Profile::kClassic;
    layers.grid_threshold = kClassicGrid;
  }
  if (options.grid_threshold > 0)
    layers.grid_threshold = options.grid_threshold;
  if (options.split_half_layers && layers.detector != Detector::kClassic) {
    return Fail(
        UsageError("⟨split_half_layers⟩ needs ⟨detector⟩ classic",
                   "other detectors make no halves; add ⟨detector⟩ classic"));
  }
  layers.split_half_layers = options.split_half_layers;
  if (options.stage != "all")
    layers.stage = analysis::layers::StageOfName(options.stage);
  if (asker.top > 0) layers.debug_kernels = asker.top;
  layers.names = options.verbose;
  layers.variants = options.variants;
  return layers;
}

// Whether the number of layers is that of --layers-per-pass.
bool CountIsMet(const LayersOptions& options,
                const analysis::layers::LayerModel& model, ResultSet& result) {
  if (options.layers_per_pass == 0) return true;
  // Where halves are left apart a layer of two halves counts twice.
  const bool halves =
      options.split_half_layers &&
      std::any_of(model.layers.begin(), model.layers.end(),
                  [](const auto& layer) { return layer.type == "ATTN"; });
  // What stands before and behind layers is a layer of the classic detector,
  // but not of the model.
  const auto is_whole = [](const auto& layer) {
    return layer.type != "UNKNOWN";
  };
  size_t expected = 0;
  for (const analysis::layers::Pass& pass : model.passes) {
    const bool any = std::ranges::any_of(
        pass.layers, [&](uint32_t l) { return is_whole(model.layers[l]); });
    if (any) expected += size_t{options.layers_per_pass} * (halves ? 2 : 1);
  }
  const auto found =
      static_cast<size_t>(std::ranges::count_if(model.layers, is_whole));
  const bool fine = found == expected && expected > 0;
  result.notes.push_back(
      MakeNote(fine ? Severity::kInfo : Severity::kWarning, "layers_per_pass",
               fmt::format("Expected {} ({} in each of {}{}), found {}.",
                           Counted(expected, "layer"), options.layers_per_pass,
                           Counted(model.passes.size(), "pass", "passes"),
                           halves ? ", in two halves each" : "",
                           GroupDigits(static_cast<int64_t>(found))),
               {{"passes", "", "", {}}}));
  return fine;
}

// What the rules say of one name needs no trace.
Result<Answer> RunExplain(const LayersOptions& options, Asker& asker) {
  const rules::DataSet data(asker.rules_dir);
  LAMINA_ASSIGN(const auto catalog, rules::Catalog::Load(data));
  LAMINA_ASSIGN(const auto rules, analysis::layers::LoadRules(data));
  Document document;
  document.command = "layers";
  if (!options.trace.empty()) document.inputs = {options.trace};
  document.result.tables.push_back(Explain(*catalog, *rules, options.explain));
  return Answer(std::move(document));
}

// The page holds the events beside the tables, so that it has the same views as
// that of a report.
Status WriteLayersPage(engine::Session& session, const ReportOptions& report,
                       const analysis::layers::Options& layers,
                       Document& document, const PageRequest& request,
                       const Asker& asker) {
  LAMINA_ASSIGN(Document kernels, engine::MakeReport(session, report, nullptr));
  kernels.command = document.command;
  kernels.inputs = document.inputs;
  kernels.result.notes.clear();
  for (Note& note : document.result.notes) {
    if (note.id == "layers_per_pass")
      kernels.result.notes.push_back(std::move(note));
  }
  document = std::move(kernels);
  page::PageOptions page;
  page.output = request.output;
  page.threads = report.threads;
  page.max_bytes = asker.page_bytes();
  page.settings = engine::SettingsOf(report);
  page.layers = layers;
  page.redact = request.redact;
  if (!request.words.ReadsStdin())
    page.commands = {{"layers", request.words.Words(), {}, {}}};
  return page::WritePage(session, document, page);
}

Result<Answer> RunLayers(const LayersOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const auto layers, Settings(options, asker));
  if (!options.explain.empty()) return RunExplain(options, asker);
  if (options.trace.empty())
    return Fail(UsageError("trace is required", "only ⟨explain⟩ needs none"));
  LAMINA_TRY(KeepInputs("⟨perfetto⟩", options.perfetto, {options.trace}));
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace));
  LAMINA_ASSIGN(const auto rules, analysis::layers::LoadRules(session->data()));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  if (session->trace().device_slices().empty()) {
    return Fail(InputError(options.trace,
                           "holds no device events, in which layers are found",
                           analysis::DeviceAdvice(session->trace())));
  }
  Document document;
  document.command = "layers";
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), asker.captures.begin(),
                         asker.captures.end());
  bool failed = false;
  {
    const ScopedStage stage(&asker.times, "layers");
    const analysis::layers::LayerModel model =
        analysis::layers::FindLayers(*context, *rules, layers);
    if (options.layout == "classic") {
      document.result.tables =
          analysis::layers::ClassicTables({*context, *rules, model, layers});
    } else {
      LAMINA_ASSIGN(document.result, analysis::layers::LayerTables(
                                         *context, *rules, model, layers));
    }
    failed = !CountIsMet(options, model, document.result);
    if (!options.perfetto.empty()) {
      LAMINA_TRY(WritePerfetto(options.trace, options.perfetto, *context, model,
                               asker));
    }
  }
  // On a terminal every layer one by one is too much unless asked for.
  if (asker.for_screen() && options.layout != "classic" && asker.only.empty()) {
    std::erase_if(document.result.tables, [&](const Table& table) {
      return table.rows() == 0 || (table.name() == "layers" && asker.top == 0 &&
                                   !options.show_layers);
    });
  }
  if (options.show_layers && asker.top == 0) asker.top = 100000;
  Answer answer(std::move(document));
  answer.failed = failed;
  // With --stage the table has not every layer that events can be in.
  if (asker.for_page() && options.layout != "classic" &&
      options.stage == "all" && asker.Complete()) {
    ReportOptions report;
    report.threads = asker.ThreadCount();
    report.captures = asker.captures;
    report.only = {"kernels"};
    answer.page = [session, report, layers, &asker](
                      Document& shown, const PageRequest& request) {
      return WriteLayersPage(*session, report, layers, shown, request, asker);
    };
  }
  return answer;
}

}  // namespace

Body DescribeLayers(Description& args, Asker& asker) {
  auto options = std::make_shared<LayersOptions>();
  args.Add("trace", options->trace, "Trace file");
  args.Add("--detector", options->detector,
           "auto: modules where the trace has them, else repeats in the "
           "sequence of kernels; classic: norms, by name")
      .OneOf({"auto", "repeat", "module", "classic"})
      .ShowDefault();
  args.Add("--profile", options->profile,
           "Name tables: default, or classic as the known analyzer has "
           "them (the default of ⟨detector⟩ classic)")
      .OneOf({"default", "classic"});
  args.Add("--stage", options->stage, "Rows of this stage only")
      .OneOf({"all", "prefill", "decode", "mixed", "none", "unknown"})
      .ShowDefault();
  args.Add("--layer", options->layer,
           "List the kernels of these layers of the first pass: 3, 0-2 "
           "or 1,5-7");
  args.Flag("--variants", options->variants,
            "Kinds of layers kernel by kernel, equal kernels in the same "
            "place");
  args.Add("--debug-layers", options->debug_layers,
           "Votes and longest kernels of these layers of the first pass, "
           "with the rules that decided");
  args.Flag("--show-layer-terminal", options->show_layers,
            "Show every layer on the terminal");
  args.Flag("--split-half-layers", options->split_half_layers,
            "Leave attention halves and feed-forward halves apart "
            "(⟨detector⟩ classic)");
  args.Add("--grid-threshold", options->grid_threshold,
           "Attention kernels with more blocks in x are decode "
           "(⟨detector⟩ classic)")
      .Whole(1, int64_t{1} << 40);
  args.Add("--layers-per-pass", options->layers_per_pass,
           "Check the number of layers; exit status 1 when it differs")
      .Whole(1, 100000);
  args.Flag("-v,--verbose", options->verbose,
            "Show the rules behind the most expensive names");
  args.Add("--layout", options->layout,
           "classic: the files of the known analyzer")
      .OneOf({"native", "classic"})
      .ShowDefault();
  args.Add("--explain", options->explain,
           "Say which rules decide about this kernel name, and stop; needs no "
           "trace");
  args.Add("--min-layers", options->min_layers, "Least copies that are layers")
      .Whole(2, 100000)
      .ShowDefault();
  args.Add("--perfetto", options->perfetto,
           "Write the trace with tracks for passes, layers and parts "
           "to this file (.pftrace, .json, each also with .gz)");
  asker.AddPageSizeTo(args);
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args);
  return [options, &asker] { return RunLayers(*options, asker); };
}

}  // namespace lamina::questions
