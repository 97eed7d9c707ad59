// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/review.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/text.h"
#include "graph/fusion/review_facts.h"
#include "graph/fusion/review_tests.h"
#include "table/row_columns.h"

namespace lamina::fusion {
namespace {

using graph::LogEntry;
using graph::Rule;

constexpr size_t kShownOps = 6;

class Reviewer {
 public:
  explicit Reviewer(const ReviewInput& input)
      : input_(input), rule_(*input.rule) {}

  Result<Review> Run() {
    LAMINA_ASSIGN(facts_, ReadFacts(input_));
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
    out_.note = ReviewNote(rule_, facts_, out_.items, changes_,
                           PathOf(rule_, input_.tree));
    return std::move(out_);
  }

 private:
  void Add(std::string id, std::string question, Answer answer,
           std::string evidence) {
    out_.items.push_back(
        {std::move(id), std::move(question), answer, std::move(evidence)});
  }

  std::string Tally() const {
    std::string out;
    for (const auto& [reason, count] : facts_.front.rejected)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, reason);
    return out.empty() ? "nothing nearly matches" : "rejected: " + out;
  }

  void Structure() {
    const std::string question = "The structure is in the current dumps";
    if (facts_.in_front == nullptr) {
      Add("structure", question, Answer::kUnknown, "no dump in front of it");
      return;
    }
    if (rule_.alternatives.empty()) {
      Add("structure", question, Answer::kUnknown,
          "the rule has no pattern: " + rule_.limits);
      return;
    }
    Add("structure", question,
        facts_.front.matches > 0 ? Answer::kPass : Answer::kFail,
        fmt::format("{} matches in {}{}", facts_.front.matches,
                    facts_.in_front->name,
                    facts_.front.matches > 0 ? "" : "; " + Tally()));
  }

