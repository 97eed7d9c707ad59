// SPDX-License-Identifier: Apache-2.0
#include "compare/runs/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "compare/runs/differences.h"
#include "compare/runs/match.h"
#include "table/row_columns.h"

namespace lamina::runs {
namespace {

constexpr std::string_view kSides[] = {"a", "b"};

struct VerdictRow {
  std::string scope;
  std::string_view verdict, reason;
  std::string what;
  std::optional<double> change, low, high, level, threshold, detectable,
      per_token;
  std::optional<int64_t> mean_a_ns, mean_b_ns, delta_ns;
  std::optional<double> busy, busy_low, busy_high;
  std::optional<double> share;
  size_t units_a = 0, units_b = 0;
  std::string_view measure;
  double run_noise = 0;
  std::string_view run_noise_from;
};

const RowColumns<VerdictRow>& VerdictColumns() {
  static const RowColumns<VerdictRow> columns{
      "diff_verdict",
      "Whether B takes longer than A, by unit: in all, and by phase.",
      {{"scope", ColumnType::kText, "all, or a phase.", &VerdictRow::scope},
       {"verdict", ColumnType::kText,
        "pass, fail, unknown, or not_asked without a limit.",
        &VerdictRow::verdict},
       {"reason", ColumnType::kText,
        "slower, device_work (its device works longer, which idle time hides), "
        "not_slower, interval (it holds the limit), few_units, "
        "no_partner, same_recording, or the check of diff_comparable that "
        "stops.",
        &VerdictRow::reason},
       {"what", ColumnType::kText, "The same as a sentence.",
        &VerdictRow::what},
       {"change_percent", ColumnType::kReal, "100 (B / A - 1) of a unit.",
        &VerdictRow::change},
       {"low_percent", ColumnType::kReal, "The change is at least this.",
        &VerdictRow::low},
       {"high_percent", ColumnType::kReal, "The change is at most this.",
        &VerdictRow::high},
       {"level_percent", ColumnType::kReal, "Probability of the interval.",
        &VerdictRow::level, Shown::kHidden},
       {"threshold_percent", ColumnType::kReal, "The limit.",
        &VerdictRow::threshold, Shown::kHidden},
       {"detectable_percent", ColumnType::kReal,
        "The change that these units would have shown (power 80 %).",
        &VerdictRow::detectable},
       {"per_token_percent", ColumnType::kReal,
        "Change per token, where units have other tokens.",
        &VerdictRow::per_token, Shown::kHidden},
       {"mean_a_us", ColumnType::kTime, "Mean unit of A.",
        &VerdictRow::mean_a_ns},
       {"mean_b_us", ColumnType::kTime, "Mean unit of B, with the mix of A.",
        &VerdictRow::mean_b_ns},
       {"delta_us", ColumnType::kTime, "B minus A.", &VerdictRow::delta_ns},
       {"busy_percent", ColumnType::kReal,
        "Change of the time in which the device works, per unit; empty where "
        "it waits for other ranks.",
        &VerdictRow::busy, Shown::kHidden},
       {"busy_low_percent", ColumnType::kReal, "It is at least this.",
        &VerdictRow::busy_low, Shown::kHidden},
       {"busy_high_percent", ColumnType::kReal, "It is at most this.",
        &VerdictRow::busy_high, Shown::kHidden},
       {"share_percent", ColumnType::kReal, "Share of the time of A.",
        &VerdictRow::share, Shown::kPercent},
       {"units_a", ColumnType::kInt, "Matched units of A.",
        &VerdictRow::units_a},
       {"units_b", ColumnType::kInt, "Matched units of B.",
        &VerdictRow::units_b},
       {"measure", ColumnType::kText, "unit, kernel_time or busy.",
        &VerdictRow::measure, Shown::kHidden},
       {"run_noise_percent", ColumnType::kReal,
        "What recordings of one program differ by, one standard deviation.",
        &VerdictRow::run_noise, Shown::kHidden},
       {"run_noise_from", ColumnType::kText,
        "given, measured in the store of runs, recordings (measured between "
        "those that are compared), or assumed.",
        &VerdictRow::run_noise_from, Shown::kHidden}}};
  return columns;
}

struct ClassRow {
  std::string_view phase;
  std::string name;
  size_t units_a = 0, units_b = 0, matched = 0;
  std::string_view matching;
  int64_t a_ns = 0, b_ns = 0;
  double change = 0;
  std::optional<double> low = std::nullopt, high = std::nullopt;
  double spread_a = 0, spread_b = 0, detectable = 0, share = 0;
};

const RowColumns<ClassRow>& ClassColumns() {
  static const RowColumns<ClassRow> columns{
      "diff_units",
      "Units of equal load, which were compared.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &ClassRow::phase},
       {"class", ColumnType::kText, "Their load.", &ClassRow::name},
       {"units_a", ColumnType::kInt, "Units of A.", &ClassRow::units_a},
       {"units_b", ColumnType::kInt, "Units of B.", &ClassRow::units_b},
       {"matched", ColumnType::kInt, "Units that meet, of the smaller side.",
        &ClassRow::matched},
       {"matching", ColumnType::kText,
        "unpaired: each with each; context: pairs of near context.",
        &ClassRow::matching, Shown::kHidden},
       {"a_us", ColumnType::kTime, "Median of A.", &ClassRow::a_ns},
       {"b_us", ColumnType::kTime, "Median of B.", &ClassRow::b_ns},
       {"change_percent", ColumnType::kReal, "100 (B / A - 1).",
        &ClassRow::change},
       {"low_percent", ColumnType::kReal, "The change is at least this.",
        &ClassRow::low},
       {"high_percent", ColumnType::kReal, "The change is at most this.",
        &ClassRow::high},
       {"spread_a_percent", ColumnType::kReal,
        "Robust standard deviation of A.", &ClassRow::spread_a, Shown::kHidden},
       {"spread_b_percent", ColumnType::kReal,
        "Robust standard deviation of B.", &ClassRow::spread_b, Shown::kHidden},
       {"detectable_percent", ColumnType::kReal,
        "The change that these units would have shown (power 80 %).",
        &ClassRow::detectable, Shown::kHidden},
       {"share_percent", ColumnType::kReal, "Share of the time of A.",
        &ClassRow::share, Shown::kPercent}}};
  return columns;
}

struct LeftRow {
  std::string_view side;
  size_t unit = 0;
  std::string_view phase, reason;
  int64_t start_ns = 0, unit_ns = 0;
  size_t kernels = 0;
};

const RowColumns<LeftRow>& LeftColumns() {
  static const RowColumns<LeftRow> columns{
      "diff_left_out",
      "Units that were not compared, and why.",
      {{"side", ColumnType::kText, "a or b.", &LeftRow::side},
       {"unit", ColumnType::kInt,
        "Number of the unit, from 0; of a rank its own.", &LeftRow::unit},
       {"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &LeftRow::phase},
       {"reason", ColumnType::kText,
        "partial_first, partial_last: cut by the trace; warmup; sample: of "
        "very many units some are compared, evenly taken; no_partner: the "
        "other side has none of its load or context; rank: nor that rank.",
        &LeftRow::reason},
       {"start_us", ColumnType::kTime, "Begin, from the first event.",
        &LeftRow::start_ns},
       {"unit_us", ColumnType::kTime, "Its time.", &LeftRow::unit_ns},
       {"kernels", ColumnType::kInt, "Device events.", &LeftRow::kernels}}};
  return columns;
}

struct CheckRow {
  std::string_view check;
  std::string a, b;
  std::string_view status, effect;
  std::string what;
};

const RowColumns<CheckRow>& CheckColumns() {
  static const RowColumns<CheckRow> columns{
      "diff_comparable",
      "Whether the two can be compared at all.",
      {{"check", ColumnType::kText, "Stable name.", &CheckRow::check},
       {"a", ColumnType::kText, "Of A.", &CheckRow::a},
       {"b", ColumnType::kText, "Of B.", &CheckRow::b},
       {"status", ColumnType::kText, "same, differs or unknown.",
        &CheckRow::status},
       {"effect", ColumnType::kText,
        "none; care: read the rows with it in mind; stops: no verdict.",
        &CheckRow::effect},
       {"what", ColumnType::kText, "What it means.", &CheckRow::what}}};
  return columns;
}

struct PairRow {
  std::string_view phase;
  std::string name;
  size_t unit_a = 0, unit_b = 0;
  int64_t context_a = 0, context_b = 0, a_ns = 0, b_ns = 0;
  double change = 0;
};

const RowColumns<PairRow>& PairColumns() {
  static const RowColumns<PairRow> columns{
      "diff_pairs",
      "Pairs of units of near context.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &PairRow::phase},
       {"class", ColumnType::kText, "Their load.", &PairRow::name},
       {"unit_a", ColumnType::kInt, "Number of the unit of A.",
        &PairRow::unit_a},
       {"unit_b", ColumnType::kInt, "Number of the unit of B.",
        &PairRow::unit_b},
       {"context_a", ColumnType::kInt, "Tokens of context.",
        &PairRow::context_a},
       {"context_b", ColumnType::kInt, "Tokens of context.",
        &PairRow::context_b},
       {"a_us", ColumnType::kTime, "Of A.", &PairRow::a_ns},
       {"b_us", ColumnType::kTime, "Of B.", &PairRow::b_ns},
       {"change_percent", ColumnType::kReal, "100 (B / A - 1).",
        &PairRow::change}}};
  return columns;
}

// --- clocks ---

// The n-th kernel of a name in its unit is one thing; things that must be
// computed and not moved go with the clock.
using Things = std::map<std::pair<std::string, size_t>, std::vector<double>>;

Things ThingsOf(const std::vector<const Unit*>& units) {
  Things things;
  if (units.empty()) return things;
  std::vector<size_t> compute;
  for (const std::string_view name : {"gemm", "attention", "conv", "moe"})
    compute.push_back(units.front()->context->catalog.FamilyIndex(name));
  for (const Unit* unit : units) {
    const Context& context = *unit->context;
    std::map<std::string_view, size_t> seen;
    for (const SliceId s : unit->work) {
      if (std::find(compute.begin(), compute.end(), context.device.family(s)) ==
          compute.end())
        continue;
      const std::string_view name = context.trace.Name(s);
      things[{std::string(name), ++seen[name]}].push_back(
          std::max<double>(1, static_cast<double>(context.trace.Duration(s))));
    }
  }
  std::erase_if(things, [](const auto& thing) {
    constexpr size_t kLeast = 4;
    return thing.second.size() < kLeast;
  });
  return things;
}

// The one shift by which all things changed; nothing where there is none.
std::optional<double> OneRatio(const rules::Catalog& catalog, const Things& a,
                               const Things& b) {
  constexpr size_t kLeastThings = 3;
  constexpr double kLeastShift = 0.02, kNear = 0.015, kShare = 0.9;
  std::vector<double> shifts;
  std::map<size_t, size_t> families;
  for (const auto& [key, times] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    shifts.push_back(std::log(Median(other->second) / Median(times)));
    const auto family = catalog.KernelFamily(key.first);
    ++families[catalog.FamilyIndex(family)];
  }
  if (shifts.size() < kLeastThings || families.size() < 2) return std::nullopt;
  const double middle = Median(shifts);
  const auto near = static_cast<double>(std::count_if(
      shifts.begin(), shifts.end(),
      [&](double shift) { return std::abs(shift - middle) <= kNear; }));
  if (std::abs(middle) <= kLeastShift ||
      near < kShare * static_cast<double>(shifts.size()))
    return std::nullopt;
  return middle;
}

std::vector<const Unit*> UnitsOf(const MatchedPhase& phase, size_t side) {
  std::vector<const Unit*> units;
  for (const MatchedClass* one : phase.classes)
    units.insert(units.end(), one->matched[side].begin(),
                 one->matched[side].end());
  std::sort(units.begin(), units.end(),
            [](const Unit* x, const Unit* y) { return x->number < y->number; });
  return units;
}

// What all compute-bound kernels changed by, because the device ran at another
// clock: one ratio in all phases, or within one recording. Empty: no sign of
// it.
std::string ClockText(const rules::Catalog& catalog, const Matching& matching) {
  constexpr double kPhasesNear = 0.02;
  std::vector<double> shifts;
  for (const MatchedPhase& phase : matching.phases) {
    const auto shift = OneRatio(catalog, ThingsOf(UnitsOf(phase, 0)),
                                ThingsOf(UnitsOf(phase, 1)));
    if (!shift) {
      shifts.clear();
      break;
    }
    shifts.push_back(*shift);
  }
  const auto [least, most] = std::minmax_element(shifts.begin(), shifts.end());
  if (!shifts.empty() && *most - *least < kPhasesNear) {
    return fmt::format("all compute-bound kernels take {:.1f} % {}",
                       std::abs(PercentOf(shifts[0])),
                       shifts[0] > 0 ? "more" : "less");
  }
  for (const size_t side : {size_t{1}, size_t{0}}) {
    for (const MatchedPhase& phase : matching.phases) {
      // Where contexts grow, attention takes longer without any clock.
      if (std::any_of(phase.classes.begin(), phase.classes.end(),
                      [](const MatchedClass* one) { return one->paired; }))
        continue;
      const auto units = UnitsOf(phase, side);
      const size_t third = units.size() / 3;
      if (third < 3) continue;
      const std::vector<const Unit*> first(
          units.begin(), units.begin() + static_cast<ptrdiff_t>(third));
      const std::vector<const Unit*> last(
          units.end() - static_cast<ptrdiff_t>(third), units.end());
      // A third has few units: all of them count.
      const auto shift = OneRatio(catalog, ThingsOf(first), ThingsOf(last));
      if (shift) {
        return fmt::format(
            "all compute-bound kernels of {} take {:.1f} % {} at its end than "
            "at its begin",
            side == 0 ? "A" : "B", std::abs(PercentOf(*shift)),
            *shift > 0 ? "more" : "less");
      }
    }
  }
  return {};
}

// --- the verdict ---

// What a side is, as texts; empty: not known.
struct Facts {
  std::string model, device, type, ranks;
};

class Comparer {
 public:
  Comparer(const PerSide<Side const*>& given, const PerSide<Units>& sides,
           const Options& options)
      : given_(given),
        contexts_{given[0]->ranks.front(), given[1]->ranks.front()},
        sides_(sides),
        options_(options),
        matching_(MatchUnits(sides, options)) {
    clocks_ = ClockText(contexts_[0]->catalog, matching_);
    for (const size_t side : {size_t{0}, size_t{1}})
      facts_[side] = {ModelOf(*contexts_[side]), DeviceOf(side), TypeOf(side),
                      RanksOf(*given[side])};
  }

