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
       {"unit_a_us", ColumnType::kTime,
        "Gain in a step or pass of the first; empty: it has none.",
        Shown::kHidden},
       {"unit_b_us", ColumnType::kTime, "The same of the second.",
        Shown::kHidden},
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

// Two recordings, and how their times can be held against each other.
struct Scale {
  const Diagnosis& first;
  const Diagnosis& second;
  std::array<size_t, 2> units{};

  bool by_unit() const { return units[0] > 1 && units[1] > 1; }
  double PerUnit(int64_t ns, size_t side) const {
    return by_unit()
               ? static_cast<double>(ns) / static_cast<double>(units[side])
               : static_cast<double>(ns);
  }
  // Change of the time of a finding, as a share of the first window, or of its
  // unit. A longer recording has longer waits, and smaller shares.
  double ChangeOf(const Pair& pair) const {
    const auto time = [&](const Finding* f, const Diagnosis& d, size_t side) {
      return f == nullptr ? 0.0 : f->share * PerUnit(d.window_ns, side);
    };
    const double whole = PerUnit(first.window_ns, 0);
    return whole == 0
               ? 0
               : (time(pair.b, second, 1) - time(pair.a, first, 0)) / whole;
  }
};

std::string_view ChangeOf(const Pair& pair, const Scale& scale) {
  const double before = pair.a == nullptr ? 0 : pair.a->share;
  const auto sign = [&](double change) {
    const bool large = std::abs(change) > kLeastChange &&
                       std::abs(change) > kLeastRatio * before;
    return !large ? 0 : change < 0 ? -1 : 1;
  };
  int way = sign(scale.ChangeOf(pair));
  if (!scale.by_unit() && pair.a != nullptr && pair.b != nullptr &&
      way != sign(pair.b->share - before))
    way = 0;
  // A finding that is small by now is fixed only if its time is less.
  if (!Counts(pair.b) && (pair.b == nullptr || pair.b->gain_ns == 0 || way < 0))
    return Looked(scale.second, pair.a->rule) ? "fixed" : "lost_sight";
  if (!Counts(pair.a) && (pair.a == nullptr || pair.a->gain_ns == 0 || way > 0))
    return Looked(scale.first, pair.b->rule) ? "new" : "unseen";
  return way < 0 ? "better" : way > 0 ? "worse" : "same";
}

}  // namespace

ResultSet Compare(const Diagnosis& first, const Diagnosis& second,
                  const std::array<size_t, 2>& units) {
  const Scale scale = {first, second, units};
  std::map<std::string, Pair> pairs;
  for (const Finding& f : first.findings) pairs[f.id].a = &f;
  for (const Finding& f : second.findings) pairs[f.id].b = &f;
  std::vector<Pair> sorted;
  for (const auto& [id, pair] : pairs) {
    if (Counts(pair.a) || Counts(pair.b)) sorted.push_back(pair);
  }
  const auto change = [&](const Pair& p) {
    return std::abs(scale.ChangeOf(p));
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
    const std::string_view what = ChangeOf(pair, scale);
    if (what == "fixed") {
      ++fixed;
      predicted += pair.a->gain_ns;
    }
    const auto time = [](const Finding* g, int64_t Finding::*member) {
      return g == nullptr ? Value() : Value(g->*member);
    };
    const auto unit = [&](const Finding* g, size_t side) {
      return g == nullptr || !scale.by_unit()
                 ? Value()
                 : Value(std::llround(scale.PerUnit(g->gain_ns, side)));
    };
    const auto share = [](const Finding* g) {
      return g == nullptr ? Value() : Value(100 * g->share);
    };
    table.Add(what, f.rule->title, time(pair.a, &Finding::gain_ns),
              time(pair.b, &Finding::gain_ns), share(pair.a), share(pair.b),
              time(pair.a, &Finding::owned_ns),
              time(pair.b, &Finding::owned_ns), unit(pair.a, 0),
              unit(pair.b, 1), f.id);
  }
  const auto per_unit = [&](int64_t ns, size_t side) {
    return HumanTime(std::llround(scale.PerUnit(ns, side)));
  };
  const double got =
      scale.PerUnit(first.window_ns, 0) - scale.PerUnit(second.window_ns, 1);
  std::string text =
      fmt::format("The window goes from {} to {}", HumanTime(first.window_ns),
                  HumanTime(second.window_ns));
  if (scale.by_unit()) {
    text += fmt::format(", a step or pass of it from {} to {}",
                        per_unit(first.window_ns, 0),
                        per_unit(second.window_ns, 1));
  }
  text +=
      fmt::format(". {} fixed: predicted {}{}, got {}.",
                  Counted(fixed, "finding"), per_unit(predicted, 0),
                  scale.by_unit() ? " each" : "", HumanTime(std::llround(got)));
  out.notes.push_back(MakeNote(Severity::kVerdict, "findings_changed", text,
                               {{"finding_changes", "", "", {}}}));
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace lamina::findings
