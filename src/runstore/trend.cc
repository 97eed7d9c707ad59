// SPDX-License-Identifier: Apache-2.0
#include "runstore/trend.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <numeric>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "compare/runs/match.h"
#include "compare/runs/series.h"
#include "table/row_columns.h"

namespace lamina::runstore {
namespace {

using runs::SeriesKind;
using runs::SeriesModel;
using runs::Shift;
using runs::Verdict;

constexpr size_t kFewestForNoise = 5;

using runs::PercentOf;

std::optional<std::string_view> TagOf(const Run& run, const char* name) {
  const auto tag = run.tags.find(name);
  if (tag == run.tags.end()) return std::nullopt;
  return tag->second;
}

// --- tables ---

struct TrendRow {
  std::string_view metric, key;
  size_t runs = 0;
  std::string_view kind;
  std::optional<double> noise = {}, slope = {}, last_against_first = {},
                        detectable = {};
  int64_t last_ns = 0;
};

const RowColumns<TrendRow>& TrendColumns() {
  static const RowColumns<TrendRow> columns{
      "trend",
      "Each series of runs: whether the program changed.",
      {{"metric", ColumnType::kText, "What is looked at.", &TrendRow::metric},
       {"key", ColumnType::kText,
        "Runs of one key form a series: model, device, ranks, element type and "
        "phases.",
        &TrendRow::key},
       {"runs", ColumnType::kInt, "Runs with a value.", &TrendRow::runs},
       {"kind", ColumnType::kText,
        "none; step: one change; steps: several; drift: slowly; unknown: fewer "
        "than 8 runs.",
        &TrendRow::kind},
       {"noise_percent", ColumnType::kReal,
        "What runs differ by anyway, one standard deviation.",
        &TrendRow::noise},
       {"slope_percent_per_run", ColumnType::kReal, "Of a drift, else 0.",
        &TrendRow::slope, Shown::kHidden},
       {"last_us", ColumnType::kTime, "Value of the newest run.",
        &TrendRow::last_ns},
       {"last_against_first_percent", ColumnType::kReal,
        "Median of the last 3 runs against that of the first 3.",
        &TrendRow::last_against_first},
       {"detectable_percent", ColumnType::kReal,
        "The least change in the middle that would have been found (power 80 "
        "%).",
        &TrendRow::detectable}}};
  return columns;
}

struct ChangeRow {
  std::string_view metric, key;
  size_t index = 0;
  std::string_view name, previous;
  std::optional<std::string_view> commit, previous_commit;
  double change = 0;
  std::optional<double> low = {}, high = {};
  std::string part = {}, env = {};
};

const RowColumns<ChangeRow>& ChangeColumns() {
  static const RowColumns<ChangeRow> columns{
      "trend_changes",
      "Where a series changed, and what changed with it.",
      {{"metric", ColumnType::kText, "What is looked at.", &ChangeRow::metric},
       {"key", ColumnType::kText, "Key of the series.", &ChangeRow::key,
        Shown::kHidden},
       {"index", ColumnType::kInt, "Number of the first run after, from 0.",
        &ChangeRow::index},
       {"name", ColumnType::kText, "The first run after.", &ChangeRow::name},
       {"previous", ColumnType::kText, "The last run before.",
        &ChangeRow::previous},
       {"commit", ColumnType::kText, "Of the first run after.",
        &ChangeRow::commit},
       {"previous_commit", ColumnType::kText, "Of the last run before.",
        &ChangeRow::previous_commit},
       {"change_percent", ColumnType::kReal,
        "Median of the runs after against that of the runs before.",
        &ChangeRow::change},
       {"low_percent", ColumnType::kReal, "The change is at least this.",
        &ChangeRow::low},
       {"high_percent", ColumnType::kReal, "The change is at most this.",
        &ChangeRow::high},
       {"part", ColumnType::kText,
        "Half of a layer and family of device work that changed most.",
        &ChangeRow::part},
       {"env", ColumnType::kText,
        "Tags and facts of the environment that changed there.",
        &ChangeRow::env}}};
  return columns;
}

struct PointRow {
  std::string_view metric, key;
  std::optional<size_t> index;
  std::string_view name;
  std::string recorded_at;
  std::optional<std::string_view> commit;
  std::optional<int64_t> value_ns;
  std::string_view flag, source;
};

const RowColumns<PointRow>& PointColumns() {
  static const RowColumns<PointRow> columns{
      "trend_points",
      "The runs of each series.",
      {{"metric", ColumnType::kText, "What is looked at.", &PointRow::metric},
       {"key", ColumnType::kText, "Key of the series.", &PointRow::key,
        Shown::kHidden},
       {"index", ColumnType::kInt, "Number in the series, from 0.",
        &PointRow::index},
       {"name", ColumnType::kText, "Name of the run.", &PointRow::name},
       {"recorded_at", ColumnType::kText,
        "When it was recorded, else added; UTC.", &PointRow::recorded_at},
       {"commit", ColumnType::kText, "Tag of the run.", &PointRow::commit},
       {"value_us", ColumnType::kTime, "Per unit.", &PointRow::value_ns},
       {"flag", ColumnType::kText,
        "single: far from the runs around it, which is no change; left: it has "
        "no such value.",
        &PointRow::flag},
       {"source", ColumnType::kText, "Its trace, where it was added.",
        &PointRow::source, Shown::kHidden}}};
  return columns;
}

struct VerdictRow {
  std::string_view metric, verdict, reason, run, since;
  std::optional<std::string_view> commit;
  size_t runs = 0, newest = 0, before = 0;
  std::optional<double> change = {}, low = {}, high = {}, noise = {};
  double threshold = 0;
};

const RowColumns<VerdictRow>& VerdictColumns() {
  static const RowColumns<VerdictRow> columns{
      "runs_verdict",
      "Whether the newest runs are worse than those before.",
      {{"metric", ColumnType::kText, "What is looked at.", &VerdictRow::metric},
       {"verdict", ColumnType::kText,
        "pass, fail, unknown, or suspect: one run alone is slower, so record "
        "it again.",
        &VerdictRow::verdict},
       {"reason", ColumnType::kText,
        "slower, not_slower, interval (it holds the limit), single_run, drift, "
        "few_runs, accepted (somebody decided so), or what stops the "
        "comparison with one run.",
        &VerdictRow::reason},
       {"run", ColumnType::kText, "The newest run.", &VerdictRow::run},
       {"since", ColumnType::kText,
        "First of the newest runs that are compared.", &VerdictRow::since},
       {"commit", ColumnType::kText, "Of that run.", &VerdictRow::commit},
       {"runs", ColumnType::kInt, "Runs of the series.", &VerdictRow::runs,
        Shown::kHidden},
       {"newest", ColumnType::kInt, "Newest runs that are compared.",
        &VerdictRow::newest},
       {"window", ColumnType::kInt, "Runs before, which they are held against.",
        &VerdictRow::before},
       {"change_percent", ColumnType::kReal,
        "Of the newest against the others.", &VerdictRow::change},
       {"low_percent", ColumnType::kReal, "The change is at least this.",
        &VerdictRow::low},
       {"high_percent", ColumnType::kReal, "The change is at most this.",
        &VerdictRow::high},
       {"threshold_percent", ColumnType::kReal, "The limit.",
        &VerdictRow::threshold},
       {"run_noise_percent", ColumnType::kReal,
        "What runs differ by anyway, one standard deviation.",
        &VerdictRow::noise}}};
  return columns;
}

// --- what changed with a series ---

using PartKey = std::pair<std::string, std::string>;

// Times of parts in the phase with most time, one for each run.
Result<std::map<PartKey, std::vector<double>>> PartsOf(
    Store& store, const std::vector<const Run*>& runs) {
  std::map<PartKey, std::vector<double>> out;
  for (size_t i = 0; i < runs.size(); ++i) {
    LAMINA_ASSIGN(const auto parts, store.PartsOf(runs[i]->id));
    const auto most = std::max_element(
        runs[i]->classes.begin(), runs[i]->classes.end(),
        [](const auto& x, const auto& y) { return x.share < y.share; });
    for (const runs::Part& part : parts) {
      if (most == runs[i]->classes.end() || part.phase != most->phase) continue;
      auto& values = out[{part.half, part.family}];
      values.resize(runs.size(), 0);
      values[i] = part.ns;
    }
  }
  return out;
}

// The part whose medians moved most, the way the whole did.
Result<std::string> PartThatMoved(Store& store, const Series& series,
                                  size_t from, size_t at, size_t to,
                                  bool more) {
  constexpr size_t kNear = 8;
  from = std::max(from, at - std::min(at, kNear));
  to = std::min(to, at + kNear);
  const std::vector<const Run*> runs(
      series.runs.begin() + static_cast<ptrdiff_t>(from),
      series.runs.begin() + static_cast<ptrdiff_t>(to));
  LAMINA_ASSIGN(const auto parts, PartsOf(store, runs));
  const auto before = static_cast<ptrdiff_t>(at - from);
  std::string moved;
  double most = 0;
  for (const auto& [key, values] : parts) {
    const double own = runs::Median({values.begin() + before, values.end()}) -
                       runs::Median({values.begin(), values.begin() + before});
    if ((more ? own : -own) <= most) continue;
    most = std::abs(own);
    moved = key.first.empty() ? key.second : key.first + "/" + key.second;
  }
  return moved;
}

void AddDifferences(const Tags& before, const Tags& after, std::string& out) {
  // These differ from run to run.
  constexpr std::string_view kOwn[] = {"commit", "job", "host", "time"};
  Tags all = before;
  all.insert(after.begin(), after.end());
  for (const auto& [name, any] : all) {
    if (std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn))
      continue;
    const auto value = [&name = name](const Tags& tags) {
      const auto found = tags.find(name);
      return found == tags.end() ? std::string("-") : found->second;
    };
    if (value(before) == value(after)) continue;
    out += fmt::format("{}{}: {} -> {}", out.empty() ? "" : "; ", name,
                       value(before), value(after));
  }
}

Result<std::vector<ChangeRow>> ChangesOf(Store& store, const Series& series,
                                         const SeriesModel& model) {
  std::vector<ChangeRow> rows;
  for (size_t k = 0; k < model.changes.size(); ++k) {
    const auto& [index, shift] = model.changes[k];
    const Run& after = *series.runs[index];
    const Run& before = *series.runs[index - 1];
    ChangeRow row{.metric = series.metric,
                  .key = series.key,
                  .index = index,
                  .name = after.name,
                  .previous = before.name,
                  .commit = TagOf(after, "commit"),
                  .previous_commit = TagOf(before, "commit"),
                  .change = PercentOf(shift.estimate)};
    if (shift.low) {
      row.low = PercentOf(*shift.low);
      row.high = PercentOf(*shift.high);
    }
    LAMINA_ASSIGN(
        row.part,
        PartThatMoved(store, series, k == 0 ? 0 : model.changes[k - 1].index,
                      index,
                      k + 1 < model.changes.size() ? model.changes[k + 1].index
                                                   : series.runs.size(),
                      shift.estimate > 0));
    AddDifferences(before.tags, after.tags, row.env);
    LAMINA_ASSIGN(const Tags own_before, store.EnvironmentOf(before.id));
    LAMINA_ASSIGN(const Tags own_after, store.EnvironmentOf(after.id));
    AddDifferences(own_before, own_after, row.env);
    rows.push_back(std::move(row));
  }
  return rows;
}

void AddPoints(const Series& series, const SeriesModel& model,
               std::vector<PointRow>& rows) {
  for (size_t i = 0; i < series.runs.size(); ++i) {
    const bool single =
        std::binary_search(model.single.begin(), model.single.end(), i);
    rows.push_back({.metric = series.metric,
                    .key = series.key,
                    .index = i,
                    .name = series.runs[i]->name,
                    .recorded_at = DateText(series.runs[i]->TimeNs()),
                    .commit = TagOf(*series.runs[i], "commit"),
                    .value_ns = std::llround(series.values[i]),
                    .flag = single ? "single" : "",
                    .source = series.runs[i]->source});
  }
  for (const Run* run : series.left) {
    rows.push_back({.metric = series.metric,
                    .key = series.key,
                    .index = std::nullopt,
                    .name = run->name,
                    .recorded_at = DateText(run->TimeNs()),
                    .commit = TagOf(*run, "commit"),
                    .value_ns = std::nullopt,
                    .flag = "left",
                    .source = run->source});
  }
}

std::string ChangeText(const ChangeRow& change, const Run& after) {
  std::string text = fmt::format(
      "takes {:.1f} % {} since {} ({}{}", std::abs(change.change),
      change.change > 0 ? "more" : "less",
      EscapeTerminal(std::string(change.name)),
      change.commit
          ? EscapeTerminal(std::string(change.commit->substr(0, 10))) + ", "
          : "",
      DateText(after.TimeNs()).substr(0, 10));
  if (change.low) {
    double low = std::abs(*change.low), high = std::abs(*change.high);
    if (low > high) std::swap(low, high);
    text += fmt::format("; between {:.1f} and {:.1f} %", low, high);
  }
  text += ")";
  if (!change.part.empty())
    text += "; most of it in " + EscapeTerminal(change.part);
  return text;
}

std::string SeriesText(const Series& series, const SeriesModel& model,
                       const std::vector<ChangeRow>& changes) {
  std::string text = EscapeTerminal(series.metric) + ": ";
  switch (model.kind) {
    case SeriesKind::kUnknown:
      return text + fmt::format(
                        "{} {} too few to tell a change from noise; 8 "
                        "are needed.",
                        Counted(series.runs.size(), "run"),
                        series.runs.size() == 1 ? "is" : "are");
    case SeriesKind::kNone:
      text +=
          fmt::format("no change in {}", Counted(series.runs.size(), "run"));
      if (model.detectable)
        text += fmt::format(" ({:.1f} % could be seen)",
                            PercentOf(*model.detectable));
      break;
    case SeriesKind::kDrift:
      text += fmt::format("{:.2f} % {} with each run, over {}",
                          std::abs(PercentOf(model.slope)),
                          model.slope > 0 ? "more" : "less",
                          Counted(series.runs.size(), "run"));
      break;
    case SeriesKind::kStep:
    case SeriesKind::kSteps:
      // The newest first: it is the one to act on.
      for (size_t k = changes.size(); k-- > 0;) {
        text += ChangeText(changes[k], *series.runs[changes[k].index]);
        if (k > 0) text += "; earlier: ";
      }
      break;
  }
  return text + fmt::format("; noise {:.1f} % from run to run.",
                            PercentOf(*model.noise));
}

}  // namespace

