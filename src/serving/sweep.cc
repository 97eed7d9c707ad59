// SPDX-License-Identifier: Apache-2.0
//
// Input: traces at several loads. Output: medians of each part per load, a fit
// over them, and what follows for users and for the device. A point is the
// units of one load in one trace.
#include "serving/sweep.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "compare/runs/halves.h"
#include "compare/runs/statistics.h"
#include "serving/tables.h"
#include "table/row_columns.h"

namespace lamina::serving {
namespace {

using Load = SweepOptions::Load;
using runs::Phase;
using runs::Unit;

constexpr const char* kWholePass = "all";

// --- fit ---

struct Points {
  std::vector<double> x, t, w;  // w: weights, errors count relative to t

  double Level(size_t begin, size_t end) const {
    double sum = 0, weight = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += w[i] * t[i];
      weight += w[i];
    }
    return sum / weight;
  }
  // Intercept and slope of the weighted line.
  std::pair<double, double> Line(size_t begin) const {
    double weight = 0, mx = 0, mt = 0;
    for (size_t i = begin; i < x.size(); ++i) {
      weight += w[i];
      mx += w[i] * x[i];
      mt += w[i] * t[i];
    }
    mx /= weight;
    mt /= weight;
    double square = 0, product = 0;
    for (size_t i = begin; i < x.size(); ++i) {
      square += w[i] * (x[i] - mx) * (x[i] - mx);
      product += w[i] * (x[i] - mx) * (t[i] - mt);
    }
    const double slope = square > 0 ? product / square : 0;
    return {mt - slope * mx, slope};
  }
  double Residuals(const SweepFit& fit) const {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i)
      sum += std::pow((fit.At(x[i]) - t[i]) / t[i], 2);
    return sum;
  }
};

// --- parts of passes ---

// half, family; or a module or kernel in the place of the family.
using PartKey = std::pair<std::string, std::string>;
using PartTimes = std::map<PartKey, int64_t>;

class PartReader {
 public:
  static Result<PartReader> Of(const analysis::Context& context,
                               SweepOptions::Group group) {
    LAMINA_ASSIGN(auto rules, runs::HalfRules(context));
    return PartReader(context, group, rules);
  }

  // All device work of a unit by part, with what the device waited and what
  // ran beside other work: they add up to the unit.
  PartTimes Of(const Unit& unit) const {
    PartTimes out;
    std::vector<std::string_view> by_sequence;
    if (group_ == SweepOptions::Group::kHalf) {
      bool modules = false;
      for (const auto s : unit.work) {
        const auto half = halves_.Of(s);
        modules |= half && *half != "outside";
      }
      if (!modules) by_sequence = runs::HalvesBySequence(unit);
    }
    for (size_t i = 0; i < unit.work.size(); ++i) {
      const auto s = unit.work[i];
      out[KeyOf(s,
                by_sequence.empty() ? std::string_view() : by_sequence[i])] +=
          context_->trace.Duration(s);
    }
    if (unit.unit_ns > unit.busy_ns)
      out[{"", "idle"}] += unit.unit_ns - unit.busy_ns;
    if (unit.kernel_ns > unit.busy_ns)
      out[{"", "overlap"}] += unit.busy_ns - unit.kernel_ns;
    out[{kWholePass, kWholePass}] = unit.unit_ns;
    return out;
  }

 private:
  PartReader(const analysis::Context& context, SweepOptions::Group group,
             const rules::PatternTable& rules)
      : context_(&context), group_(group), halves_(context, rules) {}

  PartKey KeyOf(trace::SliceId s, std::string_view by_sequence) const {
    const std::string& family =
        context_->catalog.family(context_->device.family(s)).name;
    switch (group_) {
      case SweepOptions::Group::kHalf:
        if (!by_sequence.empty()) return {std::string(by_sequence), family};
        return {std::string(halves_.Of(s).value_or("")), family};
      case SweepOptions::Group::kFamily:
        return {"", family};
      case SweepOptions::Group::kKernel:
        return {family, std::string(context_->trace.Name(s))};
      case SweepOptions::Group::kModule: {
        const auto launcher = context_->device.launcher(s);
        if (!launcher.valid()) return {"", "(outside)"};
        const auto owner = context_->modules.OwnerOf(launcher);
        if (!owner.path.valid()) return {"", "(outside)"};
        return {"", std::string(tree::Modules::ClassName(context_->trace.Text(
                        context_->modules.path(owner.path).name)))};
      }
    }
    return {};
  }

