// SPDX-License-Identifier: Apache-2.0
//
// lamina diff: what changed between two traces.
#include "questions/diff.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/core.h>
#include <map>

#include "base/decimal.h"
#include "compare/runs/compare.h"
#include "compat/tracediff/tracediff.h"
#include "engine/captures.h"
#include "engine/find_traces.h"
#include "engine/memory.h"
#include "engine/report.h"
#include "engine/report_file.h"
#include "findings/compare.h"
#include "page/diff.h"
#include "questions/bodies.h"
#include "questions/memory_page.h"

namespace lamina::questions {
namespace {

constexpr size_t kTerminalRows = 10;

using analysis::diff::Comparison;

// Of whole windows, which have no unit: the sum of device work.
int64_t Measured(const analysis::diff::Totals& totals,
                 const std::string& measure) {
  if (measure == "busy") return totals.busy_ns;
  if (measure == "total") return totals.total_ns;
  return totals.kernel_time_ns;
}

// Of the report of each input, made here where it is a trace.
Result<std::vector<Comparison>> CompareReports(
    const DiffParams& params, std::vector<std::optional<ResultSet>> reports,
    Asker& asker) {
  const std::vector<std::string>& paths = params.traces;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (reports[i]) continue;
    LAMINA_ASSIGN(const auto session,
                  asker.OpenTrace(paths[i], OpenSide(params, i, asker)));
    ReportOptions options;
    options.threads = asker.ThreadCount();
    LAMINA_ASSIGN(Document document,
                  engine::MakeReport(*session, options, &asker.times));
    reports[i] = std::move(document.result);
  }
  std::vector<Comparison> out;
  for (size_t i = 1; i < paths.size(); ++i) {
    analysis::diff::Options options;
    options.letter = static_cast<char>('A' + i);
    LAMINA_ASSIGN(
        Comparison comparison,
        analysis::diff::CompareReports({paths[0], &*reports[0]},
                                       {paths[i], &*reports[i]}, options));
    out.push_back(std::move(comparison));
  }
  return out;
}

// Two traces that are open, for a page with their events. Of more traces only
// the tables are kept.
struct OpenPair {
  std::shared_ptr<engine::Session> first, second;
  const analysis::Context* a = nullptr;
  const analysis::Context* b = nullptr;
  std::shared_ptr<const analysis::layers::Rules> rules;
};

Result<std::vector<Comparison>> CompareTraces(
    const std::vector<std::string>& paths, analysis::diff::Options options,
    const DiffParams& params, const std::optional<runs::Options>& units,
    std::vector<runs::Compared>& matched, Asker& asker, OpenPair& pair) {
  LAMINA_ASSIGN(pair.rules,
                analysis::layers::LoadRules(rules::DataSet(asker.rules_dir)));
  const auto open = [&](size_t i) {
    return asker.OpenTrace(paths[i], OpenSide(params, i, asker));
  };
  LAMINA_ASSIGN(pair.first, open(0));
  const trace::Trace& first = pair.first->trace();
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  std::vector<Comparison> out;
  for (size_t i = 1; i < paths.size(); ++i) {
    LAMINA_ASSIGN(auto other, open(i));
    const bool python =
        analysis::diff::NeedsPythonStacks(first, options) &&
        analysis::diff::NeedsPythonStacks(other->trace(), options);
    LAMINA_ASSIGN(pair.a, pair.first->ContextFor(tree::LinkMode::kAuto, python,
                                                 settings));
    LAMINA_ASSIGN(pair.b,
                  other->ContextFor(tree::LinkMode::kAuto, python, settings));
    options.letter = static_cast<char>('A' + i);
    const ScopedStage stage(&asker.times, "compare");
    out.push_back(
        analysis::diff::Compare(*pair.a, *pair.b, *pair.rules, options));
    runs::Compared own;
    if (units) {
      runs::Options how = *units;
      how.letter = options.letter;
      how.several = paths.size() > 2;
      LAMINA_ASSIGN(own,
                    runs::CompareUnits({{pair.a}, {}}, {{pair.b}, {}}, how));
    }
    // The verdict of units says the types.
    if (!own.matched) {
      const std::string types = runs::TypeChange(*pair.a, *pair.b);
      for (Note& note : out.back().result.notes) {
        if (note.severity == Severity::kVerdict && !types.empty())
          note.text = types + ": " + note.text;
      }
    }
    if (units) matched.push_back(std::move(own));
    pair.second = std::move(other);
  }
  return out;
}

// A table without rows says nothing; what sentences say of units, and checks
// that hold, are for who looks closer. `units`: they were compared, and tables
// of whole windows would contradict them where one trace is longer.
bool IsNoScreenTable(const Table& table, bool units) {
  static constexpr std::string_view kCloser[] = {"diff_units", "diff_left_out",
                                                 "diff_pairs"};
  static constexpr std::string_view kWindow[] = {
      "diff_totals", "diff_causes", "diff_ops",  "diff_kernels",
      "diff_by",     "diff_calls",  "diff_moved"};
  if (units && std::find(std::begin(kWindow), std::end(kWindow),
                         table.name()) != std::end(kWindow))
    return true;
  if (table.name() == "diff_comparable") {
    for (size_t r = 0; r < table.rows(); ++r) {
      if (table.At(r, "effect").text() != "none") return false;
    }
    return true;
  }
  return table.rows() == 0 || std::find(std::begin(kCloser), std::end(kCloser),
                                        table.name()) != std::end(kCloser);
}

}  // namespace