Result<std::vector<Series>> SeriesOf(Store& store, const std::string& metric,
                                     const std::vector<Run>& runs) {
  LAMINA_ASSIGN(const std::vector<MetricRow> rows, store.Values(metric));
  absl::flat_hash_map<int64_t, std::vector<const MetricRow*>> of_run;
  for (const MetricRow& row : rows) {
    if (row.value_ns > 0) of_run[row.run].push_back(&row);
  }
  std::vector<std::string_view> keys;  // the newest first
  std::map<std::string_view, std::vector<const Run*>> of_key;
  for (size_t i = runs.size(); i-- > 0;) {
    auto& own = of_key[runs[i].key];
    if (own.empty()) keys.push_back(runs[i].key);
    own.push_back(&runs[i]);
  }
  std::vector<Series> out;
  for (const std::string_view key : keys) {
    auto& own = of_key[key];
    std::reverse(own.begin(), own.end());
    // Which classes all are held by, and with which weights.
    struct Class {
      size_t runs = 0;
      double share = 0;
    };
    std::map<std::string_view, Class> classes;
    size_t with_any = 0;
    for (const Run* run : own) {
      const auto found = of_run.find(run->id);
      if (found == of_run.end()) continue;
      ++with_any;
      for (const MetricRow* row : found->second) {
        Class& one = classes[row->of];
        ++one.runs;
        one.share += row->share;
      }
    }
    if (with_any == 0) continue;
    constexpr double kNearlyAll = 0.9;
    const auto usual = [&](const Class& one) {
      return static_cast<double>(one.runs) >=
             kNearlyAll * static_cast<double>(with_any);
    };
    std::map<std::string_view, double> weights;
    for (const auto& [name, one] : classes) {
      if (usual(one)) weights[name] = one.share / static_cast<double>(one.runs);
    }
    if (weights.empty()) {
      const auto most = std::max_element(
          classes.begin(), classes.end(), [](const auto& x, const auto& y) {
            return std::pair(x.second.runs, x.second.share) <
                   std::pair(y.second.runs, y.second.share);
          });
      weights[most->first] = 1;
    }
    double all = 0;
    for (const auto& [name, weight] : weights) all += weight;
    Series series;
    series.metric = metric;
    series.key = key;
    for (const Run* run : own) {
      double log = 0;
      size_t found_classes = 0;
      const auto found = of_run.find(run->id);
      if (found != of_run.end()) {
        for (const MetricRow* row : found->second) {
          const auto weight = weights.find(row->of);
          if (weight == weights.end()) continue;
          ++found_classes;
          log += (all > 0 ? weight->second / all
                          : 1 / static_cast<double>(weights.size())) *
                 std::log(row->value_ns);
        }
      }
      if (found_classes < weights.size()) {
        series.left.push_back(run);
        continue;
      }
      series.runs.push_back(run);
      // Of one class the value itself, not what is left of it by logarithms.
      series.values.push_back(weights.size() == 1 ? std::round(std::exp(log))
                                                  : std::exp(log));
    }
    if (!series.runs.empty()) out.push_back(std::move(series));
  }
  return out;
}

