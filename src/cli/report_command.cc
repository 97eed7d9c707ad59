// SPDX-License-Identifier: Apache-2.0
//
// lamina report: where did the GPU time go?
//
// Longer than most: it has the options of every layout, and what they share.
#include <fmt/core.h>
#include <malloc.h>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/compiled_input.h"
#include "cli/host.h"
#include "cli/memory_page.h"
#include "cli/page_size.h"
#include "compat/hta/frames.h"
#include "engine/memory.h"
#include "engine/report.h"
#include "engine/roofline.h"
#include "findings/findings.h"
#include "findings/suppressions.h"
#include "page/page.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string trace;
  ReportOptions report;
  double short_kernel_us = 10;
  double micro_idle_us = 0;
  std::string roofline;
  PageSize page_size;
  size_t html_max_events = 2'000'000;
  int64_t rank = -1;  // --layout hta: the first
  std::vector<std::string> compiled;
};

// The commands that give rows of the page. A slice is chosen over the tree that
// a report has by default, without what captures add to it.
std::vector<render::PageCommand> PageCommands(const page::PageOptions& page,
                                              const Common& common) {
  static constexpr std::string_view kOfLayers[] = {"--rules", "--capture"};
  static constexpr std::string_view kOfEvents[] = {"--rules"};
  std::vector<render::PageCommand> commands = {
      {"report", common.given.Words(), {}, {}},
      {"layers", common.given.WordsFor("layers", kOfLayers), {}, {}},
      {"event", common.given.WordsFor("event", kOfEvents), {}, {}}};
  commands.push_back({"layers --variants", commands[1].words, {}, {}});
  commands.back().words.emplace_back("--variants");
  if (common.captures.empty() && page.link == tree::LinkMode::kAuto &&
      !page.python_stacks) {
    commands.push_back(
        {"slice", common.given.WordsFor("slice", kOfEvents), {}, {}});
  }
  return commands;
}

// The page holds the events beside the tables.
Status WriteReportPage(engine::Session& session, Document document,
                       const ReportOptions& report, const Options& options,
                       const Common& common) {
  page::PageOptions page;
  page.output = common.output;
  page.threads = report.threads;
  page.max_bytes = options.page_size.max_bytes();
  page.max_events = options.html_max_events;
  page.link = engine::LinkOf(report);
  page.python_stacks = report.python_stacks || report.recompute;
  page.settings = engine::SettingsOf(report);
  if (!common.given.ReadsStdin()) page.commands = PageCommands(page, common);
  const auto secrets = common.SecretsOf(document.inputs);
  page.redact = secrets.get();
  if (common.host != nullptr) page.live = common.host->live;
  LAMINA_TRY(page::WritePage(session, document, page));
  if (common.host != nullptr) common.host->take(std::move(document));
  return {};
}