  Comparer(const PerSide<Side const*>& none, const PerSide<Units>& sides,
           PerSide<Facts> facts, const Options& options)
      : given_(none),
        sides_(sides),
        options_(options),
        matching_(MatchUnits(sides, options)),
        facts_(std::move(facts)) {}

  Compared RunKept(const PerSide<const std::vector<Part>*>& parts) {
    Compared out = JudgeAll();
    std::vector<Table> differences;
    differences.push_back(KeptParts(parts, matching_));
    SayDifferences(differences, out.result.notes);
    out.result.tables.push_back(std::move(differences.front()));
    out.result.tables.push_back(Pairs());
    return out;
  }

  Result<Compared> Run() {
    Compared out = JudgeAll();
    LAMINA_ASSIGN(
        auto differences,
        DifferenceTables(*contexts_[0], matching_, options_, out.result.notes));
    SayDifferences(differences, out.result.notes);
    for (Table& table : differences)
      out.result.tables.push_back(std::move(table));
    out.result.tables.push_back(Pairs());
    return out;
  }

 private:
  // What all comparisons have.
  Compared JudgeAll() {
    Compared out;
    out.matched = true;
    Check();
    Judge();
    auto& tables = out.result.tables;
    tables.push_back(VerdictColumns().Make(verdicts_));
    tables.push_back(Classes());
    tables.push_back(CheckColumns().Make(checks_));
    tables.push_back(LeftOutTable());
    Say(out.result.notes);
    out.verdict = verdict_;
    return out;
  }