std::vector<std::string> UsualMetrics(const std::vector<Run>& runs) {
  bool serves = false;
  std::vector<std::string> phases;
  for (const runs::Phase phase :
       {runs::Phase::kPrefill, runs::Phase::kMixed, runs::Phase::kDecode}) {
    const bool any = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      return std::any_of(run.classes.begin(), run.classes.end(),
                         [&](const ClassRecord& one) {
                           return one.phase == phase && one.unit.units > 0;
                         });
    });
    if (any) phases.emplace_back(runs::PhaseName(phase));
    serves |= any;
  }
  const bool others = std::any_of(runs.begin(), runs.end(), [](const Run& run) {
    return std::any_of(run.classes.begin(), run.classes.end(),
                       [](const ClassRecord& one) {
                         return one.phase == runs::Phase::kTrain ||
                                one.phase == runs::Phase::kEval ||
                                one.phase == runs::Phase::kPass;
                       });
  });
  if (!serves || others) phases.insert(phases.begin(), "unit");
  return phases;
}

Result<ResultSet> Trend(Store& store, const std::vector<Run>& runs,
                        const TrendOptions& options) {
  const std::vector<std::string> metrics =
      options.metric.empty() ? UsualMetrics(runs)
                             : std::vector<std::string>{options.metric};
  std::vector<Series> all;
  for (const std::string& metric : metrics) {
    LAMINA_ASSIGN(std::vector<Series> own, SeriesOf(store, metric, runs));
    std::move(own.begin(), own.end(), std::back_inserter(all));
  }
  std::vector<TrendRow> trends;
  std::vector<ChangeRow> changes;
  std::vector<PointRow> points;
  ResultSet out;
  for (Series& series : all) {
    if (options.last > 0 && series.runs.size() > options.last) {
      const auto old =
          static_cast<ptrdiff_t>(series.runs.size() - options.last);
      series.runs.erase(series.runs.begin(), series.runs.begin() + old);
      series.values.erase(series.values.begin(), series.values.begin() + old);
    }
    const SeriesModel model =
        runs::FindChanges(series.values, options.min_effect);
    const auto& v = series.values;
    const size_t edge = std::min<size_t>(3, v.size());
    TrendRow row{.metric = series.metric,
                 .key = series.key,
                 .runs = v.size(),
                 .kind = runs::SeriesKindName(model.kind),
                 .last_ns = std::llround(v.back())};
    if (model.noise) row.noise = PercentOf(*model.noise);
    if (model.kind != SeriesKind::kUnknown) row.slope = PercentOf(model.slope);
    if (model.detectable) row.detectable = PercentOf(*model.detectable);
    row.last_against_first =
        100 * (runs::Median({v.end() - static_cast<ptrdiff_t>(edge), v.end()}) /
                   runs::Median(
                       {v.begin(), v.begin() + static_cast<ptrdiff_t>(edge)}) -
               1);
    trends.push_back(row);
    LAMINA_ASSIGN(const auto own, ChangesOf(store, series, model));
    out.notes.push_back(MakeNote(Severity::kVerdict, "trend",
                                 SeriesText(series, model, own),
                                 {{"trend", "key", series.key, {}}}));
    changes.insert(changes.end(), own.begin(), own.end());
    AddPoints(series, model, points);
  }
  out.tables.push_back(TrendColumns().Make(trends));
  out.tables.push_back(ChangeColumns().Make(changes));
  out.tables.push_back(PointColumns().Make(points));
  return out;
}