  const analysis::Context* context_;
  SweepOptions::Group group_;
  runs::Halves halves_;
};

// --- rows ---

struct SweepRow {
  std::optional<std::string> stack, half;
  std::string family;
  double x = 0;
  size_t units = 0;
  int64_t time_ns = 0, low_ns = 0, high_ns = 0;
  std::optional<int64_t> per_token_ns;
  std::string trace;
};

const RowColumns<SweepRow>& SweepColumns() {
  static const RowColumns<SweepRow> columns{
      "sweep",
      "Time of each part of a pass at each load. The parts of a load add up to "
      "its row all, but for medians.",
      {{"stack", ColumnType::kText, "Stack of layers; empty: all of them.",
        [](const SweepRow& row) { return Value(row.stack); }, Shown::kHidden},
       {"half", ColumnType::kText,
        "attention or feed_forward, by modules, else by the sequence of "
        "kernels; outside: of no layer; all: the whole pass; empty: not known.",
        [](const SweepRow& row) { return Value(row.half); }},
       {"family", ColumnType::kText,
        "Family of device work; of other groups the module or kernel; idle: "
        "the device waited.",
        &SweepRow::family},
       {"x", ColumnType::kReal, "The load.", &SweepRow::x},
       {"units", ColumnType::kInt, "Passes of this load.", &SweepRow::units},
       {"time_us", ColumnType::kTime, "Median per pass.", &SweepRow::time_ns},
       {"low_us", ColumnType::kTime, "10th percentile.", &SweepRow::low_ns,
        Shown::kHidden},
       {"high_us", ColumnType::kTime, "90th percentile.", &SweepRow::high_ns,
        Shown::kHidden},
       {"time_per_token_us", ColumnType::kTime,
        "Per token that a pass made or read.", &SweepRow::per_token_ns},
       {"trace", ColumnType::kText, "Where it was recorded.",
        &SweepRow::trace}}};
  return columns;
}

struct FitRow {
  std::optional<std::string> stack, half;
  std::string family;
  size_t points = 0;
  std::string_view kind;
  int64_t floor_ns = 0;
  double slope_us = 0;
  std::optional<double> knee, low, high;
  double fit_percent = 0;
  std::optional<std::string> bound, bound_high;
  int64_t time_ns = 0;  // at the highest load: what rows are sorted by
};

const RowColumns<FitRow>& FitColumns() {
  static const RowColumns<FitRow> columns{
      "sweep_fit",
      "How the time of each part grows with the load.",
      {{"stack", ColumnType::kText, "Stack of layers; empty: all of them.",
        [](const FitRow& row) { return Value(row.stack); }, Shown::kHidden},
       {"half", ColumnType::kText, "As in sweep.",
        [](const FitRow& row) { return Value(row.half); }},
       {"family", ColumnType::kText, "As in sweep.", &FitRow::family},
       {"points", ColumnType::kInt, "Loads.", &FitRow::points},
       {"kind", ColumnType::kText,
        "flat; linear; knee: flat up to a load, then linear.", &FitRow::kind},
       {"floor_us", ColumnType::kTime,
        "Of flat and knee the constant; of a line its start at load 0.",
        &FitRow::floor_ns},
       {"slope_us", ColumnType::kReal,
        "Microseconds per unit of load; of a knee above it.",
        &FitRow::slope_us},
       {"knee", ColumnType::kReal, "Load at which it begins to grow.",
        &FitRow::knee},
       {"low", ColumnType::kReal, "Measured load before the knee.",
        &FitRow::low, Shown::kHidden},
       {"high", ColumnType::kReal, "Measured load behind the knee.",
        &FitRow::high, Shown::kHidden},
       {"fit_percent", ColumnType::kReal,
        "Root mean square distance of the points, of their time.",
        &FitRow::fit_percent},
       {"bound", ColumnType::kText,
        "What limits it at the lowest load, by the curve: memory, compute or "
        "launch; empty: the curve does not tell.",
        [](const FitRow& row) { return Value(row.bound); }},
       {"bound_high", ColumnType::kText, "The same at the highest load.",
        [](const FitRow& row) { return Value(row.bound_high); }}}};
  return columns;
}