  void AddCheck(std::string_view check, std::string a, std::string b,
                std::string_view effect, std::string what) {
    const bool known = !a.empty() && !b.empty();
    const bool same = a == b;
    checks_.push_back({check, std::move(a), std::move(b),
                       !known ? "unknown"
                       : same ? "same"
                              : "differs",
                       !known || same ? "none" : effect,
                       !known || same ? std::string() : std::move(what)});
  }

  std::string DeviceOf(size_t side) const {
    const auto& devices = contexts_[side]->trace.info.devices;
    return devices.empty() ? std::string() : devices.front().name;
  }

  std::string TypeOf(size_t side) const {
    std::vector<const Unit*> units;
    for (const MatchedPhase& phase : matching_.phases) {
      const auto own = UnitsOf(phase, side);
      units.insert(units.end(), own.begin(), own.end());
    }
    return MainType(units);
  }

  // Whether the matched units are replays of graphs.
  std::string ReplayOf(size_t side) const {
    size_t units = 0, replayed = 0;
    for (const MatchedPhase& phase : matching_.phases) {
      for (const Unit* unit : UnitsOf(phase, side)) {
        ++units;
        replayed += unit->replayed;
      }
    }
    return units == 0          ? ""
           : replayed == 0     ? "launched"
           : replayed == units ? "replayed"
                               : "some replayed";
  }

