// SPDX-License-Identifier: Apache-2.0
//
// lamina layers: forward passes, layers and stages.
#include <algorithm>

#include "analysis/layers/layers.h"
#include "base/decimal.h"
#include "cli/commands.h"

namespace lamina::cli {
namespace {

using analysis::layers::Detector;

struct Options {
  std::string trace;
  std::string detector = "auto";
  std::string layer;
  uint32_t min_layers = 3;
  std::string explain;
};

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

// "3", "0-2" or "1,5-7".
Result<std::vector<uint32_t>> ParseLayers(const std::string& text) {
  std::vector<uint32_t> out;
  const auto wrong = [&] {
    return Fail(UsageError("--layer: expected numbers like 3, 0-2 or 1,5-7",
                           "layers are counted from 0"));
  };
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = std::min(text.find(',', pos), text.size());
    const std::string part = text.substr(pos, end - pos);
    const size_t dash = part.find('-');
    const auto first = ParseInt(part.substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 100000)
      return wrong();
    for (int64_t i = *first; i <= *last; ++i)
      out.push_back(static_cast<uint32_t>(i));
    pos = end + 1;
  }
  if (!text.empty() && out.empty()) return wrong();
  return out;
}

Result<int> RunLayers(const Options& options, Common& common) {
  analysis::layers::Options layers;
  LAMINA_ASSIGN(layers.list, ParseLayers(options.layer));
  layers.min_layers = options.min_layers;
  layers.detector = options.detector == "repeat"   ? Detector::kRepeat
                    : options.detector == "module" ? Detector::kModule
                                                   : Detector::kAuto;
  LAMINA_ASSIGN(auto session,
                engine::Session::Open(options.trace, common.Open()));
  LAMINA_ASSIGN(const auto rules,
                analysis::layers::LoadRules(session->data()));
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
  LAMINA_ASSIGN(
      const analysis::Context* const context,
      session->ContextFor(tree::LinkMode::kAuto, false, settings));
  Document document;
  document.command = "layers";
  document.inputs = {options.trace};
  {
    const ScopedStage stage(&common.times, "layers");
    document.result = analysis::layers::LayerTables(
        *context, *rules,
        analysis::layers::FindLayers(*context, *rules, layers), layers);
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
  common.AddTo(app);
  return [options, &common] { return RunLayers(*options, common); };
}

}  // namespace

CommandInfo LayersCommand() {
  return {"layers", "Forward passes, transformer layers and stages",
          "lamina layers trace.json.gz --layer 0", &Add};
}

}  // namespace lamina::cli