struct UserRow {
  double x = 0;
  size_t units = 0;
  int64_t pass_ns = 0;
  std::optional<double> per_user, per_device, next_us;
};

const RowColumns<UserRow>& UserColumns() {
  static const RowColumns<UserRow> columns{
      "sweep_users",
      "What a load means for one user and for the device.",
      {{"x", ColumnType::kReal, "The load.", &UserRow::x},
       {"units", ColumnType::kInt, "Passes of this load.", &UserRow::units},
       {"pass_us", ColumnType::kTime, "Median time of a pass.",
        &UserRow::pass_ns},
       {"tokens_per_s_user", ColumnType::kReal,
        "Tokens a second that one request gets, passes back to back.",
        &UserRow::per_user},
       {"tokens_per_s_device", ColumnType::kReal, "Of all of them together.",
        &UserRow::per_device},
       {"next_us", ColumnType::kReal,
        "Microseconds that one unit of load more adds to a pass: the fits of "
        "all "
        "its parts together.",
        &UserRow::next_us}}};
  return columns;
}

// The units of one load in one trace.
struct SweepPoint {
  double x = 0;
  std::string trace;
  std::vector<const Unit*> units;
  std::map<PartKey, std::vector<double>> times;  // ns, per unit
};

std::optional<double> LoadOf(const Unit& unit, Load load) {
  const auto real = [](const std::optional<int64_t>& n) {
    return n && *n > 0 ? std::optional(static_cast<double>(*n)) : std::nullopt;
  };
  switch (load) {
    case Load::kAuto:
    case Load::kBatch:
      if (unit.load.generating.value_or(0) > 0)
        return real(unit.load.generating);
      return unit.load.batch ? real(unit.load.batch)
                             : real(unit.load.context_requests);
    case Load::kContext: {
      const auto sum = real(unit.load.generating_context);
      const auto requests = real(unit.load.generating);
      return sum && requests ? std::optional(*sum / *requests) : std::nullopt;
    }
    case Load::kTokens:
      return unit.load.context_tokens.value_or(0) > 0
                 ? real(unit.load.context_tokens)
                 : real(unit.tokens);
    case Load::kRequests:
      return real(unit.load.context_requests);
  }
  return std::nullopt;
}

constexpr std::string_view kLoadNames[] = {"load", "a batch of", "a context of",
                                           "tokens per pass of", "prompts of"};
constexpr const char* kLoadUnits[] = {"unit", "request", "token of context",
                                      "token", "prompt"};

// By the curve: weights and caches are read at any load, and what is
// multiplied with them takes the place of memory where times begin to grow.
void AddBound(const std::string& family, const SweepFit& fit, size_t kernels,
              FitRow& row) {
  constexpr double kLaunchNs = 5000;
  if (family == "idle" || family == "overlap" || family == kWholePass) return;
  const bool products = family == "gemm" || family == "moe";
  if (fit.kind == SweepFit::Kind::kKnee && products) {
    row.bound = "memory";
    row.bound_high = "compute";
  } else if (fit.kind == SweepFit::Kind::kFlat) {
    const bool small =
        kernels > 0 && fit.floor / static_cast<double>(kernels) < kLaunchNs;
    if (small)
      row.bound = row.bound_high = "launch";
    else if (products)
      row.bound = row.bound_high = "memory";
  } else if (family == "attention") {
    // Decodes read the keys and values of all of the context once.
    row.bound_high = "memory";
  }
}

