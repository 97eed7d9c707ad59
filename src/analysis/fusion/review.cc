// SPDX-License-Identifier: Apache-2.0
#include "analysis/fusion/review.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/escape.h"
#include "base/text.h"
#include "graph/count.h"
#include "graph/pattern/pattern.h"
#include "graph/target.h"

namespace lamina::fusion {
namespace {

using graph::DumpFile;
using graph::LogEntry;
using graph::Rule;

constexpr size_t kShownOps = 6;

// The counts of a dump that the questions ask for.
struct Facts {
  std::map<std::string, size_t> ops;
  size_t matches = 0;
  size_t without_metadata = 0;
  std::map<std::string, size_t> rejected;
};

class Reviewer {
 public:
  explicit Reviewer(const ReviewInput& input)
      : input_(input), rule_(*input.rule) {}

  Result<Review> Run() {
    LAMINA_TRY(ReadDumps());
    Structure();
    Listed();
    OffByDefault();
    Matches();
    Saved();
    Tested();
    Drift();
    OneChange();
    Contradictions();
    for (const Item& item : out_.items)
      out_.failed += item.answer == Answer::kFail;
    // What the dumps say against the expectation comes first.
    std::stable_partition(
        out_.items.begin(), out_.items.end(), [](const Item& item) {
          return item.id == "contradiction" && item.answer == Answer::kFail;
        });
    WriteNote();
    return std::move(out_);
  }

 private:
  void Add(std::string id, std::string question, Answer answer,
           std::string evidence) {
    out_.items.push_back(
        {std::move(id), std::move(question), answer, std::move(evidence)});
  }

  Result<Facts> Look(const DumpFile& file) const {
    LAMINA_ASSIGN(const graph::Dump dump, graph::ReadDump(file.path));
    Facts out;
    CensusOptions options = input_.census;
    options.rules.clear();
    graph::RuleSet one;
    one.rules.push_back(rule_);
    for (const graph::Graph& graph : dump.graphs) {
      for (const auto& [op, count] : graph::OpCounts(graph))
        out.ops[std::string(op)] += count;
      const GraphCensus census = TakeCensus(graph, one, options);
      out.without_metadata += census.metadata.size();
      for (const RuleCount& count : census.rules) {
        out.matches += count.matches;
        for (const auto& [reason, number] : count.rejected)
          out.rejected[reason] += number;
      }
    }
    return out;
  }

  // The dump of the transform itself, and the last one in front of it by the
  // order of the log, or of the numbers.
  static const DumpFile* Own(const fusion::Run& run, const std::string& name) {
    for (const DumpFile& file : run.files) {
      if (file.transform == name) return &file;
    }
    return nullptr;
  }
  static const DumpFile* InFront(const fusion::Run& run,
                                 const std::string& name) {
    const DumpFile* const own = Own(run, name);
    const LogEntry* const entry = run.log ? run.log->Find(name) : nullptr;
    const DumpFile* best = nullptr;
    for (const DumpFile& file : run.files) {
      if (own != nullptr) {
        if (file.number < own->number) best = &file;
        continue;
      }
      const LogEntry* const wrote =
          run.log ? run.log->Find(file.transform) : nullptr;
      if (entry != nullptr && wrote != nullptr && wrote < entry) best = &file;
    }
    return best;
  }

  Status ReadDumps() {
    in_front_ = InFront(input_.after, rule_.name);
    if (in_front_ == nullptr && !input_.after.files.empty() &&
        Own(input_.after, rule_.name) == nullptr)
      in_front_ = &input_.after.files.back();
    if (in_front_ != nullptr) {
      LAMINA_ASSIGN(front_, Look(*in_front_));
    }
    own_ = Own(input_.after, rule_.name);
    if (own_ != nullptr) {
      LAMINA_ASSIGN(done_, Look(*own_));
    }
    if (!input_.before.files.empty()) {
      LAMINA_ASSIGN(last_before_, Look(input_.before.files.back()));
    }
    if (!input_.after.files.empty()) {
      LAMINA_ASSIGN(last_after_, Look(input_.after.files.back()));
    }
    return {};
  }

  const LogEntry* LogBefore() const {
    return input_.before.log ? input_.before.log->Find(rule_.name) : nullptr;
  }
  const LogEntry* LogAfter() const {
    return input_.after.log ? input_.after.log->Find(rule_.name) : nullptr;
  }

  static std::string Said(const LogEntry* entry) {
    if (entry == nullptr) return "not in the log";
    if (entry->status != graph::TransformStatus::kApplied)
      return std::string(graph::Name(entry->status));
    return fmt::format("{} matches", entry->matches.value_or(0));
  }