engine::OpenOptions OpenSide(const DiffParams& options, size_t side,
                             Asker& asker) {
  engine::OpenOptions how = asker.Open();
  const auto& own = side == 0 ? options.captures_a : options.captures_b;
  how.captures.insert(how.captures.end(), own.begin(), own.end());
  return how;
}

bool HoldsRanks(const std::string& folder) {
  std::error_code none_there;
  if (!std::filesystem::is_directory(folder, none_there)) return false;
  const auto files = engine::FindTraces({folder});
  return files && files->size() > 1;
}

Result<std::map<int64_t, std::shared_ptr<engine::Session>>> OpenRanks(
    const std::string& folder, const engine::OpenOptions& open, Asker& asker,
    std::vector<std::string>& inputs) {
  LAMINA_ASSIGN(const auto files, engine::FindTraces({folder}));
  std::map<int64_t, std::shared_ptr<engine::Session>> ranks;
  for (const std::string& file : files) {
    LAMINA_ASSIGN(auto session, asker.OpenTrace(file, open));
    const int64_t rank = engine::RankOf(session->trace(), file)
                             .value_or(static_cast<int64_t>(ranks.size()));
    inputs.push_back(file);
    if (!ranks.emplace(rank, std::move(session)).second) {
      return Fail(
          InputError(file, "is a second trace of rank " + std::to_string(rank),
                     "a folder holds one trace of each rank"));
    }
  }
  return ranks;
}

