// SPDX-License-Identifier: Apache-2.0
//
// Counters, energy and clocks in one file: all read the same held values.
#include "analysis/host/counters.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::analysis::host {
namespace {

using OptionalInt = std::optional<int64_t>;
using OptionalText = std::optional<std::string_view>;
using OptionalReal = std::optional<double>;

constexpr size_t kMostOps = 500;
constexpr size_t kMostSeries = 10'000;
// Of the highest value; below it a clock has fallen.
constexpr double kDropShare = 0.9;

struct CounterRow {
  std::string_view series;
  OptionalText unit;
  OptionalInt device;
  int64_t samples;
  double min, mean, max;
  int64_t first, last;
  OptionalReal busy;
};

const RowColumns<CounterRow>& CounterColumns() {
  using R = CounterRow;
  static const RowColumns<R> columns{
      "counters",
      "Counters that were sampled; a value holds until the next sample.",
      {{"series", ColumnType::kText,
        "Counter and, where it has several, series.", &R::series},
       {"unit", ColumnType::kText,
        "By the name (data/counters); empty: no rule knows it.", &R::unit},
       {"device", ColumnType::kInt, "Device, as far as names say it.",
        &R::device},
       {"samples", ColumnType::kInt, "Samples.", &R::samples},
       {"min", ColumnType::kReal, "Lowest value.", &R::min},
       {"mean_time_weighted", ColumnType::kReal,
        "Mean over the time from the first to the last sample.", &R::mean},
       {"max", ColumnType::kReal, "Highest value.", &R::max},
       {"first_us", ColumnType::kTime,
        "First sample, from the first event of the trace.", &R::first},
       {"last_us", ColumnType::kTime, "Last sample.", &R::last},
       {"mean_busy", ColumnType::kReal,
        "Mean over the part of that time in which the device worked; empty: "
        "no work of the device is known there.",
        &R::busy}}};
  return columns;
}

struct EnergyRow {
  std::string_view series;
  OptionalInt device;
  std::string_view scope, name;
  int64_t time;
  double joules, watts;
  std::string_view evidence;
  int64_t samples;
};

const RowColumns<EnergyRow>& EnergyColumns() {
  using R = EnergyRow;
  static const RowColumns<R> columns{
      "energy",
      "Energy from sampled power: of all samples, of the busy time of the "
      "device, of steps and of ops. Each moment of the busy time belongs to "
      "the op whose work began first, so that ops add up to it.",
      {{"series", ColumnType::kText, "Counter of the power.", &R::series},
       {"device", ColumnType::kInt, "Device, as far as names say it.",
        &R::device},
       {"scope", ColumnType::kText, "samples, busy, step or op.", &R::scope},
       {"name", ColumnType::kText,
        "Step or op; \"(no op)\": work that no op launched.", &R::name},
       {"time_us", ColumnType::kTime,
        "Its time between the first and the last sample.", &R::time},
       {"joules", ColumnType::kReal, "Energy.", &R::joules},
       {"mean_watts", ColumnType::kReal, "Energy over time.", &R::watts},
       {"evidence", ColumnType::kText,
        "samples: at least two lie inside; held: fewer, so a step has the "
        "value that was sampled before, and an op the mean of the steps "
        "that it ran in.",
        &R::evidence},
       {"samples", ColumnType::kInt, "Samples inside.", &R::samples}}};
  return columns;
}

struct DropRow {
  std::string_view series;
  OptionalInt device;
  int64_t start, dur, busy;
  double lowest, percent;
  OptionalText reason;
};

const RowColumns<DropRow>& DropColumns() {
  using R = DropRow;
  static const RowColumns<R> columns{
      "clock_drop",
      "Times in which the clock was below 90 % of the highest of the recording "
      "while the device worked.",
      {{"series", ColumnType::kText, "Counter of the clock.", &R::series},
       {"device", ColumnType::kInt, "Device, as far as names say it.",
        &R::device},
       {"start_us", ColumnType::kTime, "From the first event of the trace.",
        &R::start},
       {"dur_us", ColumnType::kTime, "Until it was higher again.", &R::dur},
       {"busy_us", ColumnType::kTime, "Of it, with work on the device.",
        &R::busy},
       {"lowest", ColumnType::kReal, "Lowest value, in its own unit.",
        &R::lowest},
       {"lowest_percent", ColumnType::kReal, "Of the highest value.",
        &R::percent, Shown::kPercent},
       {"reason", ColumnType::kText,
        "Counters of throttling that were not 0; empty: none is recorded or "
        "all were 0.",
        &R::reason}}};
  return columns;
}

// Values over time.
class Held {
 public:
  void Add(int64_t time_ns, double value) {
    points_.emplace_back(time_ns, value);
  }
  // All are added. Of samples at one time the last counts.
  void Finish() {
    std::stable_sort(
        points_.begin(), points_.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (i + 1 < points_.size() && points_[i + 1].first == points_[i].first)
        continue;
      points_[kept++] = points_[i];
    }
    points_.resize(kept);
    before_.assign(kept, 0);
    for (size_t i = 1; i < kept; ++i) {
      before_[i] =
          before_[i - 1] +
          points_[i - 1].second *
              static_cast<double>(points_[i].first - points_[i - 1].first);
    }
  }

