// SPDX-License-Identifier: Apache-2.0
//
// lamina report: where did the GPU time go?
//
// Longer than most: it has the options of every layout, and what they share.
#include "questions/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <tuple>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "compat/hta/frames.h"
#include "engine/memory.h"
#include "engine/report.h"
#include "engine/roofline.h"
#include "findings/answer.h"
#include "findings/findings.h"
#include "findings/suppressions.h"
#include "page/page.h"
#include "questions/bodies.h"
#include "questions/compiled_input.h"
#include "questions/memory_page.h"

namespace lamina::questions {
namespace {

// The commands that give rows of the page. A slice is chosen over the tree that
// a report has by default, without what captures add to it.
std::vector<render::PageCommand> PageCommands(const page::PageOptions& page,
                                              const CommandWords& words,
                                              const Asker& asker) {
  static constexpr std::string_view kOfLayers[] = {"--rules", "--capture"};
  static constexpr std::string_view kOfEvents[] = {"--rules"};
  std::vector<render::PageCommand> commands = {
      {"report", words.Words(), {}, {}},
      {"layers", words.WordsFor("layers", kOfLayers), {}, {}},
      {"event", words.WordsFor("event", kOfEvents), {}, {}}};
  commands.push_back({"layers --variants", commands[1].words, {}, {}});
  commands.back().words.emplace_back("--variants");
  if (asker.captures.empty() && page.link == tree::LinkMode::kAuto &&
      !page.python_stacks) {
    commands.push_back({"slice", words.WordsFor("slice", kOfEvents), {}, {}});
  }
  return commands;
}

// Time of devices in the columns of a page; of more than it shows at once the
// longest.
render::Block SpanBlock(
    const char* name, const char* key,
    std::vector<std::pair<int64_t, findings::DeviceSpan>> spans) {
  constexpr size_t kMost = 300'000;
  if (spans.size() > kMost) {
    const auto shorter = [](const auto& a, const auto& b) {
      return a.second.dur_ns > b.second.dur_ns;
    };
    std::ranges::nth_element(spans, spans.begin() + kMost, shorter);
    spans.resize(kMost);
    std::ranges::sort(spans, {}, [](const auto& one) {
      const auto& [of, span] = one;
      return std::tuple(of, span.device, span.start_ns);
    });
  }
  std::vector<int64_t> of, device, start, dur;
  for (const auto& [number, span] : spans) {
    of.push_back(number);
    device.push_back(span.device);
    start.push_back(span.start_ns);
    dur.push_back(span.dur_ns);
  }
  render::Block block(name, spans.size());
  block.Add(key, of);
  block.Add("device", device);
  block.Add("start", start, true);
  block.Add("dur", dur);
  return block;
}

// What the first screen of a page shows, and which time each part of it is.
void AddAnswerTo(page::PageOptions& page, const findings::TraceAnswer& answer) {
  page.answer = findings::AnswerJson(answer);
  std::vector<std::pair<int64_t, findings::DeviceSpan>> fixes, idle;
  for (size_t i = 0; i < answer.fixes.size(); ++i) {
    for (const findings::DeviceSpan& span : answer.fixes[i].spans)
      fixes.emplace_back(i, span);
  }
  for (const auto& [spent, span] : answer.idle)
    idle.emplace_back(static_cast<int64_t>(spent), span);
  page.answer_blocks.push_back(SpanBlock("fix_spans", "fix", std::move(fixes)));
  page.answer_blocks.push_back(
      SpanBlock("idle_spans", "spent", std::move(idle)));
  page.answer_lanes = fmt::format("[{}]", fmt::join(answer.lanes, ","));
}

// The page holds the events beside the tables.
Status WriteReportPage(engine::Session& session, Document& document,
                       const ReportOptions& report, size_t max_events,
                       const findings::TraceAnswer* answer,
                       const PageRequest& request, const Asker& asker) {
  page::PageOptions page;
  page.output = request.output;
  page.threads = report.threads;
  page.max_bytes = asker.page_bytes();
  page.max_events = max_events;
  page.link = engine::LinkOf(report);
  page.python_stacks = report.python_stacks || report.recompute;
  page.settings = engine::SettingsOf(report);
  if (!request.words.empty() && !request.words.ReadsStdin())
    page.commands = PageCommands(page, request.words, asker);
  if (answer != nullptr) AddAnswerTo(page, *answer);
  page.redact = request.redact;
  page.live = request.live;
  return page::WritePage(session, document, page);
}

// The frames of HTA come from the rows of the file, not from the model of it.
Result<Answer> RunFrames(const ReportParams& options, Asker& asker) {
  Document document;
  document.command = "report";
  document.inputs = {options.trace};
  {
    const ScopedStage stage(&asker.times, "frames");
    LAMINA_ASSIGN(const auto loaded,
                  compat::hta::Loaded::Open(
                      options.trace, options.report.layout == "hta:exact"));
    LAMINA_ASSIGN(document.result,
                  compat::hta::MakeFrames(loaded, options.rank));
  }
  LAMINA_TRY(engine::KeepOnly(document.result, asker.only));
  asker.only.clear();  // done
  Answer answer(std::move(document));
  return answer;
}

// What to change next, in tables and sentences; and, where asked for, the
// answer over all. Without device work there is nothing to change, but what is
// wrong with the recording.
Status AddFindings(const std::shared_ptr<engine::Session>& session,
                   const std::string& trace, bool answers, Answer& answer) {
  constexpr size_t kMost = 5;
  Document& document = answer.document;
  LAMINA_ASSIGN(const auto rules, findings::RuleSet::Load(session->data()));
  findings::Options options;
  LAMINA_ASSIGN(auto known, findings::LoadSuppressions("", trace));
  options.suppressions = std::move(known.all);
  LAMINA_ASSIGN(const auto diagnosis,
                findings::Diagnose(session, rules, options));
  if (!session->trace().device_slices().empty())
    findings::AddToReport(diagnosis, kMost, document);
  if (answers) {
    LAMINA_ASSIGN(auto first,
                  findings::MakeAnswer(*session, diagnosis, document.result));
    answer.first = std::make_shared<findings::TraceAnswer>(std::move(first));
  }
  return {};
}

// A memory snapshot holds no time: its tables are those of lamina memory.
Result<Answer> ReportSnapshot(const std::string& path, Asker& asker) {
  engine::MemoryOptions options;
  options.rules_dir = asker.rules_dir;
  options.tables.every_kind = !asker.for_screen();
  Document document;
  document.command = "report";
  document.inputs = {path};
  engine::Recordings recordings;
  LAMINA_ASSIGN(document.result,
                engine::MakeMemoryTables(path, options, &recordings));
  return MemoryAnswer(std::move(document), std::move(recordings), asker);
}

}  // namespace

Result<Answer> AskReport(const ReportParams& options, Asker& asker) {
  if (compat::hta::IsLayout(options.report.layout))
    return RunFrames(options, asker);
  LAMINA_TRY(KeepInputs("⟨roofline⟩", options.roofline, {options.trace}));
  if (engine::IsMemorySnapshot(options.trace))
    return ReportSnapshot(options.trace, asker);
  ReportOptions report = options.report;
  engine::Watch watch;
  watch.stop = asker.stop;
  // A trace that is open was opened for a device.
  if (asker.traces != nullptr && report.device.empty())
    report.device = asker.traces->device;
  report.threads = asker.ThreadCount();
  report.captures = asker.captures;
  report.only = asker.only;
  report.short_kernel_ns = static_cast<int64_t>(options.short_kernel_us * 1000);
  if (options.micro_idle_us > 0)
    report.micro_idle_ns = static_cast<int64_t>(options.micro_idle_us * 1000);
  engine::OpenOptions open = asker.Open();
  engine::SetUp(open, report);
  LAMINA_ASSIGN(const auto session, asker.OpenTrace(options.trace, open));
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
  const bool later = options.findings_later;
  const bool may_find = native && !session->trace().device_slices().empty();
  const bool finds = asker.only.empty() ? may_find && !later : asked > 0;
  Answer answer;
  Document& document = answer.document;
  document.command = "report";
  if (asker.only.empty() || !report.only.empty()) {
    LAMINA_ASSIGN(document,
                  engine::MakeReport(*session, report, &asker.times, watch));
  }
  if (native && !options.compiled.empty()) {
    const ScopedStage stage(&asker.times, "compiled");
    analysis::Settings settings;
    settings.threads = report.threads;
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, false, settings));
    LAMINA_ASSIGN(const analysis::CompiledWork work,
                  JoinCompiledFiles(options.compiled, *context));
    AddCompiledTables(*context, work, document.result);
    if (joins > 0 && !finds)
      LAMINA_TRY(engine::KeepOnly(document.result, asker.only));
  }
  if (later && may_find) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "findings_later",
        "What to change next is still looked for: the findings follow."));
  }
  const bool answers = asker.only.empty() && native && !later;
  if (finds || answers) {
    const ScopedStage stage(&asker.times, "findings");
    ::malloc_trim(0);  // what analyses freed, before the largest part
    LAMINA_TRY(AddFindings(session, options.trace, answers, answer));
    LAMINA_TRY(engine::KeepOnly(document.result, asker.only));
  }
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), report.captures.begin(),
                         report.captures.end());
  if (!options.roofline.empty()) {
    const Table* ops = document.result.Find("op_efficiency");
    if (ops == nullptr) {
      return Fail(UsageError("⟨roofline⟩ needs the table op_efficiency",
                             "leave out ⟨layout⟩, or name it in ⟨only⟩"));
    }
    LAMINA_ASSIGN(const std::string svg, engine::DrawRoofline(*session, *ops));
    LAMINA_TRY(WriteFile(options.roofline, svg));
  }
  if (asker.top > 0 && !asker.for_screen()) {
    for (Table& table : document.result.tables) table.Truncate(asker.top);
  }
  answer.full = options.full || asker.top > 0;
  answer.sheets = !native;
  if (asker.for_page() && native && asker.Complete()) {
    answer.page = [session, report, max_events = options.html_max_events,
                   first = answer.first,
                   &asker](Document& shown, const PageRequest& request) {
      return WriteReportPage(*session, shown, report, max_events, first.get(),
                             request, asker);
    };
  }
  asker.only.clear();  // done
  return answer;
}

Body DescribeReport(Description& args, Asker& asker) {
  auto options = std::make_shared<ReportParams>();
  args.Add("trace", options->trace,
           "Trace file (.json, .json.gz ...; - reads standard input)")
      .Required();
  args.Add("--layout", options->report.layout, "Tables of another tool")
      .OneOf({"native", "tracelens", "tracelens-inference", "hta", "hta:exact"})
      .ShowDefault();
  args.Add("--rank", options->rank,
           "Rank of the frames of one rank, for a folder of traces "
           "(⟨layout⟩ hta)")
      .Whole(0, 1000000000);
  args.Flag("--full", options->full,
            "All tables and sentences on a terminal, not one screen");
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args);
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
           "Device for rooflines: a name (⟨lamina⟩ list devices) or a "
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
  asker.AddPageSizeTo(args);
  args.Add("--html-max-events", options->html_max_events,
           "Device events above which a page holds sums, and only the "
           "slowest events and those around findings")
      .Whole(1, 100'000'000)
      .ShowDefault();
  return [options, &asker] { return AskReport(*options, asker); };
}

}  // namespace lamina::questions