class Sweeper {
 public:
  Sweeper(const std::vector<SweptTrace>& traces, const SweepOptions& options)
      : traces_(traces), options_(options), load_(options.load) {}

  Result<ResultSet> Make() {
    LAMINA_TRY(ReadUnits());
    LAMINA_TRY(ChoosePhase());
    LAMINA_TRY(MakePoints());
    LAMINA_TRY(AddTimes());
    ResultSet out;
    out.tables.push_back(Fits());
    out.tables.push_back(Users());
    out.tables.push_back(Rows());
    AddSentences(out.notes);
    return out;
  }

 private:
  Status ReadUnits() {
    for (const SweptTrace& trace : traces_) {
      LAMINA_ASSIGN(runs::Units units,
                    runs::FindUnits(*trace.context, true, true));
      if (options_.steady) {
        const auto window = FindSteadyWindow(PassesOf(units), 0, nullptr);
        if (!window) {
          return Fail(InputError(
              trace.name, "has no stretch of even load of 6 passes or more",
              "leave ⟨steady⟩ out"));
        }
        std::erase_if(units.units, [&](const Unit& unit) {
          return unit.start_ns < window->start_ns ||
                 unit.start_ns + unit.unit_ns > window->end_ns;
        });
      }
      units_.push_back(std::move(units));
    }
    return {};
  }

  Status ChoosePhase() {
    std::map<Phase, int64_t> time;
    for (const runs::Units& units : units_) {
      for (const Unit& unit : units.units) time[unit.phase] += unit.unit_ns;
    }
    if (time.empty()) {
      return Fail(InputError(traces_.front().name,
                             "has no passes or steps to take times of",
                             "record several passes with the annotations of "
                             "the engine"));
    }
    phase_ = std::max_element(time.begin(), time.end(),
                              [](const auto& x, const auto& y) {
                                return x.second < y.second;
                              })
                 ->first;
    if (options_.phase) phase_ = *options_.phase;
    if (!time.contains(phase_)) {
      return Fail(InputError(traces_.front().name,
                             fmt::format("and the others have no {} passes",
                                         runs::PhaseName(phase_))));
    }
    return {};
  }

  // Contexts of one trace grow pass by pass: their median counts.
  std::vector<SweepPoint> PointsBy(Load load) const {
    std::vector<SweepPoint> out;
    for (size_t i = 0; i < traces_.size(); ++i) {
      std::map<double, SweepPoint> points;
      std::vector<double> loads;
      for (const Unit& unit : units_[i].units) {
        const auto x = LoadOf(unit, load);
        if (unit.phase != phase_ || !x || unit.unit_ns <= 0) continue;
        loads.push_back(*x);
        points[load == Load::kContext ? 0 : *x].units.push_back(&unit);
      }
      for (auto& [x, point] : points) {
        point.x = load == Load::kContext ? runs::Median(loads) : x;
        point.trace = traces_[i].name;
        out.push_back(std::move(point));
      }
    }
    std::stable_sort(
        out.begin(), out.end(),
        [](const SweepPoint& x, const SweepPoint& y) { return x.x < y.x; });
    return out;
  }

  static size_t Different(const std::vector<SweepPoint>& points) {
    std::set<double> loads;
    for (const SweepPoint& point : points) loads.insert(point.x);
    return loads.size();
  }

  Status MakePoints() {
    std::vector<Load> tried = {load_};
    if (load_ == Load::kAuto) {
      tried = {Load::kBatch, Load::kTokens, Load::kContext};
      if (phase_ != Phase::kDecode) std::swap(tried[0], tried[1]);
    }
    for (const Load load : tried) {
      points_ = PointsBy(load);
      load_ = load;
      if (Different(points_) >= 2) return {};
    }
    return Fail(InputError(
        traces_.front().name,
        points_.empty()
            ? "and the others do not say the load of their passes"
            : "and the others have one load: nothing can grow over it",
        "a sweep takes traces of one model at several batches, contexts or "
        "prompts, with the annotations of the engine"));
  }