// --- the check ---

namespace {

// The newest runs of a series against those before.
struct Judged {
  std::string_view verdict = "unknown", reason = "few_runs";
  Shift change;
  size_t since = 0, newest = 0, before = 0;  // newest: 0: nothing compared
};

// By a bound against a limit.
void JudgeBounds(double limit, Judged& out) {
  if (!out.change.low) {
    out.verdict = "unknown";
    out.reason = "few_runs";
  } else if (std::expm1(*out.change.low) > limit) {
    out.verdict = "fail";
    out.reason = "slower";
  } else if (std::expm1(*out.change.high) <= limit) {
    out.verdict = "pass";
    out.reason = "not_slower";
  } else {
    out.verdict = "unknown";
    out.reason = "interval";
  }
}

class Checker {
 public:
  Checker(const Series& series, const CheckOptions& options, double level)
      : values_(series.values),
        options_(options),
        level_(level),
        // A limit below what is usually called a change asks for smaller ones.
        model_(runs::FindChanges(series.values,
                                 std::min(0.01, options.fail_above))) {}

  Judged Judge() const {
    const size_t n = values_.size();
    Judged out;
    out.since = n - 1;
    if (n <= kFewestForNoise) return out;
    // A change within the window: its runs against those before.
    if (!model_.changes.empty() &&
        model_.changes.back().index + options_.window >= n) {
      const size_t k = model_.changes.size() - 1;
      const size_t before = k == 0 ? 0 : model_.changes[k - 1].index;
      const size_t at = FirstOf(model_.changes[k].index, before);
      const Judged changed = Compare(at, before);
      if (changed.verdict == "fail") return changed;
      // What is newer than the change may have changed again.
      const Judged tail =
          JudgeTail(at == model_.changes[k].index ? at : before);
      return tail.newest > 0 ? tail : changed;
    }
    const size_t from =
        model_.changes.empty() ? 0 : model_.changes.back().index;
    if (const Judged tail = JudgeTail(from); tail.newest > 0) return tail;
    if (model_.kind == SeriesKind::kDrift) {
      Judged drift = Compare(n - Half(from), from);
      drift.verdict = "unknown";
      drift.reason = "drift";
      return drift;
    }
    Judged steady = Compare(n - Half(from), from);
    // No change was found: what an interval says against that is chance.
    if (steady.verdict == "fail") {
      steady.verdict = "unknown";
      steady.reason = "interval";
    }
    return steady;
  }
  const SeriesModel& model() const { return model_; }