  const std::vector<std::pair<int64_t, double>>& points() const {
    return points_;
  }
  int64_t first_ns() const { return points_.front().first; }
  int64_t last_ns() const { return points_.back().first; }
  // The part of an interval for which values are known.
  Interval Known(Interval of) const {
    return {std::max(of.start_ns, first_ns()), std::min(of.end_ns, last_ns())};
  }
  // Value times nanoseconds over the known part of an interval.
  double Integral(Interval of) const {
    const Interval known = Known(of);
    return known.end_ns > known.start_ns
               ? UpTo(known.end_ns) - UpTo(known.start_ns)
               : 0;
  }
  int64_t Samples(Interval of) const {
    return Behind(of.end_ns) - Behind(of.start_ns);
  }

 private:
  int64_t Behind(int64_t time) const {
    return std::partition_point(points_.begin(), points_.end(),
                                [&](const auto& p) { return p.first < time; }) -
           points_.begin();
  }
  // `time` is not before the first sample.
  double UpTo(int64_t time) const {
    const auto after =
        std::partition_point(points_.begin(), points_.end(),
                             [&](const auto& p) { return p.first <= time; });
    const auto i = static_cast<size_t>(after - points_.begin()) - 1;
    return before_[i] +
           points_[i].second * static_cast<double>(time - points_[i].first);
  }

  std::vector<std::pair<int64_t, double>> points_;
  std::vector<double> before_;  // integral up to point i
};

struct Series {
  std::string name;
  std::string_view unit, part;  // of its rule
  bool known = false;           // a rule has its name
  OptionalInt device;
  Held held;
};

// "GPU 1", "gpu_1", "card1", "device[1]": the number of a device in a name.
OptionalInt NumberIn(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view word : {"gpu", "device", "card", "agent"}) {
    for (size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      if (at > 0 && std::isalpha(static_cast<unsigned char>(lower[at - 1])))
        continue;
      size_t digit = at + word.size();
      while (digit < lower.size() &&
             std::string_view(" _#[:-").find(lower[digit]) !=
                 std::string_view::npos)
        ++digit;
      size_t end = digit;
      while (end < lower.size() && end - digit < 6 &&
             std::isdigit(static_cast<unsigned char>(lower[end])))
        ++end;
      if (end > digit)
        return ParseInt(std::string_view(lower).substr(digit, end - digit));
    }
  }
  return std::nullopt;
}

class Counters {
 public:
  Counters(const HostModel& model, const rules::PatternTable& metrics)
      : model_(model), trace_(model.trace()) {
    Collect(metrics);
  }

  ResultSet Make() const {
    Table counters(CounterColumns().schema());
    Table energy(EnergyColumns().schema());
    Table drops(DropColumns().schema());
    for (const Series& s : series_) {
      Summarize(counters, s);
      if (s.part == "power" && s.held.points().size() > 1) Energy(energy, s);
      if (s.part == "clock" && s.held.points().size() > 1) Drops(drops, s);
    }
    ResultSet result;
    result.tables.push_back(std::move(counters));
    result.tables.push_back(std::move(energy));
    result.tables.push_back(std::move(drops));
    return result;
  }

