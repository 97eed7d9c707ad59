// SPDX-License-Identifier: Apache-2.0
#include "engine/report.h"

#include <algorithm>
#include <iterator>

#include "analysis/analyses.h"
#include "base/names_in_text.h"
#include "base/parallel.h"
#include "compat/tracelens/sheets.h"
#include "report/writers.h"
#include "rules/document.h"

namespace lamina {
namespace engine {
namespace {

// In the order in which the tables are written.
constexpr std::string_view kReportAnalyses[] = {
    "overview", "timeline", "ops",        "kernels", "modules",  "comms",
    "steps",    "memory",   "efficiency", "mfu",     "host_ops", "health"};

// A note stays when one of the kept tables proves it.
void KeepNotes(ResultSet& result) {
  std::erase_if(result.notes, [&](const Note& note) {
    return std::none_of(
        note.evidence.begin(), note.evidence.end(),
        [&](const Evidence& e) { return result.Find(e.table) != nullptr; });
  });
}

Error NoSuchTable(const std::string& wanted,
                  const std::vector<std::string>& tables) {
  const std::vector<std::string_view> names(tables.begin(), tables.end());
  const std::string_view near = rules::Nearest(wanted, names);
  std::string list;
  for (const std::string_view name : names)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return UsageError("⟨only⟩: there is no table '" + wanted + "'",
                    near.empty() ? "tables: " + list
                                 : "did you mean '" + std::string(near) + "'?");
}

constexpr std::string_view kInference = "tracelens-inference";
constexpr std::string_view kIdleCauses = "idle_causes";  // analysis and table

// Whether --only leaves what says why the devices were idle: the table, or a
// note that stands on one of these.
bool WantsIdleCauses(const std::vector<std::string>& only) {
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [](const std::string& table) {
           return table == kIdleCauses || table == "gaps" ||
                  table == "gpu_timeline";
         });
}

bool IsFamilyTable(std::string_view table) {
  return table.starts_with("efficiency_");
}

// What makes the tables that --only asks for, of `names`. The overview runs
// for its notes, which are about the tables of others. Errors: a table that
// none of them makes.
Result<std::vector<std::string_view>> AnalysesFor(
    const std::vector<std::string>& only,
    const std::vector<std::string_view>& names) {
  if (only.empty()) return names;
  std::vector<std::string> tables;
  std::vector<std::string_view> needed;
  for (const std::string_view name : names) {
    bool asked = name == "overview";
    for (const Schema& schema : analysis::FindAnalysis(name)->schemas()) {
      asked |= std::find(only.begin(), only.end(), schema.name) != only.end();
      tables.push_back(schema.name);
    }
    // Which families have a table of their own, the trace decides.
    asked |= name == "efficiency" &&
             std::any_of(only.begin(), only.end(), IsFamilyTable);
    if (asked) needed.push_back(name);
  }
  std::vector<std::string> named = only;
  std::erase_if(named, IsFamilyTable);
  LAMINA_TRY(CheckOnly(named, tables));
  return needed;
}

bool HasLaunchFlows(const trace::Trace& trace) {
  return std::find(trace.flows.kind.begin(), trace.flows.kind.end(),
                   trace::FlowKind::kLaunch) != trace.flows.kind.end();
}

// What a user of TraceLens would not expect of the numbers.
void AddLayoutNotes(const tree::Tree& tree, tree::LinkMode link,
                    const ReportOptions& options, ResultSet& result) {
  const trace::Trace& trace = tree.trace();
  const std::vector<Evidence> evidence = {{"gpu_timeline", "", "", {}}};
  if (trace.device_slices().empty()) {
    result.notes.push_back(
        MakeNote(Severity::kWarning, "no_device_events",
                 "The trace has no device events: all times are 0.", evidence));
    return;
  }
  if (tree.launched().empty()) {
    result.notes.push_back(MakeNote(
        Severity::kWarning, "no_launches",
        link == tree::LinkMode::kFlow && HasLaunchFlows(trace)
            ? "No flow of the trace joins a launch to device work: "
              "gpu_timeline counts all device events. ⟨link⟩ auto joins them "
              "by correlation."
            : "The trace records no launch of its device work: gpu_timeline "
              "counts all device events.",
        evidence));
  } else if (link == tree::LinkMode::kAuto && options.link.empty()) {
    result.notes.push_back(MakeNote(
        Severity::kInfo, "joined_by_correlation",
        "The trace has no flows, by which TraceLens joins launches to device "
        "work: they are joined by correlation.",
        evidence));
  }
}

}  // namespace

Status CheckOnly(const std::vector<std::string>& only,
                 const std::vector<std::string>& tables) {
  for (const std::string& wanted : only) {
    if (std::find(tables.begin(), tables.end(), wanted) == tables.end())
      return Fail(NoSuchTable(wanted, tables));
  }
  return {};
}

Status KeepOnly(ResultSet& result, const std::vector<std::string>& only) {
  if (only.empty()) return {};
  std::vector<std::string> names;
  for (const Table& table : result.tables) names.push_back(table.name());
  LAMINA_TRY(CheckOnly(only, names));
  std::vector<size_t> kept;  // in the order asked for, each once
  for (const std::string& wanted : only) {
    const auto index = static_cast<size_t>(
        std::find(names.begin(), names.end(), wanted) - names.begin());
    if (std::find(kept.begin(), kept.end(), index) == kept.end())
      kept.push_back(index);
  }
  std::vector<Table> tables;
  for (const size_t index : kept)
    tables.push_back(std::move(result.tables[index]));
  result.tables = std::move(tables);
  KeepNotes(result);
  return {};
}

tree::LinkMode LinkOf(const ReportOptions& options) {
  return options.link == "flow" ? tree::LinkMode::kFlow : tree::LinkMode::kAuto;
}

tree::LinkMode LayoutLink(const std::string& link, const trace::Trace& trace) {
  if (link.empty()) {
    return HasLaunchFlows(trace) ? tree::LinkMode::kFlow
                                 : tree::LinkMode::kAuto;
  }
  return link == "flow" ? tree::LinkMode::kFlow : tree::LinkMode::kAuto;
}

void SetUp(OpenOptions& open, const ReportOptions& options) {
  open.device = options.device;
  open.captures = options.captures;
  open.captured_frames = options.python_stacks || options.recompute ||
                         options.layout == kInference;
}

analysis::Settings SettingsOf(const ReportOptions& options) {
  analysis::Settings settings;
  settings.threads = options.threads;
  settings.short_kernel_ns = options.short_kernel_ns;
  settings.micro_idle_ns = options.micro_idle_ns;
  settings.recompute = options.recompute;
  settings.tokens = options.tokens;
  return settings;
}

Result<std::shared_ptr<const ResultSet>> KeptReport(Session& session,
                                                    const Watch& watch) {
  using Kept = std::shared_ptr<const ResultSet>;
  return session.kept().Get<ResultSet>("report", [&]() -> Result<Kept> {
    ReportOptions options;
    options.threads = session.threads();
    LAMINA_ASSIGN(Document document,
                  MakeReport(session, options, nullptr, watch));
    return std::make_shared<const ResultSet>(std::move(document.result));
  });
}

Result<Document> MakeReport(Session& session, const ReportOptions& options,
                            StageTimes* times, const Watch& watch) {
  analysis::Settings settings = SettingsOf(options);

  Document document;
  document.command = "report";
  if (options.layout == "native") {
    if (options.overlaps) {
      return Fail(UsageError("⟨overlaps⟩ needs a layout that has the sheets",
                             "⟨layout⟩ tracelens or tracelens-inference"));
    }
    std::vector<std::string_view> names(std::begin(kReportAnalyses),
                                        std::end(kReportAnalyses));
    if (options.recompute) names.push_back("recompute");
    names.push_back(kIdleCauses);
    LAMINA_ASSIGN(names, AnalysesFor(options.only, names));
    settings.idle_causes = WantsIdleCauses(options.only);
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session.ContextFor(LinkOf(options),
                                     options.python_stacks || options.recompute,
                                     settings));
    LAMINA_ASSIGN(document.result, session.RunAnalyses(names, *context, watch));
    document.summary = options.only.empty();
  } else {
    compat::tracelens::Options layout;
    layout.inference = options.layout == kInference;
    if (!layout.inference && options.layout != "tracelens") {
      return Fail(UsageError("unknown layout '" + options.layout + "'",
                             "native, tracelens or tracelens-inference"));
    }
    const tree::LinkMode link = LayoutLink(options.link, session.trace());
    layout.recompute = options.recompute;
    layout.overlaps = options.overlaps;
    layout.rooflines = !options.device.empty();
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session.ContextFor(link, layout.inference || layout.recompute,
                                     settings));
    const ScopedStage stage(times, "sheets");
    LAMINA_ASSIGN(document.result,
                  compat::tracelens::MakeSheets(*context, layout));
    AddLayoutNotes(context->tree, link, options, document.result);
  }
  LAMINA_TRY(KeepOnly(document.result, options.only));
  return document;
}

}  // namespace engine