  void Listed() {
    const std::string question = "Registered, and listed like its peers";
    if (input_.config == nullptr) {
      Add("listed", question, Answer::kUnknown, "no configuration is given");
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
      Add("off_by_default", question, Answer::kUnknown,
          "no configuration is given");
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
    const LogEntry* const entry = facts_.log_after;
    if (entry == nullptr) {
      Add("matches", question, Answer::kUnknown, "not in the log");
      return;
    }
    const int64_t logged = entry->matches.value_or(0);
    std::string evidence = "log: " + SaidOf(entry);
    if (facts_.in_front == nullptr || rule_.alternatives.empty()) {
      Add("matches", question, logged > 0 ? Answer::kPass : Answer::kUnknown,
          evidence);
      return;
    }
    evidence += fmt::format("; dump: {}", facts_.front.matches);
    const bool equal = logged == static_cast<int64_t>(facts_.front.matches);
    if (logged == 0) evidence += "; " + Tally();
    Add("matches", question,
        equal && (logged > 0 || !facts_.front.rejected.empty() ||
                  facts_.front.matches == 0)
            ? (logged > 0 ? Answer::kPass : Answer::kUnknown)
            : Answer::kFail,
        evidence);
  }

  void Saved() {
    const std::string question = "Dumps before and after are saved";
    if (facts_.same_run) {
      Add("saved", question, Answer::kFail,
          "before and after are the same run");
      return;
    }
    const bool both = facts_.in_front != nullptr && facts_.own != nullptr;
    std::string evidence;
    if (facts_.in_front != nullptr) evidence = facts_.in_front->name;
    if (facts_.own != nullptr)
      evidence += (evidence.empty() ? "" : ", ") + facts_.own->name;
    Add("saved", question, both ? Answer::kPass : Answer::kFail,
        both ? evidence : "found: " + (evidence.empty() ? "none" : evidence));
  }

  void Tested() {
    const std::string question = "A match and an intended non-match are tested";
    if (input_.tree == nullptr) {
      Add("tested", question, Answer::kUnknown, "no tree is given");
      return;
    }
    const TestJudgement tests = JudgeTests(*input_.tree, rule_);
    if (tests.named.empty()) {
      Add("tested", question, Answer::kFail, "no test names it");
      return;
    }
    const bool both = !tests.positive.empty() && !tests.negative.empty();
    std::string evidence =
        tests.positive.empty()
            ? tests.named + " names it; no assert of a match was understood"
            : "a match at " + tests.positive;
    if (!tests.negative.empty()) {
      evidence += "; none at " + tests.negative;
    } else if (!tests.unrelated.empty()) {
      evidence += "; unrelated: " + tests.unrelated +
                  " asserts none on something far from the pattern";
    } else {
      evidence += "; no assert that nothing matches";
    }
    Add("tested", question, both ? Answer::kPass : Answer::kUnknown, evidence);
  }

  void Drift() {
    const std::string question = "Drift of the result is classified";
    if (input_.before.files.empty() || input_.after.files.empty()) {
      Add("drift", question, Answer::kUnknown, "dumps of two runs are needed");
      return;
    }
    if (facts_.same_run) {
      Add("drift", question, Answer::kFail,
          "before and after are the same run");
      return;
    }
    const LogEntry* const a = facts_.log_before;
    const LogEntry* const b = facts_.log_after;
    const bool lost = a != nullptr && b != nullptr &&
                      b->matches.value_or(0) < a->matches.value_or(0);
    if (lost) {
      Add("drift", question, Answer::kFail,
          fmt::format("match loss: {} -> {}; {}", SaidOf(a), SaidOf(b),
                      Tally()));
      return;
    }
    if (facts_.last_after.without_metadata >
        facts_.last_before.without_metadata) {
      Add("drift", question, Answer::kFail,
          fmt::format("metadata loss: {} nodes without shape, {} before",
                      facts_.last_after.without_metadata,
                      facts_.last_before.without_metadata));
      return;
    }
    Add("drift", question, Answer::kPass,
        "no match and no metadata lost; numerics are not visible in dumps");
  }

  void OneChange() {
    const std::string question = "One change per patch";
    if (facts_.own == nullptr || facts_.in_front == nullptr) {
      Add("one_change", question, Answer::kUnknown, "dumps are missing");
      return;
    }
    std::set<std::string> names;
    for (const auto& [op, count] : facts_.front.ops) names.insert(op);
    for (const auto& [op, count] : facts_.done.ops) names.insert(op);
    std::vector<std::string> others;
    std::vector<std::string> changed;
    for (const std::string& op : names) {
      const auto count = [&](const DumpFacts& facts) {
        const auto found = facts.ops.find(op);
        return found == facts.ops.end() ? int64_t{0}
                                        : static_cast<int64_t>(found->second);
      };
      const int64_t by = count(facts_.done) - count(facts_.front);
      if (by == 0) continue;
      const std::string text = fmt::format("{} {:+}", op, by);
      changed.push_back(text);
      if (!IsNamedBy(rule_, op)) others.push_back(text);
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
    const LogEntry* const entry = facts_.log_after;
    if (entry == nullptr || facts_.own == nullptr ||
        facts_.in_front == nullptr) {
      Add("contradiction", question, Answer::kUnknown,
          "log or dumps are missing");
      return;
    }
    const int64_t logged = entry->matches.value_or(0);
    const bool changed = facts_.front.ops != facts_.done.ops;
    std::string evidence;
    if (logged > 0 && !changed)
      evidence =
          fmt::format("the log counts {}, and no op count changed", logged);
    if (logged == 0 && changed)
      evidence = "the log counts nothing, and ops changed";
    if (!rule_.alternatives.empty() &&
        logged != static_cast<int64_t>(facts_.front.matches)) {
      evidence += fmt::format("{}the log counts {}, the dump holds {}",
                              evidence.empty() ? "" : "; ", logged,
                              facts_.front.matches);
    }
    Add("contradiction", question,
        evidence.empty() ? Answer::kPass : Answer::kFail,
        evidence.empty() ? "log and dumps agree" : evidence);
  }

  const ReviewInput& input_;
  const Rule& rule_;
  ReviewFacts facts_;
  std::string changes_;
  Review out_;
};

struct ReviewRow {
  std::string_view item, question, answer, evidence;
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
  const RowColumns<ReviewRow> columns{
      "review",
      "The questions of a review, with evidence.",
      {{"item", ColumnType::kText, "Short name.", &ReviewRow::item,
        Shown::kHidden},
       {"question", ColumnType::kText, "What is asked.", &ReviewRow::question},
       {"answer", ColumnType::kText, "pass, fail or unknown.",
        &ReviewRow::answer},
       {"evidence", ColumnType::kText, "What says so.", &ReviewRow::evidence}}};
  Table table(columns.schema());
  for (const Item& item : review.items)
    columns.Add(table, {.item = item.id,
                        .question = item.question,
                        .answer = Name(item.answer),
                        .evidence = item.evidence});
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace lamina::fusion
