// SPDX-License-Identifier: Apache-2.0
//
// Counters, energy and clocks in one file: all read the same held values.
#include "analysis/host/counters.h"

#include <absl/strings/ascii.h>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/host/kernel_counters.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/text.h"
#include "table/row_columns.h"

namespace lamina::analysis::host {
namespace {

using OptionalInt = std::optional<int64_t>;
using OptionalText = std::optional<std::string_view>;
using OptionalReal = std::optional<double>;

constexpr size_t kMostOps = 500;
constexpr size_t kMostDigits = 6;    // of the number of a device
constexpr size_t kMostReasons = 20;  // named for one drop
constexpr size_t kMostSeries = 10'000;
constexpr size_t kLeftOut = std::numeric_limits<size_t>::max();
// Of the highest value; below it a clock has fallen.
constexpr double kDropShare = 0.9;

struct CounterRow {
  std::string_view series;
  OptionalText unit;
  OptionalInt device;
  int64_t samples;
  double min, mean, max;
  int64_t first, last;
  OptionalReal busy, steps;
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
       {"device_index", ColumnType::kInt, "Device, as far as names say it.",
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
        &R::busy},
       {"mean_steps", ColumnType::kReal,
        "Mean over the part of that time within steps; empty: none is.",
        &R::steps}}};
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
      "the op whose work began first, so that times of ops add up to it.",
      {{"series", ColumnType::kText, "Counter of the power.", &R::series},
       {"device_index", ColumnType::kInt, "Device, as far as names say it.",
        &R::device},
       {"scope", ColumnType::kText, "samples, busy, step or op.", &R::scope},
       {"name", ColumnType::kText,
        "Step or op; \"(no op)\": work that no op launched, \"(other)\": ops "
        "beyond the 500 of the most time.",
        &R::name},
       {"time_us", ColumnType::kTime,
        "Its time between the first and the last sample.", &R::time},
       {"joules", ColumnType::kReal, "Energy.", &R::joules},
       {"mean_watts", ColumnType::kReal, "Energy over time.", &R::watts},
       {"evidence", ColumnType::kText,
        "samples: at least two lie inside; held: fewer, so that it is the "
        "mean power of the steps around it or, of steps and outside of them, "
        "what was sampled before.",
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
       {"device_index", ColumnType::kInt, "Device, as far as names say it.",
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
  // Of "power[2]" where nothing else says which device is meant: "power" with
  // process and series, and "2".
  std::string of_several, id;
  Held held;
};

// "GPU 1", "gpu_1", "card1", "device[1]": the number of a device in a name.
// "GPU-8f1a2b3c" is the begin of a UUID.
OptionalInt NumberIn(std::string_view text) {
  const std::string lower = LowerCase(text);
  for (const std::string_view word : {"gpu", "device", "card", "agent"}) {
    for (size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      if (at > 0 && absl::ascii_isalpha(lower[at - 1])) continue;
      size_t digit = at + word.size();
      while (digit < lower.size() &&
             std::string_view(" _#[:-").find(lower[digit]) !=
                 std::string_view::npos)
        ++digit;
      size_t end = digit;
      while (end < lower.size() && IsDigit(lower[end])) ++end;
      const bool whole =
          end == lower.size() || !absl::ascii_isalpha(lower[end]);
      if (whole && end > digit && end - digit <= kMostDigits)
        return ParseInt(std::string_view(lower).substr(digit, end - digit));
    }
  }
  return std::nullopt;
}

class Counters {
 public:
  Counters(const HostModel& model, const rules::PatternTable& metrics)
      : model_(model), trace_(model.trace()) {
    for (const DeviceFacts& device : model_.devices())
      devices_.try_emplace(device.id);
    std::vector<Interval> steps;
    for (const tree::Step& step : model_.context().steps.steps())
      steps.push_back(step.host);
    steps_ = Cover(std::move(steps));
    Collect(metrics);
    for (size_t i = 0; i < series_.size(); ++i) {
      const Series& s = series_[i];
      if (s.device) FindWork(*s.device, devices_.at(*s.device));
      if (s.part == "throttle") AddRuns(i);
    }
    for (auto& [device, runs] : runs_) {
      std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
        return std::pair(a.when.start_ns, a.series) <
               std::pair(b.when.start_ns, b.series);
      });
    }
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
    if (left_out_ > 0) {
      result.notes.push_back(MakeNote(
          Severity::kWarning, "counters_left_out",
          "The tables of counters have the first " +
              Counted(kMostSeries, "series", "series") +
              "; left out: " + Counted(left_out_, "series", "series") + ".",
          {{"counters", "", "", {}}}));
    }
    return result;
  }

 private:
  // What work has for itself of the time of its device: not what earlier work
  // covers.
  struct Piece {
    Interval own;
    uint32_t op;  // of Device::ops
  };
  // All devices of one number.
  struct Device {
    std::vector<Piece> pieces;  // disjoint, by start
    std::vector<std::string_view> ops;
    Cover busy;
    bool found = false;
  };
  // A time in which a counter of throttling was not 0.
  struct Run {
    Interval when;
    size_t series;
  };
  using Runs = std::map<OptionalInt, std::vector<Run>>;

  // Once for each device of which there are counters.
  void FindWork(int64_t id, Device& out) const {
    if (out.found) return;
    out.found = true;
    std::vector<SliceId> work;
    for (const DeviceFacts& device : model_.devices()) {
      if (device.id == id)
        work.insert(work.end(), device.work.begin(), device.work.end());
    }
    std::sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
      return std::pair(trace_.Start(a), a) < std::pair(trace_.Start(b), b);
    });
    std::map<std::string_view, uint32_t> ops;
    std::vector<Interval> busy;
    int64_t reached = trace::kNoInt;
    for (const SliceId w : work) {
      const Interval own = {std::max(trace_.Start(w), reached), trace_.End(w)};
      reached = std::max(reached, own.end_ns);
      if (own.end_ns <= own.start_ns) continue;
      const NodeId launcher = model_.context().device.launcher(w);
      const auto [op, is_new] = ops.try_emplace(
          launcher.valid() ? model_.context().tree.name(launcher)
                           : std::string_view("(no op)"),
          static_cast<uint32_t>(out.ops.size()));
      if (is_new) out.ops.push_back(op->first);
      out.pieces.push_back({own, op->second});
      busy.push_back(own);
    }
    out.busy = Cover(std::move(busy));
  }

  // The work of the device of a series.
  const Device& WorkOf(const Series& s) const {
    static const Device none;
    return s.device ? devices_.at(*s.device) : none;
  }

  // The last value holds for good: what throttles may have no later sample.
  void AddRuns(size_t series) {
    const auto& points = series_[series].held.points();
    std::vector<Run>& runs = runs_[series_[series].device];
    for (size_t i = 0; i < points.size();) {
      const size_t begin = i++;
      if (points[begin].second == 0) continue;
      while (i < points.size() && points[i].second != 0) ++i;
      runs.push_back({{points[begin].first,
                       i < points.size() ? points[i].first : trace::kMaxTimeNs},
                      series});
    }
  }

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
          it->second = kLeftOut;
          ++left_out_;
          continue;
        }
        series_.push_back(Describe(track, all.name[i], all.series[i], metrics));
      }
      if (it->second == kLeftOut) continue;
      series_[it->second].held.Add(all.time_ns[i], all.value[i]);
    }
    for (Series& series : series_) series.held.Finish();
    TellApart();
  }

  // Counters of one name with several ids are not all of the only device: an id
  // is the number of a device that there is, or of nothing that is known.
  void TellApart() {
    std::map<std::string_view, std::set<std::string_view>> ids;
    for (const Series& s : series_) {
      if (!s.of_several.empty()) ids[s.of_several].insert(s.id);
    }
    for (Series& s : series_) {
      if (s.of_several.empty() || ids[s.of_several].size() < 2) continue;
      const OptionalInt number = ParseInt(s.id);
      s.device = number && devices_.contains(*number) ? number : std::nullopt;
    }
  }

  Series Describe(const trace::Track& track, StringId name, StringId series,
                  const rules::PatternTable& metrics) const {
    Series out;
    const std::string_view text = trace_.Text(name);
    const std::string_view key = trace_.Text(series);
    const std::string behind = key.empty() || key == "value" || key == text
                                   ? std::string()
                                   : " " + std::string(key);
    out.name = text;
    out.name += behind;
    // Readers put an id behind the name, as in "power[0]"; the unit of
    // "power [W]" is none, and rules know names without ids.
    const size_t open = text.rfind('[');
    const bool has_id = open != std::string_view::npos && open > 0 &&
                        text[open - 1] != ' ' && text.ends_with(']');
    const std::string_view bare = has_id ? text.substr(0, open) : text;
    if (const int rule = metrics.Find(std::string(bare) + behind);
        rule != rules::PatternTable::kNone) {
      out.known = true;
      out.unit = metrics.rule(rule).value;
      out.part = metrics.rule(rule).part;
    }
    bool named = false;
    for (const std::string_view where :
         {trace_.Text(track.thread_name), trace_.Text(track.tid),
          std::string_view(out.name), trace_.Text(track.process_labels),
          trace_.Text(track.process_name)}) {
      const OptionalInt number = NumberIn(where);
      named = named || number;
      if (number && !out.device && devices_.contains(*number))
        out.device = number;
    }
    if (named) return out;
    // A number that is of no device of the trace says: it is of another one.
    if (devices_.size() == 1) out.device = devices_.begin()->first;
    if (has_id) {
      out.of_several = fmt::format("{}|{}|{}", bare, key, track.pid.value);
      out.id = text.substr(open + 1, text.size() - open - 2);
    }
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
         .busy = MeanWithin(s, WorkOf(s).busy),
         .steps = MeanWithin(s, steps_)});
  }

  OptionalReal MeanWithin(const Series& s, const Cover& cover) const {
    const auto& points = s.held.points();
    double sum = 0;
    for (size_t i = 1; i < points.size(); ++i) {
      sum += points[i - 1].second * static_cast<double>(cover.Over(
                                        points[i - 1].first, points[i].first));
    }
    const int64_t time = cover.Over(s.held.first_ns(), s.held.last_ns());
    return time > 0 ? OptionalReal(sum / static_cast<double>(time))
                    : std::nullopt;
  }

  struct Sum {
    int64_t time_ns = 0, samples = 0;
    double joules = 0;
    double by_steps = 0;  // joules, if the power were the mean of its step
    Sum& operator+=(const Sum& more) {
      time_ns += more.time_ns;
      samples += more.samples;
      joules += more.joules;
      by_steps += more.by_steps;
      return *this;
    }
  };

  void AddEnergy(Table& table, const Series& s, std::string_view scope,
                 std::string_view name, const Sum& sum) const {
    if (sum.time_ns <= 0) return;
    const bool sampled = sum.samples >= 2;
    // A kernel says little of the power at the one sample before it.
    const double joules = sampled ? sum.joules : sum.by_steps;
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
    const double watts = s.unit == "uW"   ? 1e-6
                         : s.unit == "mW" ? 1e-3
                         : s.unit == "kW" ? 1e3
                                          : 1;
    const auto over = [&](Interval of) {
      const Interval known = s.held.Known(of);
      Sum sum;
      sum.time_ns = std::max<int64_t>(0, known.end_ns - known.start_ns);
      sum.joules = sum.by_steps = s.held.Integral(of) * watts * 1e-9;
      sum.samples = sum.time_ns > 0 ? s.held.Samples(of) : 0;
      return sum;
    };
    Sum whole = over({s.held.first_ns(), s.held.last_ns()});
    whole.samples = static_cast<int64_t>(s.held.points().size());
    AddEnergy(table, s, "samples", "", whole);
    const tree::Steps& steps = model_.context().steps;
    std::vector<Sum> of_steps;
    for (const tree::Step& step : steps.steps())
      of_steps.push_back(over(step.host));
    const Device& device = WorkOf(s);
    std::vector<Sum> ops(device.ops.size());
    for (const Piece& piece : device.pieces) {
      if (piece.own.end_ns <= s.held.first_ns()) continue;
      if (piece.own.start_ns >= s.held.last_ns()) break;
      Sum own = over(piece.own);
      const uint32_t step = steps.StepAt(piece.own.start_ns);
      if (step != tree::Steps::kOutside && of_steps[step].time_ns > 0) {
        own.by_steps = of_steps[step].joules /
                       static_cast<double>(of_steps[step].time_ns) *
                       static_cast<double>(own.time_ns);
      }
      ops[piece.op] += own;
    }
    // Added up in the order of the rows, so that the rows add up.
    std::vector<std::pair<std::string_view, Sum>> rows;
    for (size_t i = 0; i < ops.size(); ++i)
      rows.emplace_back(device.ops[i], ops[i]);
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return std::pair(-a.second.time_ns, a.first) <
             std::pair(-b.second.time_ns, b.first);
    });
    if (rows.size() > kMostOps) {
      Sum other;
      for (size_t i = kMostOps; i < rows.size(); ++i) other += rows[i].second;
      rows.resize(kMostOps);
      rows.emplace_back("(other)", other);
    }
    Sum busy;
    for (const auto& [name, sum] : rows) busy += sum;
    busy.by_steps = busy.joules;
    AddEnergy(table, s, "busy", "", busy);
    for (size_t i = 0; i < of_steps.size(); ++i) {
      AddEnergy(table, s, "step", trace_.Name(steps.steps()[i].slice),
                of_steps[i]);
    }
    for (const auto& [name, sum] : rows) AddEnergy(table, s, "op", name, sum);
  }

  void Drops(Table& table, const Series& s) const {
    const Cover& busy = WorkOf(s).busy;
    const auto& points = s.held.points();
    Throttled throttled{runs_, s.device};
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
      const std::string reason = ReasonOf(throttled, span);
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

  // Walks the runs of a device along intervals that follow each other.
  struct Throttled {
    Throttled(const Runs& all, OptionalInt device) {
      const auto found = all.find(device);
      if (found != all.end()) runs = found->second;
    }
    std::span<const Run> runs;
    size_t next = 0;
    std::vector<Run> open;
  };

  std::string ReasonOf(Throttled& at, Interval span) const {
    for (; at.next < at.runs.size() &&
           at.runs[at.next].when.start_ns < span.end_ns;
         ++at.next)
      at.open.push_back(at.runs[at.next]);
    std::erase_if(at.open, [&](const Run& run) {
      return run.when.end_ns <= span.start_ns;
    });
    std::vector<size_t> found;
    for (const Run& run : at.open) found.push_back(run.series);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::string text;
    for (size_t i = 0; i < found.size() && i < kMostReasons; ++i)
      text += (text.empty() ? "" : ", ") + series_[found[i]].name;
    if (found.size() > kMostReasons)
      text += fmt::format(", {} more", found.size() - kMostReasons);
    return text;
  }

  const HostModel& model_;
  const Trace& trace_;
  std::map<int64_t, Device> devices_;  // by number
  Cover steps_;
  std::vector<Series> series_;
  uint64_t left_out_ = 0;  // series beyond kMostSeries
  Runs runs_;              // by start
};

}  // namespace

Result<std::shared_ptr<const rules::PatternTable>> LoadMetrics(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("counters"));
  LAMINA_ASSIGN(auto table, rules::ReadPatternTable(files, "rules", "unit"));
  return std::make_shared<const rules::PatternTable>(std::move(table));
}

std::vector<Schema> CounterSchemas() {
  return {CounterColumns().schema(), EnergyColumns().schema(),
          DropColumns().schema(), KernelCounterSchema()};
}

ResultSet CounterTables(const HostModel& model,
                        const rules::PatternTable& metrics, bool events) {
  ResultSet result = Counters(model, metrics).Make();
  ResultSet kernels = KernelCounterTables(model);
  if (events) result.tables.push_back(std::move(kernels.tables[0]));
  std::move(kernels.notes.begin(), kernels.notes.end(),
            std::back_inserter(result.notes));
  return result;
}

}  // namespace lamina::analysis::host
