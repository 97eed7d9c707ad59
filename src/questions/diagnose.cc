// SPDX-License-Identifier: Apache-2.0
//
// lamina diagnose: what to change next, how sure that is, what it buys.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <set>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/decimal.h"
#include "engine/captures.h"
#include "engine/find_traces.h"
#include "findings/export.h"
#include "findings/job.h"
#include "findings/ranks.h"
#include "findings/suppressions.h"
#include "questions/bodies.h"

namespace lamina::questions {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> traces;
  std::vector<std::string> categories;
  std::vector<std::string> fail_on;
  std::vector<std::string> params;
  std::string suppress;
  std::string abstain = "fail";
  std::string explain;
  std::string check;
  std::string device;
  double min_share = 1;
  bool all = false;
  bool rules = false;
};

// "RULE:PCT"
struct FailOn {
  std::string glob;
  double share = 0;
};

Result<std::vector<FailOn>> ParseFailOn(const DiagnoseOptions& options,
                                        const findings::RuleSet& rules) {
  std::vector<FailOn> out;
  for (const std::string& text : options.fail_on) {
    FailOn one{text, options.min_share / 100};
    if (const size_t colon = text.find(':'); colon != std::string::npos) {
      const auto percent = ParseDouble(text.substr(colon + 1));
      if (!percent || *percent < 0) {
        return Fail(UsageError("⟨fail_on⟩: '" + text + "' has no percentage",
                               "RULE:PCT, as in host.*:5"));
      }
      one = {text.substr(0, colon), *percent / 100};
    }
    if (one.glob == "any") one.glob = "*";
    LAMINA_TRY(rules.Match({one.glob}, "⟨fail_on⟩").map([](auto) {}));
    out.push_back(std::move(one));
  }
  return out;
}

// What --fail-on says of a diagnosis: a line for each hit.
std::vector<std::string> Hits(const std::vector<FailOn>& checks,
                              const findings::Diagnosis& diagnosis,
                              bool abstaining_fails) {
  std::vector<std::string> hits;
  for (const FailOn& check : checks) {
    for (const findings::Finding& f : diagnosis.findings) {
      if (f.suppressed || !findings::GlobMatches(check.glob, f.rule->id) ||
          f.share < check.share)
        continue;
      hits.push_back(fmt::format("⟨fail_on⟩: {}: {:.1f} % of the window", f.id,
                                 100 * f.share));
    }
    for (const findings::RuleRun& run : diagnosis.runs) {
      if (!findings::GlobMatches(check.glob, run.rule->id)) continue;
      // A glob of many rules asks for what can be looked at.
      const bool named = check.glob == run.rule->id;
      if (run.state == findings::State::kAbstained && abstaining_fails && named)
        hits.push_back("⟨fail_on⟩: " + run.rule->id +
                       ": could not look: " + run.reason);
      if (run.state == findings::State::kFailed)
        hits.push_back("⟨fail_on⟩: " + run.rule->id +
                       ": failed: " + run.reason);
    }
  }
  return hits;
}

// What --explain and --list-rules print.
Result<Answer> Show(const findings::RuleSet& rules,
                    const DiagnoseOptions& options) {
  Answer answer;
  std::string& text = answer.text.emplace();
  if (options.explain == "all" || options.rules) {
    for (const findings::Rule& rule : rules.rules())
      text += fmt::format("{:30} {}\n", rule.id, rule.title);
    return answer;
  }
  LAMINA_ASSIGN(const auto ids, rules.Match({options.explain}, "⟨explain⟩"));
  for (const std::string& id : ids) text += findings::Explain(*rules.Find(id));
  return answer;
}

// Rules among what --only names: they have a dot, tables have none.
std::vector<std::string> TakeRules(std::vector<std::string>& only) {
  const auto tables = std::stable_partition(
      only.begin(), only.end(), [](const std::string& name) {
        return name.find('.') == std::string::npos;
      });
  std::vector<std::string> rules(tables, only.end());
  only.erase(tables, only.end());
  return rules;
}