  static std::string RanksOf(const Side& side) {
    if (side.recordings) return {};
    const size_t all = side.ranks.size() + side.left_out.size();
    return all == 1 ? std::string() : Counted(all, "rank");
  }

  // The loads of all units, for the check of what has no partner.
  std::string LoadsOf(size_t side) const {
    std::map<int64_t, size_t> tokens;
    size_t without = 0;
    for (const Unit& unit : sides_[side].units) {
      if (unit.tokens) {
        ++tokens[*unit.tokens];
      } else {
        ++without;
      }
    }
    if (tokens.size() == 1 && without == 0)
      return fmt::format("{} tokens", tokens.begin()->first);
    return fmt::format("{} loads", tokens.size() + (without > 0));
  }

  void Check() {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      counts_[side] =
          sides_[side].units.size() -
          static_cast<size_t>(std::count_if(
              matching_.left_out.begin(), matching_.left_out.end(),
              [&](const LeftOut& left) {
                return left.side == side && left.reason != "no_partner";
              }));
    }
    constexpr size_t kFewSteps = 4;
    AddCheck("steps", Counted(counts_[0], "unit"), Counted(counts_[1], "unit"),
             std::min(counts_[0], counts_[1]) < kFewSteps ? "care" : "none",
             "Units are compared one by one: their number does not matter.");
    if (matching_.share < 0.5) {
      checks_.push_back(
          {"batch", LoadsOf(0), LoadsOf(1), "differs", "stops",
           fmt::format("Units with {:.0f} % of the time of A have "
                       "no partner of their load in B.",
                       100 * (1 - matching_.share))});
    } else {
      checks_.push_back({"batch", LoadsOf(0), LoadsOf(1), "same", "none", ""});
    }
    if (given_[0]->left_out.size() + given_[1]->left_out.size() > 0) {
      checks_.push_back({"ranks", facts_[0].ranks, facts_[1].ranks, "differs",
                         "care",
                         "Only ranks that both sides have are compared."});
    } else {
      AddCheck("ranks", facts_[0].ranks, facts_[1].ranks, "care",
               "The jobs have other ranks.");
    }
    const bool layers = OtherLayers(facts_[0].model, facts_[1].model);
    AddCheck("model", facts_[0].model, facts_[1].model,
             layers ? "stops" : "care",
             layers ? "The recordings are of models with other numbers of "
                      "layers."
                    : "Modules have other classes.");
    AddCheck("device", facts_[0].device, facts_[1].device,
             options_.fail_above ? "stops" : "care",
             "The traces are of different devices.");
    AddCheck("dtype", facts_[0].type, facts_[1].type, "care",
             "Most of the matrix products have another element type.");
    if (contexts_[0] != nullptr) {
      AddCheck("graphs", ReplayOf(0), ReplayOf(1), "care",
               "The host launches graphs on one side: its time, and ops, are "
               "others.");
      AddCheck("recorder", RecorderOf(contexts_[0]->trace),
               RecorderOf(contexts_[1]->trace), "care",
               "What else the profiler records takes time of the host.");
      AddCheck("versions", VersionsOf(contexts_[0]->trace),
               VersionsOf(contexts_[1]->trace), "none",
               "Driver or runtime are others.");
    }
    checks_.push_back({"clocks", "", "",
                       clocks_.empty() ? "unknown" : "differs",
                       clocks_.empty() ? "none" : "care", clocks_});
  }

  // The check that leaves no verdict; empty: none.
  std::string_view Stop() const {
    for (const CheckRow& check : checks_) {
      if (check.effect == "stops") return check.check;
    }
    return {};
  }

  std::string_view MeasureName() const {
    return options_.measure == Measure::kUnit         ? "unit"
           : options_.measure == Measure::kKernelTime ? "kernel_time"
                                                      : "busy";
  }

  VerdictRow NewRow(std::string scope) const {
    VerdictRow row;
    row.scope = std::move(scope);
    row.level = 100 * options_.level;
    if (options_.fail_above) row.threshold = *options_.fail_above * 100;
    row.measure = MeasureName();
    row.run_noise = 100 * RunNoise(options_);
    static constexpr std::string_view kFrom[] = {"given", "measured",
                                                 "recordings"};
    row.run_noise_from = !options_.run_noise
                             ? "assumed"
                             : kFrom[static_cast<size_t>(options_.noise_from)];
    return row;
  }