  Status AddTimes() {
    std::map<const analysis::Context*, size_t> readers_at;
    std::vector<PartReader> readers;
    for (SweepPoint& point : points_) {
      for (size_t u = 0; u < point.units.size(); ++u) {
        const analysis::Context* const context = point.units[u]->context;
        const auto [at, fresh] =
            readers_at.try_emplace(context, readers.size());
        if (fresh) {
          LAMINA_ASSIGN(auto reader, PartReader::Of(*context, options_.group));
          readers.push_back(std::move(reader));
        }
        for (const auto& [key, ns] : readers[at->second].Of(*point.units[u])) {
          auto& times = point.times[key];
          times.resize(point.units.size(), 0);
          times[u] = static_cast<double>(ns);
        }
      }
    }
    return {};
  }

  std::vector<std::pair<PartKey, std::vector<std::pair<double, double>>>>
  Curves() const {
    std::map<PartKey, std::vector<std::pair<double, double>>> curves;
    for (const SweepPoint& point : points_) {
      for (const auto& [key, times] : point.times)
        curves[key].push_back({point.x, runs::Median(times)});
    }
    return {curves.begin(), curves.end()};
  }

  // Device events of a part in a pass, about: of its family in the first unit.
  size_t Kernels(const PartKey& key) const {
    const Unit& unit = *points_.front().units.front();
    return static_cast<size_t>(std::count_if(
        unit.work.begin(), unit.work.end(), [&](trace::SliceId s) {
          return unit.context->catalog.family(unit.context->device.family(s))
                     .name == key.second;
        }));
  }

  static std::optional<std::string> TextOrNothing(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  }

  Table Fits() {
    for (auto& [key, points] : Curves()) {
      std::erase_if(points,
                    [](const auto& point) { return point.second <= 0; });
      if (points.empty()) continue;
      const SweepFit fit = FitSweep(points);
      FitRow row;
      row.half = TextOrNothing(key.first);
      row.family = key.second;
      row.points = points.size();
      row.kind = SweepKindName(fit.kind);
      row.floor_ns = std::llround(fit.floor);
      row.slope_us = fit.slope * 1e-3;
      row.knee = fit.knee;
      row.low = fit.low;
      row.high = fit.high;
      row.fit_percent = 100 * fit.error;
      row.time_ns = std::llround(points.back().second);
      AddBound(key.second, fit, Kernels(key), row);
      fits_.push_back({row, fit});
    }
    std::stable_sort(fits_.begin(), fits_.end(),
                     [](const auto& x, const auto& y) {
                       return x.first.time_ns > y.first.time_ns;
                     });
    std::vector<FitRow> rows;
    for (const auto& [row, fit] : fits_) rows.push_back(row);
    return FitColumns().Make(rows);
  }

  Table Users() {
    std::map<double, std::vector<double>> walls;
    std::map<double, double> tokens;
    for (const SweepPoint& point : points_) {
      for (const Unit* unit : point.units) {
        walls[point.x].push_back(static_cast<double>(unit->unit_ns));
        tokens[point.x] += static_cast<double>(
            phase_ == Phase::kDecode ? unit->load.generating.value_or(0)
                                     : unit->tokens.value_or(0));
      }
    }
    std::vector<UserRow> rows;
    for (auto& [x, times] : walls) {
      UserRow row;
      row.x = x;
      row.units = times.size();
      const double per_pass = tokens[x] / static_cast<double>(times.size());
      const double wall = runs::Median(times);
      row.pass_ns = std::llround(wall);
      if (phase_ == Phase::kDecode) row.per_user = 1e9 / wall;
      if (per_pass > 0) row.per_device = per_pass * 1e9 / wall;
      row.next_us = 0;
      for (const auto& [part, fit] : fits_) {
        if (part.family != kWholePass)
          *row.next_us += (fit.At(x + 1) - fit.At(x)) * 1e-3;
      }
      rows.push_back(row);
    }
    return UserColumns().Make(rows);
  }