Result<findings::Options> RunOptions(const DiagnoseOptions& options,
                                     std::vector<std::string> globs,
                                     const findings::RuleSet& rules) {
  findings::Options out;
  out.min_share = options.min_share / 100;
  // --fail-on and suppressions also ask for what is not shown.
  out.all = true;
  LAMINA_ASSIGN(out.only, rules.Match(globs, "⟨only⟩"));
  std::set<std::string> known;
  for (const findings::Rule& rule : rules.rules())
    known.insert(rule.id.substr(0, rule.id.find('.')));
  for (const std::string& category : options.categories) {
    if (!known.contains(category)) {
      return Fail(UsageError(
          "⟨category⟩: there is no category " + category,
          fmt::format("the categories are {}", fmt::join(known, ", "))));
    }
    LAMINA_ASSIGN(std::set<std::string> ids,
                  rules.Match({category + ".*"}, "⟨category⟩"));
    out.only.merge(ids);
  }
  for (const std::string& text : options.params) {
    const size_t equals = text.find('=');
    const size_t dot = text.rfind('.', equals);
    const auto number = equals == std::string::npos
                            ? std::nullopt
                            : ParseDouble(text.substr(equals + 1));
    if (!number || dot == std::string::npos || dot > equals) {
      return Fail(
          UsageError("⟨param⟩: expected RULE.NAME=NUMBER, got '" + text + "'",
                     "⟨param⟩ host.other.min_share=0.02"));
    }
    const std::string id = text.substr(0, dot);
    const std::string name = text.substr(dot + 1, equals - dot - 1);
    const findings::Rule* rule = rules.Find(id);
    if (rule == nullptr || !rule->params.contains(name)) {
      return Fail(UsageError("⟨param⟩: " + id + " has no parameter " + name,
                             "⟨lamina⟩ diagnose ⟨explain⟩ " + id));
    }
    out.params[id][name] = *number;
  }
  return out;
}

// Findings that the project knows: a gate that they keep silent says so.
Status UseSuppressions(const DiagnoseOptions& options, findings::Options& run,
                       Asker& asker) {
  LAMINA_ASSIGN(auto known, findings::LoadSuppressions(options.suppress,
                                                       options.traces[0]));
  if (!known.refused.empty()) {
    asker.Warn("suppressions", known.refused +
                                   " belongs to another user and is not used; "
                                   "⟨suppress⟩ " +
                                   known.refused + " uses it");
  }
  if (!known.file.empty())
    asker.Say("suppressions", "known findings are from " + known.file);
  run.suppressions = std::move(known.all);
  return {};
}

// Traces of ranks that stay open between the look at all of them and that at
// each: as many as this many bytes of input fill.
constexpr uint64_t kMostOpenBytes = uint64_t{1} << 30;

// The files of a trace, or of many ranks.
Result<std::vector<std::string>> FilesOf(
    const std::vector<std::string>& traces) {
  if (traces.size() > 1) return engine::FindTraces(traces);
  std::error_code none_there;
  if (std::filesystem::is_directory(traces[0], none_there)) {
    auto found = engine::FindTraces(traces);
    // A folder may be one trace (rocprofv3 writes several files of CSV).
    if (found && found->size() > 1) return *std::move(found);
    // What lies in the folder and cannot be read, not the folder itself.
    if (!found && found.error().file != traces[0]) return found;
  }
  return traces;
}

// A trace, or those of many ranks: all findings, the small ones, too.
Result<findings::Diagnosis> DiagnoseAll(
    const std::vector<std::string>& files, Asker& asker,
    const std::shared_ptr<const findings::RuleSet>& rules,
    const findings::Options& run, const std::string& device = "") {
  engine::OpenOptions open_one = asker.Open();
  // Traces that are open were opened for a device.
  open_one.device =
      device.empty() && asker.traces != nullptr ? asker.traces->device : device;
  if (files.size() == 1) {
    LAMINA_ASSIGN(auto session, asker.OpenTrace(files[0], open_one));
    return findings::Diagnose(std::move(session), rules, run);
  }
  dist::LoadOptions load;
  load.threads = asker.ThreadCount();
  load.rules_dir = asker.rules_dir;
  load.origins = asker.origins;
  LAMINA_ASSIGN(load.catalog,
                rules::Catalog::Load(rules::DataSet(asker.rules_dir)));
  std::vector<std::shared_ptr<engine::Session>> open(files.size());
  std::mutex mutex;
  uint64_t bytes = 0;
  const engine::OpenOptions alone = open_one;
  // Several are opened at a time.
  open_one.times = nullptr;
  open_one.progress = nullptr;
  open_one.read = nullptr;
  load.open = [&](const std::string& file, uint64_t number,
                  const engine::OpenOptions& given)
      -> Result<std::shared_ptr<engine::Session>> {
    // Who runs this has them open.
    if (asker.traces != nullptr) return asker.OpenTrace(file, open_one);
    engine::OpenOptions how = open_one;
    how.threads = given.threads;
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(file, how));
    const std::lock_guard lock(mutex);
    bytes += session->trace().info.input_bytes;
    if (bytes <= kMostOpenBytes) open[number] = session;
    return session;
  };
  findings::JobDiagnosis job = findings::DiagnoseJob(files, load, rules, run);
  std::vector<std::pair<int64_t, findings::Diagnosis>> ranks;
  // A rule that is not asked for may lower the trust in those that are.
  findings::Options each = run;
  each.only.clear();
  for (size_t i = 0; i < files.size(); ++i) {
    auto session = std::move(open[i]);
    if (session == nullptr) {
      LAMINA_ASSIGN(session, asker.OpenTrace(files[i], alone));
    }
    const trace::Trace& trace = session->trace();
    const int64_t rank =
        engine::RankOf(trace, files[i]).value_or(static_cast<int64_t>(i));
    asker.SayLosses(files[i], trace::FindLosses(trace.diagnostics));
    each.taken = std::move(job.taken[i]);
    LAMINA_ASSIGN(auto one, findings::Diagnose(session, rules, each));
    ranks.emplace_back(rank, std::move(one));
  }
  std::stable_sort(
      ranks.begin(), ranks.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return findings::JoinRanks(std::move(ranks), std::move(job.diagnosis), run);
}