  std::string Tally() const {
    std::string out;
    for (const auto& [reason, count] : front_.rejected)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, reason);
    return out.empty() ? "nothing nearly matches" : "rejected: " + out;
  }

  void Structure() {
    const std::string question = "The structure is in the current dumps";
    if (in_front_ == nullptr) {
      Add("structure", question, Answer::kUnknown, "no dump in front of it");
      return;
    }
    if (rule_.alternatives.empty()) {
      Add("structure", question, Answer::kUnknown,
          "the rule has no pattern: " + rule_.limits);
      return;
    }
    Add("structure", question,
        front_.matches > 0 ? Answer::kPass : Answer::kFail,
        fmt::format("{} matches in {}{}", front_.matches, in_front_->name,
                    front_.matches > 0 ? "" : "; " + Tally()));
  }

  void Listed() {
    const std::string question = "Registered, and listed like its peers";
    if (input_.config == nullptr) {
      Add("listed", question, Answer::kUnknown, "no --config");
      return;
    }
    const graph::TransformConfig* const own = input_.config->Find(rule_.name);
    if (own == nullptr) {
      Add("listed", question, Answer::kFail, "not in the configuration");
      return;
    }
    // Fields that every other transform of the stage has.
    std::optional<std::set<std::string>> common;
    for (const graph::TransformConfig& peer : input_.config->transforms) {
      if (&peer == own || peer.stage != own->stage) continue;
      const std::set<std::string> fields(peer.fields.begin(),
                                         peer.fields.end());
      if (!common) {
        common = fields;
        continue;
      }
      std::set<std::string> both;
      std::set_intersection(common->begin(), common->end(), fields.begin(),
                            fields.end(), std::inserter(both, both.begin()));
      common = std::move(both);
    }
    std::string missing;
    for (const std::string& field : common.value_or(std::set<std::string>())) {
      if (std::find(own->fields.begin(), own->fields.end(), field) ==
          own->fields.end())
        missing += (missing.empty() ? "" : ", ") + field;
    }
    std::string evidence = "stage " + own->stage;
    if (!missing.empty()) evidence += "; its peers also have: " + missing;
    Answer answer = missing.empty() ? Answer::kPass : Answer::kFail;
    if (own->stage != rule_.stage) {
      answer = Answer::kFail;
      evidence += "; the rule says stage " + rule_.stage;
    }
    if (input_.tree != nullptr) {
      const Mention* const made =
          input_.tree->Find(rule_.name, Mention::Kind::kTransform);
      evidence += made == nullptr ? "; not registered in the tree"
                                  : fmt::format("; registered at {}:{}",
                                                made->file, made->line);
      if (made == nullptr) answer = Answer::kFail;
    }
    Add("listed", question, answer, evidence);
  }

  void OffByDefault() {
    const std::string question =
        "Off by default while experimental, model toggles intended";
    if (input_.config == nullptr) {
      Add("off_by_default", question, Answer::kUnknown, "no --config");
      return;
    }
    const graph::TransformConfig* const own = input_.config->Find(rule_.name);
    if (own == nullptr) {
      Add("off_by_default", question, Answer::kUnknown,
          "not in the configuration");
      return;
    }
    const bool overlaid =
        std::find(input_.overlays.begin(), input_.overlays.end(),
                  own->enabled_in) != input_.overlays.end();
    if (overlaid) {
      Add("off_by_default", question, Answer::kPass,
          fmt::format("{} by the overlay {}",
                      own->enabled ? "enabled" : "disabled", own->enabled_in));
      return;
    }
    const bool known_on = rule_.default_state == graph::DefaultState::kOn;
    Add("off_by_default", question,
        !own->enabled || known_on ? Answer::kPass : Answer::kFail,
        !own->enabled ? "enabled: false in the base file"
        : known_on    ? "an established transform, on by default"
                      : "enabled in the base file");
  }

  void Matches() {
    const std::string question = "Matches are as expected, or explained";
    const LogEntry* const entry = LogAfter();
    if (entry == nullptr) {
      Add("matches", question, Answer::kUnknown, "not in the log");
      return;
    }
    const int64_t logged = entry->matches.value_or(0);
    std::string evidence = "log: " + Said(entry);
    if (in_front_ == nullptr || rule_.alternatives.empty()) {
      Add("matches", question, logged > 0 ? Answer::kPass : Answer::kUnknown,
          evidence);
      return;
    }
    evidence += fmt::format("; dump: {}", front_.matches);
    const bool equal = logged == static_cast<int64_t>(front_.matches);
    if (logged == 0) evidence += "; " + Tally();
    Add("matches", question,
        equal && (logged > 0 || !front_.rejected.empty() || front_.matches == 0)
            ? (logged > 0 ? Answer::kPass : Answer::kUnknown)
            : Answer::kFail,
        evidence);
  }