  struct Judged {
    Verdict verdict = Verdict::kNotAsked;
    std::string_view reason;
  };

  Judged JudgePhase(const MatchedPhase& phase) const {
    if (!options_.fail_above) return {Verdict::kNotAsked, ""};
    if (matching_.same_recording) return {Verdict::kPass, "same_recording"};
    if (!phase.gate.low) return {Verdict::kUnknown, "few_units"};
    if (std::expm1(*phase.gate.low) > *options_.fail_above) {
      return clocks_.empty() ? Judged{Verdict::kFail, "slower"}
                             : Judged{Verdict::kUnknown, "clocks"};
    }
    if (phase.busy_gate && phase.busy_gate->low && *phase.gate.high >= 0 &&
        std::expm1(*phase.busy_gate->low) > *options_.fail_above) {
      return clocks_.empty() ? Judged{Verdict::kFail, "device_work"}
                             : Judged{Verdict::kUnknown, "clocks"};
    }
    if (std::expm1(*phase.gate.high) <= *options_.fail_above)
      return {Verdict::kPass, "not_slower"};
    // Where the clock explains what is more, the interval is not what is
    // missing.
    return {Verdict::kUnknown, clocks_.empty() ? "interval" : "clocks"};
  }

  static std::string_view NameOf(Verdict verdict) {
    static constexpr std::string_view kNames[] = {"not_asked", "pass", "fail",
                                                  "unknown"};
    return kNames[static_cast<size_t>(verdict)];
  }

  void Judge() {
    verdicts_.push_back(NewRow("all"));
    Judged all{options_.fail_above ? Verdict::kPass : Verdict::kNotAsked,
               options_.fail_above ? "not_slower" : ""};
    if (options_.fail_above && matching_.same_recording)
      all.reason = "same_recording";
    for (const MatchedPhase& phase : matching_.phases) {
      const Judged own = JudgePhase(phase);
      VerdictRow row = NewRow(std::string(PhaseName(phase.phase)));
      row.verdict = NameOf(own.verdict);
      row.reason = own.reason;
      row.change = PercentOf(phase.change.estimate);
      if (phase.change.low) {
        row.low = PercentOf(*phase.change.low);
        row.high = PercentOf(*phase.change.high);
      }
      row.detectable = 100 * phase.detectable;
      row.mean_a_ns = std::llround(phase.mean_ns[0]);
      row.mean_b_ns = std::llround(phase.mean_ns[1]);
      row.delta_ns = std::llround(phase.mean_ns[1] - phase.mean_ns[0]);
      if (phase.busy) row.busy = PercentOf(phase.busy->estimate);
      if (phase.busy && phase.busy->low) {
        row.busy_low = PercentOf(*phase.busy->low);
        row.busy_high = PercentOf(*phase.busy->high);
      }
      row.share = 100 * phase.share;
      row.units_a = phase.units[0];
      row.units_b = phase.units[1];
      row.what = PhaseText(phase, own);
      verdicts_.push_back(std::move(row));
      if (std::max(phase.share_of_side[0], phase.share_of_side[1]) < kGateShare)
        continue;
      if (own.verdict == Verdict::kFail ||
          (own.verdict == Verdict::kUnknown && all.verdict == Verdict::kPass))
        all = own;
    }
    if (matching_.per_token && matching_.phases.empty()) {
      VerdictRow row = NewRow("train");
      row.verdict =
          NameOf(options_.fail_above ? Verdict::kUnknown : Verdict::kNotAsked);
      row.reason = "batch";
      row.per_token = 100 * *matching_.per_token;
      row.what = fmt::format(
          "Steps have other tokens ({}, {}); per token B takes {:.1f} % {}.",
          LoadsOf(0), LoadsOf(1), std::abs(100 * *matching_.per_token),
          *matching_.per_token > 0 ? "more" : "less");
      verdicts_.push_back(std::move(row));
    }
    const std::string_view stop = Stop();
    if (options_.fail_above && !matching_.same_recording &&
        (!stop.empty() || matching_.phases.empty())) {
      all = {Verdict::kUnknown, stop.empty() ? "no_partner" : stop};
    }
    verdict_ = all.verdict;
    verdicts_[0].verdict = NameOf(all.verdict);
    verdicts_[0].reason = all.reason;
    verdicts_[0].units_a = counts_[0];
    verdicts_[0].units_b = counts_[1];
  }

  std::string UnitWord(Phase phase) const {
    switch (phase) {
      case Phase::kTrain:
      case Phase::kEval:
        return "Each step";
      case Phase::kPrefill:
        return "Prefill";
      case Phase::kDecode:
        return "Decode";
      case Phase::kMixed:
        return "A mixed pass";
      case Phase::kPass:
        break;
    }
    return "Each pass";
  }

  // "8 steps": what units are.
  std::string CountOfUnits(size_t count) const {
    const std::string& basis = sides_[0].basis;
    if (basis == kPassBasis) return Counted(count, "pass", "passes");
    return Counted(count, basis == kWindowBasis ? "window" : "step");
  }