// Suppressions that nothing needs any more, or that name no rule.
void WarnOfUnused(const std::vector<findings::Suppression>& suppressions,
                  const findings::RuleSet& rules,
                  const findings::Diagnosis& diagnosis, Asker& asker) {
  for (const findings::Suppression& s : suppressions) {
    if (std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                    [&](const findings::Finding& f) { return s.Names(f); }))
      continue;
    const std::string rule = s.rule.substr(0, s.rule.find('@'));
    const bool known = rules.Match({rule}, "⟨suppress⟩").has_value();
    asker.Warn("suppression",
               "the suppression of " + s.rule +
                   (known ? " matches no finding of this recording"
                          : " names no rule; ⟨lamina⟩ diagnose ⟨list_rules⟩"));
  }
}

// The trace of an example: fault:x is fault-x.json or .json.gz in the folder,
// or a folder of ranks; empty: it is not there.
std::string ExampleFile(const std::string& folder, std::string name) {
  std::replace(name.begin(), name.end(), ':', '-');
  for (const char* ending : {"", ".json", ".json.gz"}) {
    std::error_code none_there;
    std::string path = folder + "/" + name + ending;
    if (std::filesystem::is_regular_file(path, none_there) ||
        (*ending == '\0' && std::filesystem::is_directory(path, none_there)))
      return path;
  }
  return "";
}

// Holds rules against their examples.
Result<Answer> Check(const std::shared_ptr<const findings::RuleSet>& rules,
                     const std::string& folder, Asker& asker) {
  Table table({"rule_examples",
               "Examples of rules, and whether they hold.",
               {{"rule", ColumnType::kText, "Rule."},
                {"example", ColumnType::kText, "Its example."},
                {"expected", ColumnType::kText, "found or silent."},
                {"state", ColumnType::kText,
                 "How the rule ended; missing: there is no such trace."},
                {"reason", ColumnType::kText, "What it measured."},
                {"holds", ColumnType::kBool, "Whether it is as expected."}}});
  std::error_code none_there;
  if (!std::filesystem::is_directory(folder, none_there)) {
    return Fail(InputError(folder, "no such folder",
                           "bench/diagnose --write DIR makes the traces"));
  }
  std::map<std::string, findings::Diagnosis> known;
  size_t broken = 0, missing = 0;
  const auto one = [&](const findings::Rule& rule, const std::string& example,
                       bool finds) -> Status {
    const char* const expected = finds ? "found" : "silent";
    const std::string file = ExampleFile(folder, example);
    if (file.empty()) {
      ++missing;
      table.Add(rule.id, example, expected, "missing", "", std::nullopt);
      return {};
    }
    if (!known.contains(file)) {
      LAMINA_ASSIGN(const auto files, FilesOf({file}));
      findings::Options run;
      run.all = true;
      LAMINA_ASSIGN(known[file], DiagnoseAll(files, asker, rules, run));
    }
    for (const findings::RuleRun& run : known[file].runs) {
      if (run.rule->id != rule.id) continue;
      const bool found = run.state == findings::State::kFound;
      const bool silent = run.state == findings::State::kSilent ||
                          run.state == findings::State::kAbstained;
      const bool holds = finds ? found : silent;
      broken += !holds;
      table.Add(rule.id, example, expected, findings::StateName(run.state),
                run.reason, holds);
    }
    return {};
  };
  for (const findings::Rule& rule : rules->rules()) {
    for (const std::string& example : rule.finds)
      LAMINA_TRY(one(rule, example, true));
    for (const std::string& example : rule.silent)
      LAMINA_TRY(one(rule, example, false));
  }
  Document document;
  document.command = "diagnose";
  document.inputs = {folder};
  document.result.notes.push_back(
      MakeNote(broken > 0 ? Severity::kWarning : Severity::kInfo, "examples",
               fmt::format("{} examples: {} do not hold, {} have no trace in "
                           "the folder.",
                           table.rows(), broken, missing),
               {{"rule_examples", "", "", {}}}));
  document.result.tables.push_back(std::move(table));
  Answer answer(std::move(document));
  answer.failed = broken > 0;
  return answer;
}