  void Saved() {
    const std::string question = "Dumps before and after are saved";
    const bool both = in_front_ != nullptr && own_ != nullptr;
    std::string evidence;
    if (in_front_ != nullptr) evidence = in_front_->name;
    if (own_ != nullptr)
      evidence += (evidence.empty() ? "" : ", ") + own_->name;
    Add("saved", question, both ? Answer::kPass : Answer::kFail,
        both ? evidence : "found: " + (evidence.empty() ? "none" : evidence));
  }

  void Tested() {
    const std::string question = "A match and an intended non-match are tested";
    if (input_.tree == nullptr) {
      Add("tested", question, Answer::kUnknown, "no --tree");
      return;
    }
    std::set<std::string> ops(rule_.produces.begin(), rule_.produces.end());
    std::string test;
    bool negative = false;
    for (const Mention& mention : input_.tree->mentions) {
      if (mention.kind != Mention::Kind::kTest) continue;
      const bool ours =
          ops.contains(mention.name) || Contains(mention.name, rule_.name);
      if (!ours) continue;
      if (test.empty()) test = fmt::format("{}:{}", mention.file, mention.line);
      for (const std::string_view word :
           {"not_", "no_match", "multi", "two_", "mixed", "negative", "skip"})
        negative |= Contains(mention.name, word);
    }
    if (test.empty()) {
      Add("tested", question, Answer::kFail, "no test names it");
      return;
    }
    Add("tested", question, negative ? Answer::kPass : Answer::kUnknown,
        test + (negative ? "" : "; no test of a non-match by its name"));
  }

  void Drift() {
    const std::string question = "Drift of the result is classified";
    if (input_.before.files.empty() || input_.after.files.empty()) {
      Add("drift", question, Answer::kUnknown, "dumps of two runs are needed");
      return;
    }
    const LogEntry* const a = LogBefore();
    const LogEntry* const b = LogAfter();
    const bool lost = a != nullptr && b != nullptr &&
                      b->matches.value_or(0) < a->matches.value_or(0);
    if (lost) {
      Add("drift", question, Answer::kFail,
          fmt::format("match loss: {} -> {}; {}", Said(a), Said(b), Tally()));
      return;
    }
    if (last_after_.without_metadata > last_before_.without_metadata) {
      Add("drift", question, Answer::kFail,
          fmt::format("metadata loss: {} nodes without shape, {} before",
                      last_after_.without_metadata,
                      last_before_.without_metadata));
      return;
    }
    Add("drift", question, Answer::kPass,
        "no match and no metadata lost; numerics are not visible in dumps");
  }

  // Ops that the rule names on either side.
  bool IsOurs(std::string_view op) const {
    const auto fits = [&](const std::string& target) {
      return graph::MatchesTarget(op, target);
    };
    if (std::any_of(rule_.produces.begin(), rule_.produces.end(), fits))
      return true;
    for (const auto* list : {&rule_.alternatives, &rule_.rewrites}) {
      for (const graph::Alternative& alternative : *list) {
        for (const graph::PatternLine& line : alternative.pattern.lines) {
          if (std::any_of(line.targets.begin(), line.targets.end(), fits))
            return true;
        }
        for (const graph::Statement& line : alternative.after) {
          for (const std::string& target : line.targets) {
            if (graph::MatchesTarget(op, target)) return true;
          }
        }
      }
    }
    // Results are taken apart by items; that belongs to any replacement.
    return op == "builtin.getitem" || graph::IsCast(op);
  }

  void OneChange() {
    const std::string question = "One change per patch";
    if (own_ == nullptr || in_front_ == nullptr) {
      Add("one_change", question, Answer::kUnknown, "dumps are missing");
      return;
    }
    std::set<std::string> names;
    for (const auto& [op, count] : front_.ops) names.insert(op);
    for (const auto& [op, count] : done_.ops) names.insert(op);
    std::vector<std::string> others;
    std::vector<std::string> changed;
    for (const std::string& op : names) {
      const auto count = [&](const Facts& facts) {
        const auto found = facts.ops.find(op);
        return found == facts.ops.end() ? int64_t{0}
                                        : static_cast<int64_t>(found->second);
      };
      const int64_t by = count(done_) - count(front_);
      if (by == 0) continue;
      const std::string text = fmt::format("{} {:+}", op, by);
      changed.push_back(text);
      if (!IsOurs(op)) others.push_back(text);
    }
    const std::vector<std::string>& shown = others.empty() ? changed : others;
    std::string evidence = others.empty() ? "" : "others: ";
    for (size_t i = 0; i < shown.size() && i < kShownOps; ++i)
      evidence += (i > 0 ? ", " : "") + shown[i];
    if (shown.size() > kShownOps)
      evidence += fmt::format(", {} more", shown.size() - kShownOps);
    changes_ = evidence;
    Add("one_change", question, others.empty() ? Answer::kPass : Answer::kFail,
        evidence.empty() ? "no op count changed" : evidence);
  }