  std::string PhaseText(const MatchedPhase& phase, const Judged& judged) const {
    const std::string unit = UnitWord(phase.phase);
    std::string text;
    if (matching_.same_recording) {
      text = unit + " is the same: both are one recording.";
    } else if (!phase.change.low) {
      text = fmt::format(
          "{} takes {:.1f} % {} ({} against {}), but {} and {} are too few for "
          "an interval.",
          unit, std::abs(PercentOf(phase.change.estimate)),
          phase.change.estimate > 0 ? "more" : "less",
          HumanTime(std::llround(phase.mean_ns[1])),
          HumanTime(std::llround(phase.mean_ns[0])),
          CountOfUnits(phase.units[0]),
          GroupDigits(static_cast<int64_t>(phase.units[1])));
    } else if (*phase.change.low <= 0 && *phase.change.high >= 0) {
      text = fmt::format(
          "{}: no difference that {} of A and {} of {} can show ({:+.1f} %, "
          "between {:+.1f} and {:+.1f} %; {:.1f} % could be seen).",
          unit, CountOfUnits(phase.units[0]),
          GroupDigits(static_cast<int64_t>(phase.units[1])), options_.letter,
          PercentOf(phase.change.estimate), PercentOf(*phase.change.low),
          PercentOf(*phase.change.high), 100 * phase.detectable);
      text += HiddenText(phase);
    } else {
      const bool more = phase.change.estimate > 0;
      double low = std::abs(PercentOf(*phase.change.low));
      double high = std::abs(PercentOf(*phase.change.high));
      if (low > high) std::swap(low, high);
      text = fmt::format(
          "{} takes {:.1f} % {} ({:.1f} to {:.1f} %): {} against {}; {} of A, "
          "{} of {}.",
          unit, std::abs(PercentOf(phase.change.estimate)),
          more ? "more" : "less", low, high,
          HumanTime(std::llround(phase.mean_ns[1])),
          HumanTime(std::llround(phase.mean_ns[0])),
          CountOfUnits(phase.units[0]),
          GroupDigits(static_cast<int64_t>(phase.units[1])), options_.letter);
    }
    if (judged.verdict == Verdict::kFail)
      text += fmt::format(" FAIL above {} %.", Limit());
    return text;
  }

  // Work of the device that changed within a unit that did not: idle time
  // hides it.
  static std::string HiddenText(const MatchedPhase& phase) {
    if (!phase.busy || !phase.busy->low ||
        (*phase.busy->low <= 0 && *phase.busy->high >= 0))
      return {};
    double low = std::abs(PercentOf(*phase.busy->low));
    double high = std::abs(PercentOf(*phase.busy->high));
    if (low > high) std::swap(low, high);
    return fmt::format(
        " But the device works {:.1f} % {} in it ({:.1f} to {:.1f} %): {} "
        "against {}, which idle time hides.",
        std::abs(PercentOf(phase.busy->estimate)),
        phase.busy->estimate > 0 ? "longer" : "less", low, high,
        HumanTime(std::llround(phase.busy_ns[1])),
        HumanTime(std::llround(phase.busy_ns[0])));
  }

  std::string Limit() const {
    return fmt::format("{:g}", *options_.fail_above * 100);
  }

  Table Classes() const {
    std::vector<ClassRow> rows;
    for (const MatchedClass& one : matching_.classes) {
      const auto median = [&](size_t side) {
        std::vector<double> times;
        for (const Unit* unit : one.matched[side])
          times.push_back(static_cast<double>(unit->Time(options_.measure)));
        return std::llround(Median(std::move(times)));
      };
      ClassRow row{
          .phase = PhaseName(one.phase),
          .name = one.name,
          .units_a = one.units[0],
          .units_b = one.units[1],
          .matched = std::min(one.matched[0].size(), one.matched[1].size()),
          .matching = one.paired ? "context" : "unpaired",
          .a_ns = median(0),
          .b_ns = median(1),
          .change = PercentOf(one.change.estimate),
          .spread_a = 100 * one.spread[0],
          .spread_b = 100 * one.spread[1],
          .detectable = 100 * one.detectable,
          .share = 100 * one.share};
      if (one.change.low) {
        row.low = PercentOf(*one.change.low);
        row.high = PercentOf(*one.change.high);
      }
      rows.push_back(std::move(row));
    }
    return ClassColumns().Make(rows);
  }

  // A store keeps times from the begin of the trace.
  static int64_t FromBegin(const Unit& unit) {
    return unit.start_ns -
           (unit.context == nullptr ? 0 : unit.context->trace.first_ns);
  }