namespace {

// What has no page of events: jobs, and several recordings a side.
Result<Answer> CompareSides(const DiffParams& options,
                            const runs::Options& units,
                            const std::array<runs::Side, 2>& sides,
                            Document document, Asker& asker) {
  LAMINA_ASSIGN(runs::Compared compared,
                runs::CompareUnits(sides[0], sides[1], units));
  if (!compared.matched) {
    return Fail(InputError(options.traces[0],
                           "and the other side have no steps in common",
                           "compare traces one by one: ⟨lamina⟩ diff A B"));
  }
  document.result = std::move(compared.result);
  if (asker.for_screen() && asker.only.empty()) {
    if (asker.top == 0) asker.top = kTerminalRows;
    std::erase_if(document.result.tables, [](const Table& table) {
      return IsNoScreenTable(table, true);
    });
  }
  Answer answer(std::move(document));
  answer.failed = compared.verdict == runs::Verdict::kFail ||
                  (compared.verdict == runs::Verdict::kUnknown &&
                   options.unknown == "fail");
  return answer;
}

// Several traces a side: the ranks of a job where each side has every rank
// once, else recordings of one program, whose noise is measured.
Result<Answer> CompareLists(const DiffParams& options,
                            const runs::Options& units, Asker& asker) {
  Document document;
  document.command = "diff";
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  std::array<runs::Side, 2> sides;
  std::array<std::map<int64_t, const analysis::Context*>, 2> ranks;
  std::vector<std::shared_ptr<engine::Session>> open;
  bool by_rank = true;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    LAMINA_ASSIGN(
        const auto files,
        engine::FindTraces(i == 0 ? options.traces : options.against));
    for (const std::string& file : files) {
      LAMINA_ASSIGN(auto session,
                    asker.OpenTrace(file, OpenSide(options, i, asker)));
      LAMINA_ASSIGN(
          const analysis::Context* const context,
          session->ContextFor(tree::LinkMode::kAuto, false, settings));
      sides[i].ranks.push_back(context);
      const auto rank = engine::RankOf(session->trace(), file);
      by_rank &= rank && ranks[i].emplace(*rank, context).second;
      document.inputs.push_back(file);
      open.push_back(std::move(session));
    }
  }
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!by_rank) {
      sides[i].recordings = true;
      continue;
    }
    sides[i].ranks.clear();
    for (const auto& [rank, context] : ranks[i]) {
      if (ranks[1 - i].contains(rank)) {
        sides[i].ranks.push_back(context);
      } else {
        sides[i].left_out.push_back(rank);
      }
    }
  }
  if (sides[0].ranks.empty()) {
    return Fail(InputError(options.against[0],
                           "and the others have no rank that the first have"));
  }
  return CompareSides(options, units, sides, std::move(document), asker);
}

// Two folders with the ranks of a job: a step takes as long as on its slowest
// rank, of those that both have.
Result<Answer> CompareJobs(const DiffParams& options,
                           const runs::Options& units, Asker& asker) {
  if (options.traces.size() != 2) {
    return Fail(UsageError("folders of ranks are compared two by two",
                           "⟨lamina⟩ diff DIR_A DIR_B"));
  }
  Document document;
  document.command = "diff";
  std::array<std::map<int64_t, std::shared_ptr<engine::Session>>, 2> ranks;
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  for (const size_t i : {size_t{0}, size_t{1}}) {
    LAMINA_ASSIGN(ranks[i],
                  OpenRanks(options.traces[i], OpenSide(options, i, asker),
                            asker, document.inputs));
  }
  std::array<runs::Side, 2> sides;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    for (const auto& [rank, session] : ranks[i]) {
      if (!ranks[1 - i].contains(rank)) {
        sides[i].left_out.push_back(rank);
        continue;
      }
      LAMINA_ASSIGN(
          const analysis::Context* const context,
          session->ContextFor(tree::LinkMode::kAuto, false, settings));
      sides[i].ranks.push_back(context);
    }
  }
  if (sides[0].ranks.empty()) {
    return Fail(InputError(options.traces[1],
                           "has no rank that " + options.traces[0] + " has"));
  }
  return CompareSides(options, units, sides, std::move(document), asker);
}

// What the rules of findings say of two traces.
Result<Answer> RunFindings(const DiffParams& options, Asker& asker) {
  if (options.traces.size() != 2) {
    return Fail(UsageError("⟨findings⟩ compares two traces",
                           "⟨lamina⟩ diff A B ⟨findings⟩"));
  }
  LAMINA_ASSIGN(const auto rules,
                findings::RuleSet::Load(rules::DataSet(asker.rules_dir)));
  findings::Options run;
  run.all = true;
  findings::Diagnosis diagnoses[2];
  std::array<size_t, 2> units{};
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  for (const size_t i : {size_t{0}, size_t{1}}) {
    LAMINA_ASSIGN(auto session, asker.OpenTrace(options.traces[i],
                                                OpenSide(options, i, asker)));
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, false, settings));
    LAMINA_ASSIGN(const runs::Units found,
                  runs::FindUnits(*context, true, true));
    units[i] = found.units.size();
    LAMINA_ASSIGN(diagnoses[i],
                  findings::Diagnose(std::move(session), rules, run));
  }
  Document document;
  document.command = "diff";
  document.inputs = options.traces;
  document.result = findings::Compare(diagnoses[0], diagnoses[1], units);
  return Answer(std::move(document));
}