 private:
  // One for each process, counter and series, in the order of their first
  // sample.
  void Collect(const rules::PatternTable& metrics) {
    const trace::Counters& all = trace_.counters;
    std::map<std::tuple<StringId, uint32_t, StringId, StringId>, size_t> at;
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (!std::isfinite(all.value[i])) continue;
      const trace::Track& track = trace_.tracks[all.track[i].value];
      // Devices of one process have a track each.
      const auto [it, is_new] = at.try_emplace(
          {track.pid, all.track[i].value, all.name[i], all.series[i]},
          series_.size());
      if (is_new) {
        if (series_.size() == kMostSeries) {
          at.erase(it);
          continue;
        }
        series_.push_back(Describe(track, all.name[i], all.series[i], metrics));
      }
      series_[it->second].held.Add(all.time_ns[i], all.value[i]);
    }
    for (Series& series : series_) series.held.Finish();
  }

  Series Describe(const trace::Track& track, StringId name, StringId series,
                  const rules::PatternTable& metrics) const {
    Series out;
    out.name = trace_.Text(name);
    const std::string_view key = trace_.Text(series);
    if (!key.empty() && key != "value" && key != out.name) {
      out.name += ' ';
      out.name += key;
    }
    if (const int rule = metrics.Find(out.name);
        rule != rules::PatternTable::kNone) {
      out.known = true;
      out.unit = metrics.rule(rule).value;
      out.part = metrics.rule(rule).part;
    }
    for (const std::string_view text :
         {trace_.Text(track.thread_name), trace_.Text(track.tid),
          std::string_view(out.name), trace_.Text(track.process_labels),
          trace_.Text(track.process_name)}) {
      if (!out.device) out.device = NumberIn(text);
    }
    std::set<int64_t> devices;
    for (const DeviceFacts& device : model_.devices())
      devices.insert(device.id);
    if (!out.device && devices.size() == 1) out.device = *devices.begin();
    return out;
  }

  void Summarize(Table& table, const Series& s) const {
    const auto& points = s.held.points();
    double least = points[0].second, most = least;
    for (const auto& [time, value] : points) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const Interval whole = {s.held.first_ns(), s.held.last_ns()};
    CounterColumns().Add(
        table,
        {.series = s.name,
         .unit =
             s.known && !s.unit.empty() ? OptionalText(s.unit) : std::nullopt,
         .device = s.device,
         .samples = static_cast<int64_t>(points.size()),
         .min = least,
         .mean = whole.length_ns() > 0
                     ? std::clamp(s.held.Integral(whole) /
                                      static_cast<double>(whole.length_ns()),
                                  least, most)
                     : points[0].second,
         .max = most,
         .first = whole.start_ns - trace_.first_ns,
         .last = whole.end_ns - trace_.first_ns,
         .busy = BusyMean(s)});
  }

  OptionalReal BusyMean(const Series& s) const {
    double sum = 0;
    int64_t time = 0;
    ForWork(s, [&](SliceId, Interval own) {
      const Interval known = s.held.Known(own);
      time += std::max<int64_t>(0, known.end_ns - known.start_ns);
      sum += s.held.Integral(own);
    });
    return time > 0 ? OptionalReal(sum / static_cast<double>(time))
                    : std::nullopt;
  }

  // Work of the device of a series: all devices of its number.
  template <class F>
  void ForWork(const Series& s, const F& f) const {
    std::vector<SliceId> work;
    for (const DeviceFacts& device : model_.devices()) {
      if (s.device && device.id == *s.device)
        work.insert(work.end(), device.work.begin(), device.work.end());
    }
    std::sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
      return std::pair(trace_.Start(a), a) < std::pair(trace_.Start(b), b);
    });
    int64_t reached = trace::kNoInt;
    for (const SliceId w : work) {
      // What earlier work covers is its own.
      const Interval own = {std::max(trace_.Start(w), reached), trace_.End(w)};
      reached = std::max(reached, own.end_ns);
      if (own.end_ns > own.start_ns) f(w, own);
    }
  }

  struct Sum {
    int64_t time_ns = 0, samples = 0;
    double joules = 0;  // of the values that held
    double held = 0;    // by the means of the steps
  };

  void AddEnergy(Table& table, const Series& s, std::string_view scope,
                 std::string_view name, const Sum& sum, bool op) const {
    if (sum.time_ns <= 0) return;
    const bool sampled = sum.samples >= 2;
    const double joules = sampled || !op ? sum.joules : sum.held;
    EnergyColumns().Add(
        table, {.series = s.name,
                .device = s.device,
                .scope = scope,
                .name = name,
                .time = sum.time_ns,
                .joules = joules,
                .watts = joules / (static_cast<double>(sum.time_ns) * 1e-9),
                .evidence = sampled ? "samples" : "held",
                .samples = sum.samples});
  }

  void Energy(Table& table, const Series& s) const {
    const double watts = s.unit == "mW" ? 1e-3 : 1;
    const auto over = [&](Interval of) {
      const Interval known = s.held.Known(of);
      Sum sum;
      sum.time_ns = std::max<int64_t>(0, known.end_ns - known.start_ns);
      sum.joules = s.held.Integral(of) * watts * 1e-9;
      sum.samples = sum.time_ns > 0 ? s.held.Samples(of) : 0;
      return sum;
    };
    const auto mean = [](const Sum& sum) {
      return sum.time_ns > 0 ? sum.joules / static_cast<double>(sum.time_ns)
                             : 0;
    };
    const Sum whole = over({s.held.first_ns(), s.held.last_ns()});
    AddEnergy(table, s, "samples", "", whole, false);
    const tree::Steps& steps = model_.context().steps;
    std::vector<double> of_step;
    std::vector<Sum> sums;
    for (const tree::Step& step : steps.steps()) {
      sums.push_back(over(step.host));
      of_step.push_back(mean(sums.back()));
    }
    Sum busy;
    std::map<std::string_view, Sum> ops;
    ForWork(s, [&](SliceId w, Interval own) {
      const Sum part = over(own);
      const NodeId launcher = model_.context().device.launcher(w);
      Sum& op = ops[launcher.valid() ? model_.context().tree.name(launcher)
                                     : std::string_view("(no op)")];
      const uint32_t step = steps.StepOf(w);
      const double rate =
          step == tree::Steps::kOutside || sums[step].time_ns == 0
              ? mean(whole)
              : of_step[step];
      for (Sum* sum : {&busy, &op}) {
        sum->time_ns += part.time_ns;
        sum->samples += part.samples;
        sum->joules += part.joules;
        sum->held += rate * static_cast<double>(part.time_ns);
      }
    });
    AddEnergy(table, s, "busy", "", busy, false);
    for (size_t i = 0; i < sums.size(); ++i) {
      AddEnergy(table, s, "step", trace_.Name(steps.steps()[i].slice), sums[i],
                false);
    }
    std::vector<std::pair<std::string_view, Sum>> sorted(ops.begin(),
                                                         ops.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) {
                       return a.second.time_ns > b.second.time_ns;
                     });
    if (sorted.size() > kMostOps) sorted.resize(kMostOps);
    for (const auto& [name, sum] : sorted)
      AddEnergy(table, s, "op", name, sum, true);
  }

  void Drops(Table& table, const Series& s) const {
    std::vector<Interval> work;
    ForWork(s, [&](SliceId, Interval own) { work.push_back(own); });
    const Cover busy(std::move(work));
    const auto& points = s.held.points();
    double most = points[0].second;
    for (const auto& [time, value] : points) most = std::max(most, value);
    if (most <= 0) return;
    for (size_t i = 0; i + 1 < points.size();) {
      if (points[i].second >= kDropShare * most) {
        ++i;
        continue;
      }
      const size_t begin = i;
      double lowest = points[i].second;
      for (; i + 1 < points.size() && points[i].second < kDropShare * most; ++i)
        lowest = std::min(lowest, points[i].second);
      const Interval span = {points[begin].first, points[i].first};
      const int64_t worked = busy.Over(span.start_ns, span.end_ns);
      if (worked == 0) continue;
      const std::string reason = ReasonOf(s, span);
      DropColumns().Add(
          table,
          {.series = s.name,
           .device = s.device,
           .start = span.start_ns - trace_.first_ns,
           .dur = span.length_ns(),
           .busy = worked,
           .lowest = lowest,
           .percent = 100 * lowest / most,
           .reason = reason.empty() ? std::nullopt : OptionalText(reason)});
    }
  }

  std::string ReasonOf(const Series& clock, Interval span) const {
    std::string text;
    for (const Series& s : series_) {
      if (s.part != "throttle" || (s.device != clock.device)) continue;
      bool any = false;
      const auto& points = s.held.points();
      auto p = std::partition_point(
          points.begin(), points.end(),
          [&](const auto& point) { return point.first <= span.start_ns; });
      if (p != points.begin()) --p;
      for (; p != points.end() && p->first < span.end_ns; ++p)
        any = any || p->second != 0;
      if (any) text += (text.empty() ? "" : ", ") + s.name;
    }
    return text;
  }

  const HostModel& model_;
  const Trace& trace_;
  std::vector<Series> series_;
};

}  // namespace

Result<std::shared_ptr<const rules::PatternTable>> LoadMetrics(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("counters"));
  std::vector<rules::PatternRule> all;
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find("rules");
    if (list == nullptr) continue;
    LAMINA_ASSIGN(auto more, rules::ReadPatternRules(*file, *list, "unit"));
    for (auto& rule : more) all.push_back(std::move(rule));
  }
  LAMINA_ASSIGN(auto table, rules::PatternTable::Make(std::move(all)));
  return std::make_shared<const rules::PatternTable>(std::move(table));
}

std::vector<Schema> CounterSchemas() {
  return {CounterColumns().schema(), EnergyColumns().schema(),
          DropColumns().schema()};
}

ResultSet CounterTables(const HostModel& model,
                        const rules::PatternTable& metrics) {
  return Counters(model, metrics).Make();
}

}  // namespace lamina::analysis::host
