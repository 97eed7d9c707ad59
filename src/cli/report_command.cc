// SPDX-License-Identifier: Apache-2.0
//
// lamina report: where did the GPU time go?
#include <algorithm>
#include <sstream>

#include "base/decimal.h"
#include "cli/commands.h"
#include "rules/document.h"

namespace lamina::cli {
namespace {

// In the order in which the tables are written.
constexpr std::string_view kReportAnalyses[] = {
    "overview", "timeline", "ops",   "kernels",
    "modules",  "comms",    "steps", "health"};

struct Options {
  std::string trace;
  std::string layout = "native";
  std::vector<std::string> only;
  bool recompute = false;
  double short_kernel_us = 10;
  double micro_idle_us = 0;
  bool python_stacks = false;
  std::string link = "auto";
};

// A note stays when one of the kept tables proves it.
void KeepNotes(ResultSet& result) {
  std::erase_if(result.notes, [&](const Note& note) {
    return std::none_of(
        note.evidence.begin(), note.evidence.end(),
        [&](const Evidence& e) { return result.Find(e.table) != nullptr; });
  });
}

// Keeps the tables that --only names; unknown names are an error.
Status KeepOnly(ResultSet& result, const std::vector<std::string>& only) {
  if (only.empty()) return {};
  std::vector<std::string_view> names;
  for (const Table& table : result.tables) names.push_back(table.name());
  std::vector<Table> kept;
  for (const std::string& wanted : only) {
    const auto it = std::find_if(
        result.tables.begin(), result.tables.end(),
        [&](const Table& table) { return table.name() == wanted; });
    if (it == result.tables.end()) {
      const std::string_view near = rules::Nearest(wanted, names);
      std::string list;
      for (const std::string_view name : names)
        list += (list.empty() ? "" : ", ") + std::string(name);
      return Fail(UsageError(
          "--only: there is no table '" + wanted + "'",
          near.empty() ? "tables: " + list
                       : "did you mean '" + std::string(near) + "'?"));
    }
    kept.push_back(std::move(*it));
    // A name given twice finds an empty shell: keep the first only.
    result.tables.erase(it);
  }
  result.tables = std::move(kept);
  KeepNotes(result);
  return {};
}

Result<int> RunReport(const Options& options, Common& common) {
  LAMINA_ASSIGN(auto session,
                engine::Session::Open(options.trace, common.Open()));
  analysis::Settings settings;
  settings.threads = common.ThreadCount();
  settings.short_kernel_ns =
      static_cast<int64_t>(options.short_kernel_us * 1000);
  if (options.micro_idle_us > 0)
    settings.micro_idle_ns =
        static_cast<int64_t>(options.micro_idle_us * 1000);
  settings.recompute = options.recompute;

  Document document;
  document.command = "report";
  document.inputs = {options.trace};
  if (options.layout == "native") {
    const auto link = options.link == "flow" ? tree::LinkMode::kFlow
                                             : tree::LinkMode::kAuto;
    const bool python = options.python_stacks || options.recompute;
    analysis::Context& context =
        session->ContextFor(link, python, settings);
    std::vector<std::string_view> names(std::begin(kReportAnalyses),
                                        std::end(kReportAnalyses));
    if (options.recompute) names.push_back("recompute");
    LAMINA_ASSIGN(document.result, session->RunAnalyses(names, context));
    document.summary = options.only.empty();
  } else {
    compat::tracelens::Options layout;
    layout.inference = options.layout == "tracelens-inference";
    layout.recompute = options.recompute;
    analysis::Context& context = session->ContextFor(
        tree::LinkMode::kFlow, layout.inference || layout.recompute,
        settings);
    const ScopedStage stage(&common.times, "sheets");
    LAMINA_ASSIGN(document.result,
                  compat::tracelens::MakeSheets(context, layout));
  }
  LAMINA_TRY(KeepOnly(document.result, options.only));
  if (common.top > 0 && common.format != "table") {
    for (Table& table : document.result.tables) table.Truncate(common.top);
  }
  const ScopedStage stage(&common.times, "write");
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace,
                 "Trace file (.json, .json.gz ...; - reads standard input)")
      ->required();
  app.add_option("--only", options->only, "Only these tables")
      ->delimiter(',');
  app.add_option("--layout", options->layout, "Tables of another tool")
      ->check(CLI::IsMember({"native", "tracelens", "tracelens-inference"}))
      ->capture_default_str();
  app.add_flag("--recompute", options->recompute,
               "Split by activation recomputation (needs Python stacks in "
               "the trace)");
  app.add_flag("--python-stacks", options->python_stacks,
               "Python frames are part of the call tree");
  app.add_option("--link", options->link,
                 "How launches are joined to device work: auto (by "
                 "correlation) or flow (as TraceLens)")
      ->check(CLI::IsMember({"auto", "flow"}))
      ->capture_default_str();
  app.add_option("--short-kernel-us", options->short_kernel_us,
                 "Kernels below this are short")
      ->check(CLI::Range(0.001, 1e9))
      ->capture_default_str();
  app.add_option("--micro-idle-us", options->micro_idle_us,
                 "Split idle time into gaps below and above this")
      ->check(CLI::Range(0.001, 1e9));
  common.AddTo(app);
  return [options, &common] { return RunReport(*options, common); };
}

}  // namespace

CommandInfo ReportCommand() {
  return {"report", "Where did the GPU time go?",
          "lamina report trace.json.gz --format csv -o tables", &Add};
}

}  // namespace lamina::cli