Result<Answer> RunDiagnose(const DiagnoseOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const auto rules,
                findings::RuleSet::Load(rules::DataSet(asker.rules_dir)));
  if (options.rules || !options.explain.empty()) return Show(*rules, options);
  if (!options.check.empty()) return Check(rules, options.check, asker);
  if (options.traces.empty())
    return Fail(UsageError("no trace is given", "⟨lamina⟩ diagnose TRACE"));
  LAMINA_ASSIGN(const auto checks, ParseFailOn(options, *rules));
  LAMINA_ASSIGN(findings::Options run,
                RunOptions(options, TakeRules(asker.only), *rules));
  LAMINA_TRY(UseSuppressions(options, run, asker));
  LAMINA_ASSIGN(const auto files, FilesOf(options.traces));
  findings::Diagnosis diagnosis;
  {
    const ScopedStage stage(&asker.times, "diagnose");
    run.times = &asker.times;
    LAMINA_ASSIGN(diagnosis,
                  DiagnoseAll(files, asker, rules, run, options.device));
  }
  if (run.only.empty())
    WarnOfUnused(run.suppressions, *rules, diagnosis, asker);
  Answer answer;
  answer.misses = Hits(checks, diagnosis, options.abstain == "fail");
  answer.failed = !answer.misses.empty();
  if (!options.all) {
    std::erase_if(diagnosis.findings, [](const findings::Finding& f) {
      return f.small || f.suppressed;
    });
  }
  Document& document = answer.document;
  document.command = "diagnose";
  document.inputs = options.traces;
  document.inputs.insert(document.inputs.end(), asker.captures.begin(),
                         asker.captures.end());
  document.result = findings::Tables(diagnosis);
  // On a terminal the first screen: the findings; files hold all tables.
  if (asker.for_screen() && asker.only.empty()) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() != "findings" || table.rows() == 0;
    });
  }
  const auto form =
      [shown =
           std::make_shared<const findings::Diagnosis>(std::move(diagnosis)),
       rules, inputs = options.traces](std::string (*make)(
          const findings::Diagnosis&, const std::vector<std::string>&)) {
        return [shown, rules, inputs, make] { return make(*shown, inputs); };
      };
  answer.forms = {{"sarif", form(&findings::ToSarif)},
                  {"json", form(&findings::ToJson)},
                  {"markdown", form(&findings::ToMarkdown)}};
  return answer;
}

}  // namespace

Body DescribeDiagnose(Description& args, Asker& asker) {
  auto options = std::make_shared<DiagnoseOptions>();
  args.Add("traces", options->traces,
           "Trace file; or those of several ranks, or a folder of them");
  args.Add("--category", options->categories,
           "Run only rules of these categories")
      .SplitAtCommas();
  args.Add("--min-share", options->min_share,
           "Percent of the window below which a finding is only counted")
      .Within(0, 100)
      .ShowDefault();
  args.Flag("--all", options->all, "Small and suppressed findings, too");
  args.Add("--param", options->params,
           "RULE.NAME=NUMBER: another threshold; may be repeated")
      .OneWord();
  args.Add("--suppress", options->suppress,
           "File of findings that are known (default: .lamina-findings.yaml "
           "beside the trace or above it)");
  args.Add("--fail-on", options->fail_on,
           "RULE[:PERCENT]: exit status 1 when such a finding is there "
           "(any:5 for all)")
      .SplitAtCommas();
  args.Add("--abstain", options->abstain,
           "Whether ⟨fail_on⟩ fails when its rule could not look")
      .OneOf({"fail", "ok"})
      .ShowDefault();
  args.Add("--device", options->device,
           "Device for rooflines: a name (⟨lamina⟩ list devices) or a "
           "file (default: what the trace says)");
  args.Add("--explain", options->explain,
           "Says what a rule looks for, and why so");
  args.Add("--check", options->check,
           "Check the rules against their examples, traces of this folder "
           "(bench/diagnose --write DIR makes those of the built-in rules)");
  args.Flag("--list-rules", options->rules, "Lists all rules");
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args);
  return [options, &asker] { return RunDiagnose(*options, asker); };
}

}  // namespace lamina::questions