  Table Rows() const {
    std::vector<SweepRow> rows;
    for (const SweepPoint& point : points_) {
      double tokens = 0;
      for (const Unit* unit : point.units) {
        tokens += static_cast<double>(phase_ == Phase::kDecode
                                          ? unit->load.generating.value_or(0)
                                          : unit->tokens.value_or(0));
      }
      tokens /= static_cast<double>(point.units.size());
      for (const auto& [key, times] : point.times) {
        std::vector<double> sorted = times;
        std::sort(sorted.begin(), sorted.end());
        SweepRow row;
        row.half = TextOrNothing(key.first);
        row.family = key.second;
        row.x = point.x;
        row.units = point.units.size();
        row.time_ns = std::llround(runs::Median(times));
        row.low_ns = std::llround(Quantile(sorted, 0.1));
        row.high_ns = std::llround(Quantile(sorted, 0.9));
        if (tokens > 0) {
          row.per_token_ns =
              std::llround(static_cast<double>(row.time_ns) / tokens);
        }
        row.trace = point.trace;
        rows.push_back(std::move(row));
      }
    }
    std::stable_sort(
        rows.begin(), rows.end(), [](const SweepRow& x, const SweepRow& y) {
          return std::tie(x.half, x.family) < std::tie(y.half, y.family);
        });
    return SweepColumns().Make(rows);
  }

  // --- sentences ---

  static std::string PartName(const FitRow& row) {
    if (row.family == kWholePass) return "A whole pass";
    if (!row.half) return row.family;
    if (*row.half == "outside") return row.family + " outside of layers";
    return row.family + " of the " +
           (*row.half == "feed_forward" ? "feed-forward" : *row.half) + " half";
  }

  static std::string Time(double ns) { return HumanTime(std::llround(ns)); }

  std::string Sentence(const FitRow& row, const SweepFit& fit) const {
    const auto load = static_cast<size_t>(load_);
    switch (fit.kind) {
      case SweepFit::Kind::kFlat:
        return fmt::format("{}: flat at {} from {} {:.4g} to {:.4g}.",
                           PartName(row), Time(fit.floor), kLoadNames[load],
                           points_.front().x, points_.back().x);
      case SweepFit::Kind::kLinear:
        return fmt::format("{}: grows from the start, {} per {}.",
                           PartName(row), Time1(fit.slope), kLoadUnits[load]);
      case SweepFit::Kind::kKnee:
        return fmt::format(
            "{}: flat at {} up to {} about {:.0f} (between {:.4g} and {:.4g}), "
            "then {} per {} more.",
            PartName(row), Time(fit.floor), kLoadNames[load], *fit.knee,
            *fit.low, *fit.high, Time1(fit.slope), kLoadUnits[load]);
    }
    return {};
  }
  // Below a nanosecond too.
  static std::string Time1(double ns) {
    return ns >= 10 ? Time(ns) : fmt::format("{:.3g} ns", ns);
  }

  void AddSentences(std::vector<Note>& notes) const {
    constexpr size_t kSentences = 4;
    size_t said = 0;
    for (const auto& [row, fit] : fits_) {
      if (row.family == "idle" || row.family == "overlap") continue;
      if (++said > kSentences) break;
      notes.push_back(MakeNote(Severity::kVerdict, "sweep_fit",
                               Sentence(row, fit),
                               {{"sweep_fit", "family", row.family, {}}}));
    }
    notes.push_back(MakeNote(
        Severity::kInfo, "sweep_points",
        fmt::format("{} passes of {} at {}; x is the {}.",
                    runs::PhaseName(phase_), Counted(traces_.size(), "trace"),
                    Counted(Different(points_), "load"),
                    kLoadUnits[static_cast<size_t>(load_)]),
        {{"sweep", "", "", {}}}));
    AddOthers(notes);
  }