// The tables of TraceLens' TraceDiff, in a tree joined as that tool does.
Result<Answer> RunTraceDiff(const DiffParams& options, Asker& asker) {
  if (options.traces.size() != 2 || !options.fail_above.empty()) {
    return Fail(UsageError("⟨layout⟩ tracelens compares two traces",
                           "leave out ⟨fail_above⟩ and further traces"));
  }
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  std::unique_ptr<engine::Session> sessions[2];
  const analysis::Context* contexts[2] = {};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    LAMINA_ASSIGN(
        sessions[i],
        engine::Session::Open(options.traces[i], OpenSide(options, i, asker)));
    LAMINA_ASSIGN(contexts[i], sessions[i]->ContextFor(
                                   engine::LayoutLink("", sessions[i]->trace()),
                                   options.diff.python, settings));
  }
  Document document;
  document.command = "diff";
  document.inputs = options.traces;
  {
    const ScopedStage stage(&asker.times, "compare");
    document.result = compat::tracediff::MakeSheets(*contexts[0], *contexts[1]);
  }
  LAMINA_TRY(engine::KeepOnly(document.result, asker.only));
  asker.only.clear();  // done
  return Answer(std::move(document));
}

void SayNoEvents(Document& document, std::string_view why) {
  document.result.notes.push_back(
      MakeNote(Severity::kInfo, "page_no_events",
               fmt::format("This page holds no events: {}.", why)));
}

// A page holds the events of two traces; of reports or of more traces it has
// the tables.
void AddPage(std::shared_ptr<const analysis::diff::Members> members,
             const OpenPair& pair, size_t traces, const Asker& asker,
             Answer& answer) {
  if (!asker.for_page() || !asker.Complete()) return;
  if (pair.a == nullptr || traces != 2) {
    SayNoEvents(answer.document,
                pair.a == nullptr ? "what is compared are reports"
                                  : "only two traces can lie over each other");
    return;
  }
  answer.page = [members = std::move(members), pair, &asker](
                    Document& shown, const PageRequest& request) {
    page::DiffPageOptions page;
    page.output = request.output;
    page.threads = asker.ThreadCount();
    page.words = request.words.Words();
    page.max_bytes = asker.page_bytes();
    page.redact = request.redact;
    return page::WriteDiffPage(*pair.a, *pair.b, *pair.rules, *members, shown,
                               page);
  };
}

}  // namespace

Result<std::optional<double>> ParsePercent(const char* name, std::string text) {
  if (text.empty()) return std::optional<double>();
  if (text.ends_with('%')) text.pop_back();
  const auto percent = ParseDouble(text);
  if (!percent || !(*percent >= 0)) {
    return Fail(UsageError(std::string(name) + ": expected a percentage",
                           "for example 3%"));
  }
  return std::optional(*percent / 100);
}

namespace {

// How units are compared; nothing: whole windows are.
Result<std::optional<runs::Options>> UnitOptions(const DiffParams& options) {
  runs::Options out;
  LAMINA_ASSIGN(out.fail_above,
                ParsePercent("⟨fail_above⟩", options.fail_above));
  LAMINA_ASSIGN(out.run_noise, ParsePercent("⟨run_noise⟩", options.run_noise));
  if (options.unit == "window" || options.measure == "total")
    return std::optional<runs::Options>();
  out.measure = options.measure == "kernel_time" ? runs::Measure::kKernelTime
                : options.measure == "busy"      ? runs::Measure::kBusy
                                                 : runs::Measure::kUnit;
  out.steps = options.unit != "pass";
  out.passes = options.unit != "step";
  return std::optional(out);
}

// The tables of matched units come first. The sentence about whole traces is no
// answer any more: it stands below, and not on a screen, which has no table of
// it.
void PutUnitsFirst(runs::Compared units, bool on_screen, ResultSet& result) {
  const auto is_verdict = [](const Note& note) {
    return note.severity == Severity::kVerdict;
  };
  // Units are compared one by one, however many there are.
  if (on_screen) {
    std::erase_if(result.notes, [&](const Note& note) {
      return is_verdict(note) || note.id == "diff_steps";
    });
  }
  for (Note& note : result.notes) {
    if (!is_verdict(note)) continue;
    note.severity = Severity::kInfo;
    note.id = "diff_window";
    note.text = "Of whole traces: " + note.text;
  }
  units.result.Append(std::move(result));
  result = std::move(units.result);
}

}  // namespace