// The frames of HTA come from the rows of the file, not from the model of it.
Result<int> RunFrames(const Options& options, Common& common) {
  Document document;
  document.command = "report";
  document.inputs = {options.trace};
  {
    const ScopedStage stage(&common.times, "frames");
    LAMINA_ASSIGN(const auto loaded,
                  compat::hta::Loaded::Open(
                      options.trace, options.report.layout == "hta:exact"));
    LAMINA_ASSIGN(document.result,
                  compat::hta::MakeFrames(loaded, options.rank));
  }
  LAMINA_TRY(engine::KeepOnly(document.result, common.only));
  common.only.clear();  // done
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Status AddFindings(const std::shared_ptr<engine::Session>& session, int threads,
                   const std::string& trace, Document& document) {
  constexpr size_t kMost = 5;
  LAMINA_ASSIGN(const auto rules, findings::RuleSet::Load(session->data()));
  findings::Options options;
  LAMINA_ASSIGN(options.suppressions, findings::LoadSuppressions("", trace));
  LAMINA_ASSIGN(
      const auto diagnosis,
      findings::Diagnose(std::make_shared<sql::Source>(session, threads), rules,
                         options));
  findings::AddToReport(diagnosis, kMost, document);
  return {};
}

// A memory snapshot holds no time: its tables are those of lamina memory.
Result<int> ReportSnapshot(const std::string& path, const Common& common) {
  engine::MemoryOptions options;
  options.rules_dir = common.rules_dir;
  options.tables.every_kind = common.format != "table";
  Document document;
  document.command = "report";
  document.inputs = {path};
  engine::Recordings recordings;
  LAMINA_ASSIGN(document.result,
                engine::MakeMemoryTables(path, options, &recordings));
  LAMINA_TRY(WriteMemory(document, recordings, common));
  return kFine;
}

Result<int> RunReport(const Options& options, Common& common) {
  if (compat::hta::IsLayout(options.report.layout))
    return RunFrames(options, common);
  LAMINA_TRY(KeepInputs("--roofline", options.roofline, {options.trace}));
  if (engine::IsMemorySnapshot(options.trace))
    return ReportSnapshot(options.trace, common);
  ReportOptions report = options.report;
  engine::Watch watch;
  if (common.host != nullptr) {
    watch.stop = common.host->stop;
    // A trace that is open was opened for a device.
    if (report.device.empty()) report.device = common.host->device;
  }
  report.threads = common.ThreadCount();
  report.captures = common.captures;
  report.only = common.only;
  report.short_kernel_ns = static_cast<int64_t>(options.short_kernel_us * 1000);
  if (options.micro_idle_us > 0)
    report.micro_idle_ns = static_cast<int64_t>(options.micro_idle_us * 1000);
  engine::OpenOptions open = common.Open();
  engine::SetUp(open, report);
  LAMINA_ASSIGN(const auto session, common.OpenTrace(options.trace, open));
  // The first screen: what to change next.
  const bool native = report.layout == "native";
  const size_t asked =
      native ? std::erase_if(report.only, findings::IsReportTable) : 0;
  const size_t joins =
      options.compiled.empty()
          ? 0
          : std::erase_if(report.only, [](const std::string& name) {
              return IsCompiledTable(name);
            });
  const bool later = common.host != nullptr && common.host->without_findings;
  const bool may_find = native && !session->trace().device_slices().empty();
  const bool finds = common.only.empty() ? may_find && !later : asked > 0;
  Document document;
  document.command = "report";
  if (common.only.empty() || !report.only.empty()) {
    LAMINA_ASSIGN(document,
                  engine::MakeReport(*session, report, &common.times, watch));
  }
  if (native && !options.compiled.empty()) {
    const ScopedStage stage(&common.times, "compiled");
    analysis::Settings settings;
    settings.threads = report.threads;
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, false, settings));
    LAMINA_ASSIGN(const analysis::CompiledWork work,
                  JoinCompiledFiles(options.compiled, *context));
    AddCompiledTables(*context, work, document.result);
    if (joins > 0 && !finds)
      LAMINA_TRY(engine::KeepOnly(document.result, common.only));
  }
  if (later && may_find) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "findings_later",
        "What to change next is still looked for: the findings follow."));
  }
  if (finds) {
    const ScopedStage stage(&common.times, "findings");
    ::malloc_trim(0);  // what analyses freed, before the largest part
    LAMINA_TRY(AddFindings(session, report.threads, options.trace, document));
    LAMINA_TRY(engine::KeepOnly(document.result, common.only));
  }
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), report.captures.begin(),
                         report.captures.end());
  if (!options.roofline.empty()) {
    const Table* ops = document.result.Find("op_efficiency");
    if (ops == nullptr) {
      return Fail(UsageError("--roofline needs the table op_efficiency",
                             "leave out --layout, or name it in --only"));
    }
    LAMINA_ASSIGN(const std::string svg, engine::DrawRoofline(*session, *ops));
    LAMINA_TRY(WriteFile(options.roofline, svg));
  }
  if (common.top > 0 && common.format != "table") {
    for (Table& table : document.result.tables) table.Truncate(common.top);
  }
  // Files of sheets have no place for notes.
  if (report.layout != "native" && common.format != "table" &&
      common.host == nullptr) {
    for (const Note& note : document.result.notes)
      fmt::print(stderr, "{}\n", EscapeTerminal(note.text));
  }
  const ScopedStage stage(&common.times, "write");
  if (common.format == "html" && report.layout == "native" &&
      common.Complete()) {
    LAMINA_TRY(WriteReportPage(*session, std::move(document), report, options,
                               common));
    return kFine;
  }
  common.only.clear();  // done
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(Arguments& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("trace", options->trace,
           "Trace file (.json, .json.gz ...; - reads standard input)")
      .Required();
  args.Add("--layout", options->report.layout, "Tables of another tool")
      .OneOf({"native", "tracelens", "tracelens-inference", "hta", "hta:exact"})
      .ShowDefault();
  args.Add("--rank", options->rank,
           "Rank of the frames of one rank, for a folder of traces "
           "(--layout hta)")
      .Whole(0, 1000000000);
  common.AddCapturesTo(args);
  common.AddRegionTo(args);
  AddCompiledTo(args, options->compiled);
  args.Flag("--overlaps", options->report.overlaps,
            "Layouts of TraceLens: also the sheets by what ran beside an op");
  args.Flag("--recompute", options->report.recompute,
            "Split by activation recomputation (needs Python stacks in "
            "the trace)");
  args.Flag("--python-stacks", options->report.python_stacks,
            "Python frames are part of the call tree");
  args.Add("--link", options->report.link,
           "How launches are joined to device work: auto (by "
           "correlation) or flow (by ac2g flows, as TraceLens) (default: "
           "auto; in its layouts flow, where the trace has flows)")
      .OneOf({"auto", "flow"});
  args.Add("--device", options->report.device,
           "Device for rooflines: a name (lamina list devices) or a "
           "file (default: what the trace says)");
  args.Add("--roofline", options->roofline,
           "Writes the roofline plot to this SVG file");
  args.Add("--short-kernel-us", options->short_kernel_us,
           "Kernels below this are short")
      .Within(0.001, 1e9)
      .ShowDefault();
  args.Add("--micro-idle-us", options->micro_idle_us,
           "Split idle time into gaps below and above this")
      .Within(0.001, 1e9);
  args.Add("--tokens", options->report.tokens,
           "Tokens of one step on one GPU, for tokens/s (default: what "
           "embeddings show)")
      .Whole(1, int64_t{1} << 50);
  options->page_size.AddTo(args);
  args.Add("--html-max-events", options->html_max_events,
           "Device events above which a page holds sums, and only the "
           "slowest events and those around findings")
      .Whole(1, 100'000'000)
      .ShowDefault();
  common.AddTo(args);
  return [options, &common] { return RunReport(*options, common); };
}

}  // namespace

CommandInfo ReportCommand() {
  return {"report", "Where did the GPU time go?",
          "lamina report trace.json.gz --format csv -o tables", &Add};
}

}  // namespace lamina::cli