Result<Document> MakeReport(const std::string& trace,
                            const ReportOptions& options) {
  ReportOptions report = options;
  if (report.threads <= 0) report.threads = DefaultThreads();
  engine::OpenOptions open;
  open.threads = report.threads;
  open.rules_dir = report.rules_dir;
  engine::SetUp(open, report);
  const auto made = [&]() -> Result<Document> {
    LAMINA_ASSIGN(auto session, engine::Session::Open(trace, open));
    return engine::MakeReport(*session, report, nullptr);
  };
  auto document = made();
  if (!document) return Fail(WithNames(document.error(), PlainNames));
  document->inputs = {trace};
  for (Note& note : document->result.notes)
    note.text = WithNames(note.text, PlainNames);
  return document;
}

Status WriteDocument(const Document& document, std::string_view format,
                     const std::string& output, int threads) {
  const report::WriterInfo* writer = report::FindWriter(format);
  if (writer == nullptr) {
    std::string known;
    for (const report::WriterInfo& info : report::Writers())
      known += (known.empty() ? "" : ", ") + std::string(info.name);
    return Fail(UsageError("unknown format '" + std::string(format) + "'",
                           "formats: " + known));
  }
  report::WriteOptions options;
  options.output = output;
  options.threads = threads > 0 ? threads : DefaultThreads();
  return writer->write(document, options);
}

}  // namespace lamina