Result<Answer> AskDiff(const DiffParams& options, Asker& asker) {
  LAMINA_ASSIGN(const auto limit,
                ParsePercent("⟨fail_above⟩", options.fail_above));
  LAMINA_ASSIGN(auto units, UnitOptions(options));
  const bool kept =
      std::any_of(options.traces.begin(), options.traces.end(), &IsKeptRun);
  if (kept) {
    if (!units || options.findings || options.layout != "native") {
      return Fail(UsageError("runs of a store are compared by units alone",
                             "they hold no events"));
    }
    return CompareWithKept(options, *units, asker);
  }
  if (!options.against.empty()) {
    if (!units || options.findings || options.layout != "native") {
      return Fail(UsageError("⟨against⟩ compares units",
                             "leave out what is of two traces"));
    }
    return CompareLists(options, *units, asker);
  }
  if (options.traces.size() < 2) {
    return Fail(UsageError("one trace is compared with nothing",
                           "⟨lamina⟩ diff A B, or ⟨against⟩ B ..."));
  }
  KnownPair known;
  if (!options.store.empty()) {
    LAMINA_ASSIGN(known, KnownPairOf(options, asker));
    if (units && !units->run_noise && known.run_noise) {
      units->run_noise = known.run_noise;
      units->noise_from = runs::Options::NoiseFrom::kStore;
    }
  }
  if (std::count(options.traces.begin(), options.traces.end(), "-") > 1) {
    return Fail(UsageError("standard input (-) can be read only once",
                           "give at most one trace as -, the others by name"));
  }
  if (options.findings) return RunFindings(options, asker);
  if (options.layout == "tracelens") return RunTraceDiff(options, asker);
  if (options.traces.size() == 2 &&
      engine::IsMemorySnapshot(options.traces[0]) &&
      engine::IsMemorySnapshot(options.traces[1])) {
    engine::MemoryOptions memory;
    memory.rules_dir = asker.rules_dir;
    Document document;
    document.command = "diff";
    document.inputs = options.traces;
    engine::Recordings recordings;
    LAMINA_ASSIGN(document.result,
                  engine::DiffMemory(options.traces[0], options.traces[1],
                                     memory, &recordings));
    return MemoryAnswer(std::move(document), std::move(recordings), asker);
  }
  if (units &&
      std::all_of(options.traces.begin(), options.traces.end(),
                  [](const std::string& path) { return HoldsRanks(path); }))
    return CompareJobs(options, *units, asker);
  std::vector<std::optional<ResultSet>> reports;
  bool any_report = false;
  for (const std::string& path : options.traces) {
    LAMINA_ASSIGN(auto report, engine::ReadReportFile(path));
    any_report |= report.has_value();
    reports.push_back(std::move(report));
  }
  std::vector<Comparison> comparisons;
  std::vector<runs::Compared> matched;
  OpenPair pair;
  if (any_report) {
    LAMINA_ASSIGN(comparisons,
                  CompareReports(options, std::move(reports), asker));
  } else {
    LAMINA_ASSIGN(comparisons,
                  CompareTraces(options.traces, options.diff, options, units,
                                matched, asker, pair));
  }
  bool failed = false;
  const bool all_matched =
      !matched.empty() &&
      std::all_of(matched.begin(), matched.end(),
                  [](const runs::Compared& one) { return one.matched; });
  for (size_t i = 0; i < comparisons.size(); ++i) {
    Comparison& comparison = comparisons[i];
    if (i < matched.size() && matched[i].matched) {
      failed |= matched[i].verdict == runs::Verdict::kFail ||
                (matched[i].verdict == runs::Verdict::kUnknown &&
                 options.unknown == "fail");
      PutUnitsFirst(std::move(matched[i]), asker.for_screen(),
                    comparison.result);
      continue;
    }
    if (units) {
      comparison.result.notes.push_back(MakeNote(
          Severity::kInfo, "diff_no_units",
          "There are no steps or passes on both sides: whole windows are "
          "compared, which differ where one trace is longer."));
    }
    const auto a =
        static_cast<double>(Measured(comparison.totals[0], options.measure));
    const auto b =
        static_cast<double>(Measured(comparison.totals[1], options.measure));
    failed |= limit && b - a > a * *limit;
  }
  Document document;
  document.command = "diff";
  document.inputs = options.traces;
  auto members = std::make_shared<const analysis::diff::Members>(
      std::move(comparisons.front().members));
  document.result =
      comparisons.size() == 1
          ? std::move(comparisons[0].result)
          : analysis::diff::JoinComparisons(std::move(comparisons));
  // On a terminal a table without rows says nothing, and the first rows of
  // each say most.
  if (asker.for_screen()) {
    if (asker.top == 0) asker.top = kTerminalRows;
    if (asker.only.empty())
      std::erase_if(document.result.tables, [&](const Table& table) {
        return IsNoScreenTable(table, all_matched);
      });
  }
  Answer answer(std::move(document));
  answer.failed = failed;
  if (known.decision && SayDecision(*known.decision, answer.document.result))
    answer.failed = false;
  AddPage(std::move(members), pair, options.traces.size(), asker, answer);
  return answer;
}