  // Other loads that differ between the points: the curve may be theirs.
  void AddOthers(std::vector<Note>& notes) const {
    for (const Load other : {Load::kContext, Load::kBatch}) {
      if (other == load_) continue;
      std::vector<double> medians;
      for (const SweepPoint& point : points_) {
        std::vector<double> loads;
        for (const Unit* unit : point.units) {
          if (const auto x = LoadOf(*unit, other)) loads.push_back(*x);
        }
        if (!loads.empty()) medians.push_back(runs::Median(loads));
      }
      if (medians.empty()) continue;
      const auto [low, high] =
          std::minmax_element(medians.begin(), medians.end());
      constexpr double kSame = 1.1;
      if (*high <= kSame * *low) continue;
      notes.push_back(MakeNote(
          Severity::kWarning, "sweep_other_load",
          fmt::format("The points also differ in another load: {} {:.4g} to "
                      "{:.4g}.",
                      kLoadNames[static_cast<size_t>(other)], *low, *high),
          {{"sweep", "", "", {}}}));
    }
  }

  const std::vector<SweptTrace>& traces_;
  const SweepOptions& options_;
  Load load_;
  Phase phase_ = Phase::kDecode;
  std::vector<runs::Units> units_;
  std::vector<SweepPoint> points_;
  std::vector<std::pair<FitRow, SweepFit>> fits_;
};

}  // namespace

std::string_view SweepKindName(SweepFit::Kind kind) {
  static constexpr std::string_view kNames[] = {"flat", "linear", "knee"};
  return kNames[static_cast<size_t>(kind)];
}

double SweepFit::At(double load) const {
  switch (kind) {
    case Kind::kFlat:
      return floor;
    case Kind::kLinear:
      return floor + slope * load;
    case Kind::kKnee:
      return std::max(floor, floor + slope * (load - *knee));
  }
  return floor;
}

SweepFit FitSweep(std::vector<std::pair<double, double>> points) {
  std::stable_sort(points.begin(), points.end());
  Points p;
  for (const auto& [x, t] : points) {
    p.x.push_back(x);
    p.t.push_back(t);
    p.w.push_back(1 / (t * t));
  }
  const size_t n = p.x.size();
  const auto count = static_cast<double>(n);
  constexpr double kExact = 0.005;
  const double least = count * kExact * kExact;
  const auto cost = [&](double residuals, double parameters) {
    return count * std::log(std::max(residuals, least) / count) +
           1.5 * parameters * std::log(count);
  };
  SweepFit best;
  best.floor = p.Level(0, n);
  double best_cost = cost(p.Residuals(best), 1);
  const auto take = [&](const SweepFit& fit, double parameters) {
    const double own = cost(p.Residuals(fit), parameters);
    if (own >= best_cost) return;
    best_cost = own;
    best = fit;
  };
  constexpr double kGrows = 0.05;
  const auto [start, slope] = p.Line(0);
  if (slope > 0 && slope * (p.x.back() - p.x.front()) > kGrows * p.t.front()) {
    SweepFit line;
    line.kind = SweepFit::Kind::kLinear;
    line.floor = start;
    line.slope = slope;
    take(line, 2);
  }
  // Points before i are flat.
  for (size_t i = 2; i + 1 < n; ++i) {
    SweepFit knee;
    knee.kind = SweepFit::Kind::kKnee;
    knee.floor = p.Level(0, i);
    const auto [own_start, own_slope] = p.Line(i);
    if (own_slope <= 0) continue;
    knee.slope = own_slope;
    knee.knee = (knee.floor - own_start) / own_slope;
    if (*knee.knee < p.x[i - 2] || *knee.knee > p.x[i]) continue;
    knee.low = p.x[i - 1];
    knee.high = p.x[i];
    take(knee, 3.5);
  }
  best.error = std::sqrt(p.Residuals(best) / count);
  return best;
}

Result<ResultSet> SweepTraces(const std::vector<SweptTrace>& traces,
                              const SweepOptions& options) {
  return Sweeper(traces, options).Make();
}

std::vector<Schema> SweepSchemas() {
  return {FitColumns().schema(), UserColumns().schema(),
          SweepColumns().schema()};
}

}  // namespace lamina::serving