 private:
  // Newest runs of a segment that did not change, held against the others.
  size_t Half(size_t from) const {
    return std::max<size_t>(
        1, std::min(options_.window, (values_.size() - from) / 2));
  }

  // The first run behind a change. The model knows no segment below 3 runs: of
  // one that short the first may still be as those before.
  size_t FirstOf(size_t at, size_t from) const {
    if (values_.size() - at > runs::kShortestSegment) return at;
    const auto before = Before(at, from);
    const double old = runs::Median({before.begin(), before.end()});
    const double last = values_.back();
    while (at + 1 < values_.size() &&
           std::abs(values_[at] - old) < std::abs(values_[at] - last))
      ++at;
    return at;
  }

  std::span<const double> Before(size_t at, size_t from) const {
    from = std::max(from, at - std::min(at, options_.window));
    return std::span(values_).subspan(from, at - from);
  }

  Judged Compare(size_t at, size_t from) const {
    Judged out;
    const auto before = Before(at, from);
    out.since = at;
    out.newest = values_.size() - at;
    out.before = before.size();
    out.change =
        runs::UnpairedShift(before, std::span(values_).subspan(at), level_);
    JudgeBounds(options_.fail_above, out);
    return out;
  }

  // The last one or two runs, where they lie above what one more run of those
  // before would be: too few for a change of the series.
  Judged JudgeTail(size_t from) const {
    const size_t n = values_.size();
    Judged out;
    for (const size_t count : {size_t{2}, size_t{1}}) {
      const size_t at = n - count;
      if (at < from + kFewestForNoise) continue;
      const auto before = Before(at, from);
      std::vector<double> logs;
      for (const double value : before) logs.push_back(std::log(value));
      const double noise = *runs::SeriesNoise(logs);
      const auto m = static_cast<double>(logs.size());
      // Beyond a normal quantile, because the noise is an estimate of few.
      const double wide = runs::NormalQuantile(0.5 + level_ / 2) * noise *
                          std::sqrt(1 + 1 / m) * (1 + 2 / m);
      const double middle = runs::Median(logs);
      const bool above = std::all_of(
          values_.begin() + static_cast<ptrdiff_t>(at), values_.end(),
          [&](double value) { return std::log(value) > middle + wide; });
      if (!above) continue;
      out = Compare(at, from);
      if (count > 1) return out;
      const double change = std::log(values_.back()) - middle;
      out.change = {change, change - wide, change + wide};
      JudgeBounds(options_.fail_above, out);
      if (out.verdict == "pass") return out;
      out.verdict = "suspect";
      out.reason = "single_run";
      return out;
    }
    return out;
  }

