// SPDX-License-Identifier: Apache-2.0
#include "findings/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/counted.h"
#include "base/decimal.h"

namespace lamina::findings {
namespace {

constexpr double kLeastChange = 0.01;  // of the window
constexpr double kLeastRatio = 0.1;

Schema ChangesSchema() {
  return {
      "finding_changes",
      "Findings of two recordings, those that changed most first.",
      {{"change", ColumnType::kText,
        "fixed, new, better, worse, same, lost_sight (could not look any "
        "more) or unseen (could not look before)."},
       {"finding", ColumnType::kText, "Title of the rule."},
       {"gain_a_us", ColumnType::kTime, "Gain in the first."},
       {"gain_b_us", ColumnType::kTime, "Gain in the second."},
       {"share_a_percent", ColumnType::kReal, "Of the first window.",
        Shown::kPercent},
       {"share_b_percent", ColumnType::kReal, "Of the second window.",
        Shown::kPercent},
       {"owned_a_us", ColumnType::kTime, "Time that it owned.", Shown::kHidden},
       {"owned_b_us", ColumnType::kTime, "Time that it owns.", Shown::kHidden},
       {"id", ColumnType::kText, "Stable: rule@anchor."}}};
}

// Whether what a rule that was found says leaves no more than hints of another.
bool Blinds(const RuleRun& run, const Rule* other) {
  if (run.state != State::kFound && run.state != State::kSuppressed)
    return false;
  return std::any_of(
      run.rule->caps.begin(), run.rule->caps.end(), [&](const Cap& cap) {
        return cap.at == Confidence::kHint && Caps(*run.rule, cap, *other);
      });
}

// Whether the rule of a finding looked at the other recording, and could see.
bool Looked(const Diagnosis& d, const Rule* rule) {
  if (std::any_of(d.runs.begin(), d.runs.end(),
                  [&](const RuleRun& run) { return Blinds(run, rule); }))
    return false;
  for (const RuleRun& run : d.runs) {
    if (run.rule->id == rule->id)
      return run.state != State::kAbstained && run.state != State::kFailed;
  }
  return false;
}

struct Pair {
  const Finding* a = nullptr;
  const Finding* b = nullptr;
};

// Small findings stand for none, and so do lines of time that nothing explains:
// there is nothing in them that could be fixed.
bool Counts(const Finding* f) {
  return f != nullptr && !f->small && (f->gain_ns > 0 || f->open_ns == 0);
}

std::string_view ChangeOf(const Pair& pair, const Diagnosis& first,
                          const Diagnosis& second) {
  if (!Counts(pair.b))
    return Looked(second, pair.a->rule) ? "fixed" : "lost_sight";
  if (!Counts(pair.a)) return Looked(first, pair.b->rule) ? "new" : "unseen";
  const double change = pair.b->share - pair.a->share;
  if (std::abs(change) <= kLeastChange ||
      std::abs(change) <= kLeastRatio * pair.a->share)
    return "same";
  return change < 0 ? "better" : "worse";
}

}  // namespace

ResultSet Compare(const Diagnosis& first, const Diagnosis& second) {
  std::map<std::string, Pair> pairs;
  for (const Finding& f : first.findings) pairs[f.id].a = &f;
  for (const Finding& f : second.findings) pairs[f.id].b = &f;
  std::vector<Pair> sorted;
  for (const auto& [id, pair] : pairs) {
    if (Counts(pair.a) || Counts(pair.b)) sorted.push_back(pair);
  }
  const auto change = [](const Pair& p) {
    return std::abs((p.a == nullptr ? 0 : p.a->share) -
                    (p.b == nullptr ? 0 : p.b->share));
  };
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [&](const Pair& x, const Pair& y) { return change(x) > change(y); });
  ResultSet out;
  Table table(ChangesSchema());
  int64_t predicted = 0;
  uint64_t fixed = 0;
  for (const Pair& pair : sorted) {
    const Finding& f = pair.b != nullptr ? *pair.b : *pair.a;
    const std::string_view what = ChangeOf(pair, first, second);
    if (what == "fixed") {
      ++fixed;
      predicted += pair.a->gain_ns;
    }
    const auto time = [](const Finding* g, int64_t Finding::*member) {
      return g == nullptr ? Value() : Value(g->*member);
    };
    const auto share = [](const Finding* g) {
      return g == nullptr ? Value() : Value(100 * g->share);
    };
    table.Add(what, f.rule->title, time(pair.a, &Finding::gain_ns),
              time(pair.b, &Finding::gain_ns), share(pair.a), share(pair.b),
              time(pair.a, &Finding::owned_ns),
              time(pair.b, &Finding::owned_ns), f.id);
  }
  out.notes.push_back(MakeNote(
      Severity::kVerdict, "findings_changed",
      fmt::format("The window goes from {} to {}. {} fixed: predicted {}, got "
                  "{}.",
                  HumanTime(first.window_ns), HumanTime(second.window_ns),
                  Counted(fixed, "finding"), HumanTime(predicted),
                  HumanTime(first.window_ns - second.window_ns)),
      {{"finding_changes", "", "", {}}}));
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace lamina::findings