  Table LeftOutTable() const {
    std::vector<LeftRow> rows;
    for (const LeftOut& left : matching_.left_out) {
      rows.push_back({.side = kSides[left.side],
                      .unit = left.unit->number,
                      .phase = PhaseName(left.unit->phase),
                      .reason = left.reason,
                      .start_ns = FromBegin(*left.unit),
                      .unit_ns = left.unit->unit_ns,
                      .kernels = left.unit->events});
    }
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const int64_t rank : given_[side]->left_out) {
        rows.push_back({.side = kSides[side],
                        .unit = static_cast<size_t>(rank),
                        .phase = "",
                        .reason = "rank"});
      }
    }
    return LeftColumns().Make(rows);
  }

  Table Pairs() const {
    std::vector<PairRow> rows;
    for (const MatchedClass& one : matching_.classes) {
      if (!one.paired) continue;
      for (size_t i = 0; i < one.matched[0].size(); ++i) {
        const Unit& a = *one.matched[0][i];
        const Unit& b = *one.matched[1][i];
        const auto before = static_cast<double>(a.Time(options_.measure));
        rows.push_back(
            {.phase = PhaseName(one.phase),
             .name = one.name,
             .unit_a = a.number,
             .unit_b = b.number,
             .context_a = *a.load.generating_context,
             .context_b = *b.load.generating_context,
             .a_ns = a.Time(options_.measure),
             .b_ns = b.Time(options_.measure),
             .change =
                 100 *
                 (static_cast<double>(b.Time(options_.measure)) / before - 1)});
      }
    }
    return PairColumns().Make(rows);
  }

  // --- sentences ---

  void Say(std::vector<Note>& notes) const {
    std::string text;
    if (options_.several) text = fmt::format("{}: ", options_.letter);
    for (const CheckRow& check : checks_) {
      if (check.check == "dtype" && check.status == "differs")
        text += fmt::format("{} -> {}: ", EscapeTerminal(check.a),
                            EscapeTerminal(check.b));
    }
    if (!clocks_.empty()) {
      std::string clock = clocks_;
      clock[0] = static_cast<char>(std::toupper(clock[0]));
      text += clock +
              ": another clock or power cap, not a kernel. Record again, or "
              "fix the clocks (nvidia-smi -lgc). ";
    }
    for (size_t i = 1; i < verdicts_.size(); ++i)
      text += (i > 1 ? " " : "") + verdicts_[i].what;
    if (matching_.phases.empty() && !matching_.per_token)
      text += "No unit of A has a partner of its load in B.";
    if (options_.fail_above && verdict_ == Verdict::kUnknown) {
      text +=
          fmt::format(" Whether {} is more than {} % slower is unknown ({}).",
                      options_.letter, Limit(), verdicts_[0].reason);
    }
    notes.push_back(MakeNote(Severity::kVerdict, "diff_units_verdict", text,
                             {{"diff_verdict", "scope", "all", {}}}));
    std::map<std::pair<size_t, std::string_view>, size_t> reasons;
    for (const LeftOut& left : matching_.left_out)
      ++reasons[{left.side, left.reason}];
    if (reasons.empty()) return;
    std::string out;
    for (const auto& [key, count] : reasons) {
      out += fmt::format("{}{} of {} ({})", out.empty() ? "" : ", ",
                         Counted(count, "unit"),
                         key.first == 0 ? 'A' : options_.letter, key.second);
    }
    notes.push_back(MakeNote(Severity::kInfo, "diff_left_out",
                             "Left out: " + out + ".",
                             {{"diff_left_out", "", "", {}}}));
  }

  // The op of the kernels of a family that changed most this way; empty: no op
  // is known.
  static std::string MostIn(const Table& aligned, std::string_view phase,
                            std::string_view family, bool more) {
    std::map<std::string, int64_t> ops;
    for (size_t r = 0; r < aligned.rows(); ++r) {
      if (aligned.At(r, "phase").text() != phase ||
          aligned.At(r, "family").text() != family)
        continue;
      for (const char* column : {"op_b", "op_a"}) {
        if (aligned.At(r, column).null()) continue;
        ops[std::string(aligned.At(r, column).text())] +=
            aligned.At(r, "delta_us").integer();
        break;
      }
    }
    std::string most;
    int64_t largest = 0;
    for (const auto& [op, delta] : ops) {
      if ((more ? delta : -delta) <= largest) continue;
      largest = std::abs(delta);
      most = op;
    }
    return most;
  }

  // What became of kernels, for a sentence; empty: they only changed their
  // time.
  static std::string KindInWords(const Table& aligned, size_t row) {
    const std::string_view kind = aligned.At(row, "kind").text();
    if (kind == "changed") return {};
    if (kind == "dtype") {
      return fmt::format("of another element type ({} -> {})",
                         aligned.At(row, "dtype_a").text(),
                         aligned.At(row, "dtype_b").text());
    }
    static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
        {"other_kernel", "other kernels"},
        {"other_shape", "with other shapes"},
        {"only_a", "only in A"},
        {"only_b", "only in B"}};
    for (const auto& [name, words] : kWords) {
      if (kind == name) return std::string(words);
    }
    return std::string(kind);
  }

  // Kernels that became much slower while others of their family became faster:
  // the sum of the family does not show them.
  void SayHidden(const Table& parts, const Table& aligned,
                 std::vector<Note>& notes) const {
    constexpr double kLeastShare = 0.01, kLeastRatio = 1.5;
    std::map<std::pair<std::string, std::string>, int64_t> families;
    for (size_t r = 0; r < parts.rows(); ++r) {
      families[{std::string(parts.At(r, "phase").text()),
                std::string(parts.At(r, "family").text())}] +=
          parts.At(r, "delta_us").integer();
    }
    for (size_t r = 0; r < aligned.rows(); ++r) {
      const int64_t before = aligned.At(r, "a_us").integer();
      const int64_t delta = aligned.At(r, "delta_us").integer();
      const std::string phase(aligned.At(r, "phase").text());
      const auto own =
          std::find_if(matching_.phases.begin(), matching_.phases.end(),
                       [&](const MatchedPhase& one) {
                         return PhaseName(one.phase) == phase;
                       });
      const double ratio = static_cast<double>(before + delta) /
                           std::max<double>(1, static_cast<double>(before));
      if (aligned.At(r, "kind").text() != "changed" || before == 0 ||
          own == matching_.phases.end() || ratio < kLeastRatio ||
          static_cast<double>(delta) < kLeastShare * own->mean_ns[0] ||
          2 * families[{phase, std::string(aligned.At(r, "family").text())}] >
              delta)
        continue;
      const Value op = aligned.At(r, "op_b"),
                  shapes = aligned.At(r, "shapes_b");
      notes.push_back(MakeNote(
          Severity::kWarning, "diff_hidden",
          fmt::format(
              "{}{} takes {:.3g} times as long, +{} per unit, which "
              "others of its family hide.",
              EscapeTerminal(std::string(
                  op.null() ? aligned.At(r, "kernel_b").text() : op.text())),
              shapes.null() ? ""
                            : " " + EscapeTerminal(std::string(shapes.text())),
              ratio, HumanTime(delta)),
          {{"diff_aligned", "", "", {}}}));
      return;  // rows are sorted: the largest
    }
  }

  // The largest sure parts and what was fused, one line each.
  void SayDifferences(const std::vector<Table>& tables,
                      std::vector<Note>& notes) const {
    if (matching_.phases.empty() || matching_.same_recording) return;
    const Table& parts = tables[0];
    std::string text;
    size_t said = 0;
    constexpr size_t kMost = 3;
    for (size_t r = 0; r < parts.rows() && said < kMost; ++r) {
      if (parts.At(r, "sure").null() || parts.At(r, "sure").integer() == 0)
        continue;
      const std::string half(
          parts.At(r, "half").null() ? "" : parts.At(r, "half").text());
      const std::string most =
          tables.size() < 3 ? ""
                            : MostIn(tables[2], parts.At(r, "phase").text(),
                                     parts.At(r, "family").text(),
                                     parts.At(r, "delta_us").integer() > 0);
      text +=
          fmt::format("{}{}{} {}{} of {}{}", text.empty() ? "" : "; ",
                      half.empty() || half == "outside" ||
                              half == parts.At(r, "family").text()
                          ? ""
                          : half + " ",
                      parts.At(r, "family").text(),
                      parts.At(r, "delta_us").integer() > 0 ? "+" : "-",
                      HumanTime(std::abs(parts.At(r, "delta_us").integer())),
                      HumanTime(parts.At(r, "a_us").integer()),
                      most.empty() ? "" : ", most in " + EscapeTerminal(most));
      ++said;
    }
    if (!text.empty()) {
      notes.push_back(MakeNote(Severity::kInfo, "diff_parts",
                               "Per unit: " + text + ".",
                               {{"diff_parts", "", "", {}}}));
    }
    if (tables.size() < 3) return;
    const Table& aligned = tables[2];
    SayHidden(parts, aligned, notes);
    std::map<std::string, size_t> kinds;
    for (size_t r = 0; r < aligned.rows(); ++r) {
      const std::string kind = KindInWords(aligned, r);
      if (!kind.empty())
        kinds[kind] +=
            static_cast<size_t>(aligned.At(r, "calls_per_unit").integer());
    }
    std::string changes;
    for (const auto& [kind, count] : kinds)
      changes +=
          fmt::format("{}{} {}", changes.empty() ? "" : ", ", count, kind);
    if (!changes.empty()) {
      notes.push_back(
          MakeNote(Severity::kInfo, "diff_aligned",
                   "Kernels of one unit side by side: " + changes + ".",
                   {{"diff_aligned", "", "", {}}}));
    }
  }

  const PerSide<Side const*>& given_;
  const PerSide<Context const*> contexts_{};  // of the first ranks
  const PerSide<Units>& sides_;
  const Options& options_;
  const Matching matching_;
  PerSide<Facts> facts_;
  PerSide<size_t> counts_{};
  std::string clocks_;
  std::vector<CheckRow> checks_;
  std::vector<VerdictRow> verdicts_;
  Verdict verdict_ = Verdict::kNotAsked;
};

}  // namespace