  const std::vector<double>& values_;
  const CheckOptions& options_;
  const double level_;
  const SeriesModel model_;
};

std::string CheckText(const VerdictRow& row) {
  std::string text = EscapeTerminal(std::string(row.metric)) + ": ";
  const auto range = [&] {
    return row.low ? fmt::format(" ({:+.1f} to {:+.1f} %)", *row.low, *row.high)
                   : std::string();
  };
  if (row.verdict == "fail") {
    return text + fmt::format(
                      "FAIL above {:g} %: {:+.1f} %{} since {}{}, against {} "
                      "before.",
                      row.threshold, *row.change, range(),
                      EscapeTerminal(std::string(row.since)),
                      row.commit ? " (" +
                                       EscapeTerminal(std::string(
                                           row.commit->substr(0, 10))) +
                                       ")"
                                 : "",
                      Counted(row.before, "run"));
  }
  if (row.verdict == "suspect") {
    return text + fmt::format(
                      "{} alone takes {:.1f} % more{} than the {} before: "
                      "record it again.",
                      EscapeTerminal(std::string(row.run)), *row.change,
                      range(), Counted(row.before, "run"));
  }
  if (row.reason == "accepted") {
    return text +
           fmt::format("accepted: {:+.1f} %{} since {}, against {} before.",
                       *row.change, range(),
                       EscapeTerminal(std::string(row.since)),
                       Counted(row.before, "run"));
  }
  if (row.verdict == "pass") {
    return text + fmt::format(
                      "pass, {:+.1f} %{} against {} before; the limit "
                      "is {:g} %.",
                      *row.change, range(), Counted(row.before, "run"),
                      row.threshold);
  }
  if (row.reason == "few_runs") {
    return text + fmt::format(
                      "unknown: {} of its key are too few; more than 5 "
                      "are needed.",
                      Counted(row.runs, "run"));
  }
  return text + fmt::format(
                    "unknown ({}): {:+.1f} %{}, and the limit is {:g} "
                    "%.",
                    row.reason, row.change.value_or(0), range(), row.threshold);
}

// Several recordings of one program as one side: all their units.
Result<runs::KeptSide> JoinedSide(Store& store, const std::vector<Run>& runs) {
  LAMINA_ASSIGN(runs::KeptSide out, store.SideOf(runs.front()));
  for (size_t i = 1; i < runs.size(); ++i) {
    LAMINA_ASSIGN(runs::KeptSide other, store.SideOf(runs[i]));
    for (runs::Unit& unit : other.units.units) {
      unit.number = out.units.units.size();
      out.units.units.push_back(std::move(unit));
    }
  }
  return out;
}

}  // namespace