  void Contradictions() {
    const std::string question = "Dumps and log do not contradict each other";
    const LogEntry* const entry = LogAfter();
    if (entry == nullptr || own_ == nullptr || in_front_ == nullptr) {
      Add("contradiction", question, Answer::kUnknown,
          "log or dumps are missing");
      return;
    }
    const int64_t logged = entry->matches.value_or(0);
    const bool changed = front_.ops != done_.ops;
    std::string evidence;
    if (logged > 0 && !changed)
      evidence =
          fmt::format("the log counts {}, and no op count changed", logged);
    if (logged == 0 && changed)
      evidence = "the log counts nothing, and ops changed";
    if (!rule_.alternatives.empty() &&
        logged != static_cast<int64_t>(front_.matches)) {
      evidence +=
          fmt::format("{}the log counts {}, the dump holds {}",
                      evidence.empty() ? "" : "; ", logged, front_.matches);
    }
    Add("contradiction", question,
        evidence.empty() ? Answer::kPass : Answer::kFail,
        evidence.empty() ? "log and dumps agree" : evidence);
  }

  const Item& Of(std::string_view id) const {
    return *std::find_if(out_.items.begin(), out_.items.end(),
                         [&](const Item& item) { return item.id == id; });
  }

  void WriteNote() {
    std::string& note = out_.note;
    const bool existing = !rule_.produces.empty();
    note += fmt::format("Candidate: {}\n", rule_.name);
    note +=
        fmt::format("Path: {}\n", existing ? "existing_kernel_path" : "other");
    note += fmt::format("Rationale:\n- {}\n", rule_.title);
    if (!rule_.saves.empty()) note += fmt::format("- saves {}\n", rule_.saves);
    const bool valid = Of("structure").answer != Answer::kFail &&
                       Of("one_change").answer != Answer::kFail &&
                       Of("contradiction").answer != Answer::kFail;
    note += fmt::format("Graph validation: {}", valid ? "pass" : "fail");
    if (own_ != nullptr) note += " - " + own_->name;
    if (!changes_.empty()) note += ": " + changes_;
    note += "\n";
    note += fmt::format("Summary logs: {} before, {} after\n",
                        Said(LogBefore()), Said(LogAfter()));
    note += fmt::format("Tests: {}\n", Of("tested").evidence);
    note += "Open risks:\n";
    bool any = false;
    for (const Item& item : out_.items) {
      if (item.answer == Answer::kPass) continue;
      any = true;
      note += fmt::format("- {}: {} ({})\n", item.question, Name(item.answer),
                          item.evidence);
    }
    for (const std::string& guard : rule_.HiddenGuards()) {
      any = true;
      note += fmt::format("- guard {} does not show in a dump\n", guard);
    }
    if (!any) note += "- none known\n";
    note +=
        "Next, in this order: dumps, unit tests, integration or accuracy.\n";
  }

  const ReviewInput& input_;
  const Rule& rule_;
  const DumpFile* in_front_ = nullptr;
  const DumpFile* own_ = nullptr;
  Facts front_;
  Facts done_;
  Facts last_before_;
  Facts last_after_;
  std::string changes_;
  Review out_;
};

}  // namespace

std::string_view Name(Answer answer) {
  switch (answer) {
    case Answer::kPass:
      return "pass";
    case Answer::kFail:
      return "fail";
    case Answer::kUnknown:
      return "unknown";
  }
  return {};
}

Result<Review> ReviewFusion(const ReviewInput& input) {
  return Reviewer(input).Run();
}

ResultSet ReviewTables(const Review& review) {
  ResultSet out;
  Table table({"review",
               "The questions of a review, with evidence.",
               {{"item", ColumnType::kText, "Short name.", Shown::kHidden},
                {"question", ColumnType::kText, "What is asked."},
                {"answer", ColumnType::kText, "pass, fail or unknown."},
                {"evidence", ColumnType::kText, "What says so."}}});
  for (const Item& item : review.items)
    table.Add(item.id, item.question, Name(item.answer), item.evidence);
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace lamina::fusion