std::vector<Schema> Schemas() {
  std::vector<Schema> schemas = {
      VerdictColumns().schema(), ClassColumns().schema(),
      CheckColumns().schema(), LeftColumns().schema()};
  for (Schema& schema : DifferenceSchemas())
    schemas.push_back(std::move(schema));
  schemas.push_back(PairColumns().schema());
  return schemas;
}

Compared CompareKept(const KeptSide& a, const KeptSide& b,
                     const Options& options) {
  if (a.units.units.empty() || b.units.units.empty()) return {};
  static const Side kNone;
  const PerSide<Side const*> none = {&kNone, &kNone};
  const PerSide<Units> units = {a.units, b.units};
  PerSide<Facts> facts = {Facts{a.model, a.device, a.type, a.ranks},
                          Facts{b.model, b.device, b.type, b.ranks}};
  return Comparer(none, units, std::move(facts), options)
      .RunKept({&a.parts, &b.parts});
}

Result<Compared> CompareUnits(const Side& a, const Side& b,
                              const Options& options) {
  const PerSide<Side const*> given = {&a, &b};
  PerSide<Units> sides;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    std::vector<Units> ranks;
    for (const Context* rank : given[side]->ranks) {
      LAMINA_ASSIGN(Units units,
                    FindUnits(*rank, options.steps, options.passes));
      ranks.push_back(std::move(units));
    }
    sides[side] = given[side]->recordings ? OneAfterTheOther(std::move(ranks))
                                          : SlowestRanks(std::move(ranks));
  }
  if (sides[0].units.empty() || sides[1].units.empty()) return Compared();
  if (!a.recordings && !b.recordings)
    return Comparer(given, sides, options).Run();
  Options how = options;
  MeasureNoise(sides, how);
  return Comparer(given, sides, how).Run();
}

}  // namespace lamina::runs