Body DescribeDiff(Description& args, Asker& asker) {
  auto options = std::make_shared<DiffParams>();
  args.Add("traces", options->traces,
           "The trace before and after, and others to compare with the "
           "first; or what ⟨lamina⟩ report --format json wrote")
      .Required()
      .Count(1, 26);
  args.Add(
      "--against", options->against,
      "Traces of B where all others are of A: recordings of both programs, "
      "whose own noise is measured, or ranks of two jobs, which meet by "
      "number");
  args.Flag("--findings", options->findings,
            "What the rules of ⟨diagnose()⟩ say of both: fixed, new, "
            "better, worse, or not to be seen any more");
  args.Add("--unit", options->unit,
           "What is compared: steps, passes of a server, or whole windows "
           "(auto: steps, else passes, else windows)")
      .OneOf({"auto", "step", "pass", "window"})
      .ShowDefault();
  args.Add("--fail-above", options->fail_above,
           "Exit with 1 when a unit of B (or another) surely takes more than "
           "this share longer than one of A: 3%");
  args.Add("--unknown", options->unknown,
           "Whether a gate that the units cannot decide passes or fails")
      .OneOf({"pass", "fail"})
      .ShowDefault();
  args.Add("--measure", options->measure,
           "What is compared of a unit: the unit itself, the sum of its device "
           "work, or the time in which the device was busy; total: the window")
      .OneOf({"unit", "kernel_time", "busy", "total"})
      .ShowDefault();
  args.Add("--run-noise", options->run_noise,
           "What recordings of one program differ by, one standard deviation "
           "(default: 0.5% is assumed)");
  asker.AddCapturesTo(args);
  args.Add("--capture-a", options->captures_a,
           "Captures of the replayed graphs of the first trace alone");
  args.Add("--capture-b", options->captures_b,
           "Captures of the replayed graphs of the others alone");
  args.Add("--store", options->store,
           "A store of runs: what recordings differ by is measured there, and "
           "what was decided about this pair holds; A and B may be run:NAME or "
           "baseline:NAME")
      .ValueName("STORE");
  args.Add("--layout", options->layout,
           "Tables of another tool: diff_stats of TraceLens' TraceDiff")
      .OneOf({"native", "tracelens"})
      .ShowDefault();
  asker.AddPageSizeTo(args);
  args.Flag("--python-stacks", options->diff.python,
            "Match all Python frames, not only modules");
  return [options, &asker] { return AskDiff(*options, asker); };
}

}  // namespace lamina::questions