Result<std::optional<double>> MeasuredNoise(Store& store, const Run& run) {
  LAMINA_ASSIGN(std::vector<Run> runs, store.Runs({{"key", run.key}}));
  LAMINA_ASSIGN(const auto series, SeriesOf(store, "unit", runs));
  for (const Series& one : series) {
    if (one.values.size() < kFewestForNoise) continue;
    return runs::FindChanges(one.values, 0.01).noise;
  }
  return std::nullopt;
}

Result<Checked> Judge(Store& store, const Run& against,
                      const std::vector<Run>& recordings,
                      const std::string& metric, double fail_above) {
  runs::Options options;
  options.fail_above = fail_above;
  if (metric == "kernel") options.measure = runs::Measure::kKernelTime;
  if (metric == "busy") options.measure = runs::Measure::kBusy;
  LAMINA_ASSIGN(const auto noise, MeasuredNoise(store, against));
  if (noise) options.noise_from = runs::Options::NoiseFrom::kStore;
  // An interval holds the noise of one recording on either side; here several
  // share that of theirs.
  const auto count = static_cast<double>(recordings.size());
  if (noise || recordings.size() > 1) {
    options.run_noise = noise.value_or(runs::RunNoise(options)) *
                        std::sqrt((1 + 1 / count) / 2);
  }
  LAMINA_ASSIGN(const runs::KeptSide a, store.SideOf(against));
  LAMINA_ASSIGN(const runs::KeptSide b, JoinedSide(store, recordings));
  Checked out;
  runs::Compared compared = runs::CompareKept(a, b, options);
  out.verdict = compared.verdict;
  out.result = std::move(compared.result);
  const Run& newest = recordings.back();
  const Table* const verdict = out.result.Find("diff_verdict");
  std::vector<VerdictRow> rows;
  for (size_t r = 0; verdict != nullptr && r < verdict->rows(); ++r) {
    const auto real = [&](const char* column) {
      const Value value = verdict->At(r, column);
      return value.null() ? std::nullopt : std::optional(value.real());
    };
    const std::string_view scope = verdict->At(r, "scope").text();
    rows.push_back({.metric = scope == "all" ? "unit" : scope,
                    .verdict = verdict->At(r, "verdict").text(),
                    .reason = verdict->At(r, "reason").text(),
                    .run = newest.name,
                    .since = recordings.front().name,
                    .commit = TagOf(newest, "commit"),
                    .runs = recordings.size() + 1,
                    .newest = recordings.size(),
                    .before = 1,
                    .change = real("change_percent"),
                    .low = real("low_percent"),
                    .high = real("high_percent"),
                    .noise = real("run_noise_percent"),
                    .threshold = 100 * fail_above});
    if (scope == metric) {
      out.verdict = rows.back().verdict == "fail"   ? Verdict::kFail
                    : rows.back().verdict == "pass" ? Verdict::kPass
                                                    : Verdict::kUnknown;
    }
  }
  Table table = VerdictColumns().Make(rows);
  out.result.tables.insert(out.result.tables.begin(), std::move(table));
  return out;
}

Result<Checked> Check(Store& store, const std::vector<Run>& all,
                      const CheckOptions& options) {
  Checked out;
  const Run& newest = all.back();
  if (options.against != nullptr) {
    return Judge(store, *options.against, {newest}, options.metric,
                 options.fail_above);
  }
  std::vector<Run> of_key;
  for (const Run& run : all) {
    if (run.key == newest.key) of_key.push_back(run);
  }
  const std::vector<std::string> metrics =
      options.metric.empty() ? UsualMetrics(of_key)
                             : std::vector<std::string>{options.metric};
  std::vector<Series> kept;
  for (const std::string& metric : metrics) {
    LAMINA_ASSIGN(std::vector<Series> own, SeriesOf(store, metric, of_key));
    if (own.empty() || own.front().runs.back()->id != newest.id) {
      return Fail(
          UsageError(fmt::format("run '{}' has no '{}'", newest.name, metric),
                     "name another metric"));
    }
    kept.push_back(std::move(own.front()));
  }
  LAMINA_ASSIGN(const auto decisions, store.Decisions());
  std::vector<VerdictRow> rows;
  out.verdict = Verdict::kPass;
  for (const Series& series : kept) {
    // Each metric takes its part of the risk.
    const Checker checker(series, options,
                          1 - 0.05 / static_cast<double>(kept.size()));
    const Judged judged = checker.Judge();
    std::string_view verdict = judged.verdict, reason = judged.reason;
    if (verdict == "fail" || verdict == "suspect") {
      for (const Decision& one : decisions) {
        const auto before =
            series.runs.begin() + static_cast<ptrdiff_t>(judged.since);
        if (one.run != (*before)->id ||
            std::none_of(series.runs.begin(), before, [&](const Run* run) {
              return run->id == one.against;
            }))
          continue;
        out.decisions.push_back(one);
        if (one.accepted) {
          verdict = "pass";
          reason = "accepted";
        }
        break;
      }
    }
    const Run& since = *series.runs[judged.since];
    VerdictRow row{.metric = series.metric,
                   .verdict = verdict,
                   .reason = reason,
                   .run = newest.name,
                   .since = since.name,
                   .commit = TagOf(since, "commit"),
                   .runs = series.runs.size(),
                   .newest = judged.newest,
                   .before = judged.before,
                   .threshold = 100 * options.fail_above};
    if (judged.newest > 0) row.change = PercentOf(judged.change.estimate);
    if (judged.change.low) {
      row.low = PercentOf(*judged.change.low);
      row.high = PercentOf(*judged.change.high);
    }
    if (checker.model().noise) row.noise = PercentOf(*checker.model().noise);
    out.result.notes.push_back(
        MakeNote(Severity::kVerdict, "runs_verdict", CheckText(row),
                 {{"runs_verdict", "metric", series.metric, {}}}));
    rows.push_back(row);
    out.suspect |= verdict == "suspect";
    if (verdict == "fail") {
      out.verdict = Verdict::kFail;
    } else if (verdict != "pass" && out.verdict == Verdict::kPass) {
      out.verdict = Verdict::kUnknown;
    }
  }
  out.result.tables.push_back(VerdictColumns().Make(rows));
  return out;
}

}  // namespace lamina::runstore
