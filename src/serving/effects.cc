// SPDX-License-Identifier: Apache-2.0
//
// Input: passes, placed requests, and where fixes would save time. Output:
// TTFT, ITL, tokens per second and goodput as ranges. Requests come as they
// did, and passes have the same to do. The least: what lies between two tokens,
// and from the first pass of a prompt to its token, is shorter by the least
// gain there. The most: by the greatest gain, and also what a request waited
// for in its queue. A backlog that would melt away is not counted.
#include "serving/effects.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::serving {
namespace {

// Beyond this share of the time of the server its load would be another.
constexpr double kMostTold = 0.3;

// What is saved in each pass, and in the gap before it.
struct Saving {
  std::vector<int64_t> pass, gap;

  explicit Saving(size_t n) : pass(n), gap(n) {}
};

struct ServedTimes {
  std::vector<double> ttft_ms, itl_ms;
  double tokens_per_s = 0, goodput = 0;
};

struct EffectRow {
  std::string finding, fix, gain_of;
  std::optional<double> ttft_p50, ttft_p99, ttft_p50_least, ttft_p99_least;
  double itl_p50 = 0, itl_p99 = 0, itl_p50_least = 0, itl_p99_least = 0;
  std::optional<double> tokens, tokens_least, goodput, goodput_least;
  double low = 0, high = 0;
  bool told = true;
};

const RowColumns<EffectRow>& EffectColumns() {
  static const RowColumns<EffectRow> columns{
      "fix_effects",
      "What fixes mean for users, against what was measured: negative times "
      "are saved. Requests come as they did, batches stay as they are.",
      {{"finding", ColumnType::kText,
        "Finding of diagnose; interference: no prompt delays the tokens of "
        "others; gaps: passes follow each other at once.",
        &EffectRow::finding},
       {"fix", ColumnType::kText, "What to do.", &EffectRow::fix},
       {"gain_of", ColumnType::kText, "Where time is saved: passes or gaps.",
        &EffectRow::gain_of, Shown::kHidden},
       {"ttft_p50_ms", ColumnType::kReal,
        "Median TTFT: by up to this, with shorter queues; empty: the work is "
        "done elsewhere, and still waited for.",
        &EffectRow::ttft_p50},
       {"ttft_p50_least_ms", ColumnType::kReal,
        "By at least this, with queues as they are.",
        &EffectRow::ttft_p50_least},
       {"ttft_p99_ms", ColumnType::kReal, "99th percentile, by up to this.",
        &EffectRow::ttft_p99},
       {"ttft_p99_least_ms", ColumnType::kReal, "By at least this.",
        &EffectRow::ttft_p99_least, Shown::kHidden},
       {"itl_p50_ms", ColumnType::kReal, "Median ITL, by up to this.",
        &EffectRow::itl_p50},
       {"itl_p50_least_ms", ColumnType::kReal, "By at least this.",
        &EffectRow::itl_p50_least, Shown::kHidden},
       {"itl_p99_ms", ColumnType::kReal, "99th percentile, by up to this.",
        &EffectRow::itl_p99},
       {"itl_p99_least_ms", ColumnType::kReal, "By at least this.",
        &EffectRow::itl_p99_least},
       {"tokens_per_s_percent", ColumnType::kReal,
        "More tokens per second of device time between passes, up to this.",
        &EffectRow::tokens, Shown::kPercent},
       {"tokens_per_s_least_percent", ColumnType::kReal, "At least this.",
        &EffectRow::tokens_least, Shown::kHidden},
       {"goodput", ColumnType::kReal,
        "Requests within all limits, in percent, up to this.",
        &EffectRow::goodput, Shown::kPercent},
       {"goodput_least", ColumnType::kReal, "At least this.",
        &EffectRow::goodput_least, Shown::kHidden},
       {"low", ColumnType::kReal,
        "Share of the time of the server that is gained at least, in percent.",
        &EffectRow::low, Shown::kPercent},
       {"high", ColumnType::kReal, "And at most.", &EffectRow::high,
        Shown::kPercent},
       {"told", ColumnType::kBool,
        "false: more than 30 % of the time, where batches would be others: "
        "more than can be told from this load.",
        &EffectRow::told, Shown::kHidden}}};
  return columns;
}

class Rerun {
 public:
  Rerun(const std::vector<ServedPass>& passes, const Join& join,
        const std::vector<Limit>& limits)
      : passes_(passes), join_(join), limits_(limits) {
    const size_t n = passes.size();
    first_arrival_.assign(n, INT64_MIN);
    std::vector<int64_t> change(n + 1);
    for (const PlacedRequest& one : join.requests) {
      size_t begin = one.pass.front(), end = one.pass.front();
      if (!one.prompt.empty()) {
        begin = one.prompt.front().pass;
        first_arrival_[begin] = std::max(first_arrival_[begin], one.arrival_ns);
      }
      for (const size_t p : one.pass) {
        if (p != kNoPass) end = p;
      }
      if (begin == kNoPass || end == kNoPass) continue;
      ++change[begin];
      --change[end + 1];
    }
    // A gap with nothing to do is not the server's.
    busy_before_.assign(n, true);
    int64_t running = 0;
    for (size_t p = 0; p < n; ++p) {
      if (p > 0) {
        running += change[p - 1];
        const int64_t ended = change[p] < 0 ? -change[p] : 0;
        busy_before_[p] = running - ended > 0 || passes_[p].waiting > 0 ||
                          first_arrival_[p] < passes_[p - 1].end_ns;
      }
    }
  }

  // What lies between two tokens is shorter by what is saved there; `queues`:
  // what a request waited for, too.
  ServedTimes Times(const Saving& saving, double scale, bool queues) const {
    ServedTimes out;
    size_t judged = 0, met = 0, tokens = 0;
    for (const PlacedRequest& one : join_.requests) {
      if (one.state == PlacedState::kOutside || one.pass.front() == kNoPass)
        continue;
      int64_t first = 0, last = 0, before = 0;
      std::vector<double> own;
      for (size_t i = 0; i < one.pass.size(); ++i) {
        const size_t p = one.pass[i];
        if (p == kNoPass) continue;
        const bool known = i > 0 && one.pass[i - 1] != kNoPass;
        int64_t at = one.token_ns[i];
        if (i == 0) {
          at -= Between(saving, FirstPass(one), p, scale, false);
          if (queues) at -= InQueue(saving, one, scale);
        } else if (known) {
          at = before + one.token_ns[i] - one.token_ns[i - 1] -
               Between(saving, one.pass[i - 1] + 1, p, scale, true);
        }
        if (i == 0) {
          first = at;
          out.ttft_ms.push_back(Milliseconds(at - one.arrival_ns));
        } else if (known) {
          own.push_back(Milliseconds(at - before));
        }
        before = last = at;
        ++tokens;
      }
      if (one.state == PlacedState::kComplete && !limits_.empty()) {
        ++judged;
        met += Meets(one, first, last, own);
      }
      out.itl_ms.insert(out.itl_ms.end(), own.begin(), own.end());
    }
    std::sort(out.ttft_ms.begin(), out.ttft_ms.end());
    std::sort(out.itl_ms.begin(), out.itl_ms.end());
    if (judged > 0)
      out.goodput =
          100 * static_cast<double>(met) / static_cast<double>(judged);
    // Per time in which the server had something to do.
    int64_t busy = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      busy += passes_[p].wall_ns() -
              Scaled(saving.pass[p], scale, passes_[p].wall_ns());
      if (p > 0 && busy_before_[p]) {
        busy +=
            std::max<int64_t>(0, passes_[p].start_ns - passes_[p - 1].end_ns) -
            SavedGap(saving, p, scale);
      }
    }
    if (busy > 0)
      out.tokens_per_s =
          static_cast<double>(tokens) * 1e9 / static_cast<double>(busy);
    return out;
  }

  int64_t BusyNs() const {
    int64_t out = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      out += passes_[p].wall_ns();
      if (p > 0 && busy_before_[p])
        out +=
            std::max<int64_t>(0, passes_[p].start_ns - passes_[p - 1].end_ns);
    }
    return out;
  }

  bool BusyBefore(size_t p) const { return p > 0 && busy_before_[p]; }

 private:
  // Saved in passes `from` to `to`, with the gaps between them and, where
  // `gap`, before the first.
  int64_t Between(const Saving& saving, size_t from, size_t to, double scale,
                  bool gap) const {
    int64_t saved = 0;
    for (size_t q = from; q <= to; ++q) {
      saved += Scaled(saving.pass[q], scale, passes_[q].wall_ns());
      if (q > from || gap) saved += SavedGap(saving, q, scale);
    }
    return saved;
  }

  // Saved in what ran while a request waited; of the pass that ran when it came
  // the part behind that.
  int64_t InQueue(const Saving& saving, const PlacedRequest& one,
                  double scale) const {
    int64_t saved = 0;
    for (size_t q = FirstPass(one); q-- > 0;) {
      if (passes_[q].end_ns <= one.arrival_ns) break;
      const int64_t own = Scaled(saving.pass[q], scale, passes_[q].wall_ns());
      const int64_t behind =
          std::min(passes_[q].wall_ns(), passes_[q].end_ns - one.arrival_ns);
      saved +=
          std::llround(
              static_cast<double>(own) * static_cast<double>(behind) /
              static_cast<double>(std::max<int64_t>(1, passes_[q].wall_ns()))) +
          SavedGap(saving, q + 1, scale);
    }
    return saved;
  }

  static int64_t Scaled(int64_t saved, double scale, int64_t most) {
    return std::clamp<int64_t>(std::llround(scale * static_cast<double>(saved)),
                               0, most);
  }
  int64_t SavedGap(const Saving& saving, size_t p, double scale) const {
    if (!BusyBefore(p)) return 0;
    const int64_t gap = passes_[p].start_ns - passes_[p - 1].end_ns;
    return gap > 0 ? Scaled(saving.gap[p], scale, gap) : 0;
  }
  static size_t FirstPass(const PlacedRequest& one) {
    return one.prompt.empty() ? one.pass.front() : one.prompt.front().pass;
  }

  bool Meets(const PlacedRequest& one, int64_t first, int64_t last,
             std::vector<double> itl) const {
    std::sort(itl.begin(), itl.end());
    for (const Limit& limit : limits_) {
      if (limit.percentile) continue;
      const double most = Milliseconds(limit.most_ns);
      double value = 0;
      switch (limit.of) {
        case Limit::Of::kTtft:
          value = Milliseconds(first - one.arrival_ns);
          break;
        case Limit::Of::kItl:
          value = itl.empty() ? 0 : Quantile(itl, 0.99);
          break;
        case Limit::Of::kTpot:
          value = itl.empty() ? 0
                              : Milliseconds(last - first) /
                                    static_cast<double>(itl.size());
          break;
        case Limit::Of::kEndToEnd:
          value = Milliseconds(last - one.arrival_ns);
          break;
      }
      if (value > most) return false;
    }
    return true;
  }

  const std::vector<ServedPass>& passes_;
  const Join& join_;
  const std::vector<Limit>& limits_;
  std::vector<int64_t> first_arrival_;  // the last of those it begins with
  std::vector<bool> busy_before_;
};

// Time of spans in each pass and in the gap before it.
Saving SavingOf(const std::vector<ServedPass>& passes,
                const std::vector<Interval>& spans) {
  Saving out(passes.size());
  const IntervalSet all = IntervalSet::Of(spans);
  const auto& sorted = all.intervals();
  const auto inside = [&](int64_t begin, int64_t end) {
    int64_t sum = 0;
    auto at = std::lower_bound(sorted.begin(), sorted.end(), begin,
                               [](const Interval& interval, int64_t t) {
                                 return interval.end_ns <= t;
                               });
    for (; at != sorted.end() && at->start_ns < end; ++at)
      sum += std::min(end, at->end_ns) - std::max(begin, at->start_ns);
    return sum;
  };
  for (size_t p = 0; p < passes.size(); ++p) {
    out.pass[p] = inside(passes[p].start_ns, passes[p].end_ns);
    if (p > 0 && passes[p].start_ns > passes[p - 1].end_ns)
      out.gap[p] = inside(passes[p - 1].end_ns, passes[p].start_ns);
  }
  return out;
}

class EffectMaker {
 public:
  EffectMaker(const std::vector<ServedPass>& passes, const Join& join,
              const std::vector<Limit>& limits)
      : passes_(passes),
        limited_(
            std::any_of(limits.begin(), limits.end(),
                        [](const Limit& limit) { return !limit.percentile; })),
        rerun_(passes, join, limits),
        now_(rerun_.Times(Saving(passes.size()), 0, false)) {}

  bool usable() const { return !now_.ttft_ms.empty(); }

  // `low`, `high`: what of `saving` is gained; `saves_work`: nobody does it.
  void Add(std::string finding, std::string fix, const Saving& saving,
           double low, double high, bool saves_work = true) {
    int64_t in_passes = 0, in_gaps = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      in_passes += saving.pass[p];
      if (rerun_.BusyBefore(p)) in_gaps += saving.gap[p];
    }
    const auto busy =
        static_cast<double>(std::max<int64_t>(1, rerun_.BusyNs()));
    EffectRow row;
    row.finding = std::move(finding);
    row.fix = std::move(fix);
    row.gain_of = in_gaps == 0     ? "passes"
                  : in_passes == 0 ? "gaps"
                                   : "passes and gaps";
    const auto all = static_cast<double>(in_passes + in_gaps);
    row.low = 100 * low * all / busy;
    row.high = 100 * high * all / busy;
    if (row.high <= 0) return;
    const ServedTimes least = rerun_.Times(saving, low, false);
    const ServedTimes most = rerun_.Times(saving, high, true);
    const auto change = [&](const std::vector<double>& now,
                            const std::vector<double>& then, double share) {
      return now.empty() ? 0.0 : Quantile(then, share) - Quantile(now, share);
    };
    row.itl_p50 = change(now_.itl_ms, most.itl_ms, 0.5);
    row.itl_p99 = change(now_.itl_ms, most.itl_ms, 0.99);
    row.itl_p50_least = change(now_.itl_ms, least.itl_ms, 0.5);
    row.itl_p99_least = change(now_.itl_ms, least.itl_ms, 0.99);
    // What is done elsewhere is still to be waited for.
    if (saves_work) {
      row.ttft_p50 = change(now_.ttft_ms, most.ttft_ms, 0.5);
      row.ttft_p99 = change(now_.ttft_ms, most.ttft_ms, 0.99);
      row.ttft_p50_least = change(now_.ttft_ms, least.ttft_ms, 0.5);
      row.ttft_p99_least = change(now_.ttft_ms, least.ttft_ms, 0.99);
      row.tokens = Percent(most.tokens_per_s);
      row.tokens_least = Percent(least.tokens_per_s);
      if (limited_) {
        row.goodput = most.goodput;
        row.goodput_least = least.goodput;
      }
    }
    row.told = row.high <= 100 * kMostTold;
    rows_.push_back(std::move(row));
  }

  Table Take(std::vector<Note>& notes) const {
    for (const EffectRow& row : rows_) {
      if (notes.size() >= kSentences) break;
      notes.push_back(MakeNote(Severity::kInfo, "requests_fix", Sentence(row),
                               {{"fix_effects", "finding", row.finding, {}}}));
    }
    return EffectColumns().Make(rows_);
  }

 private:
  static constexpr size_t kSentences = 4;

  double Percent(double rate) const {
    return now_.tokens_per_s > 0 ? 100 * (rate / now_.tokens_per_s - 1) : 0;
  }

  static std::string Range(double least, double most) {
    const auto time = [](double ms) {
      return HumanTime(std::llround(std::max(0.0, -ms) * 1e6));
    };
    return fmt::format("{} to {}", time(std::max(least, most)),
                       time(std::min(least, most)));
  }

  static std::string Sentence(const EffectRow& row) {
    if (!row.told) {
      return fmt::format(
          "{}: up to {:.0f} % of the time, more than can be "
          "told from this load.",
          row.fix, row.high);
    }
    std::string text = fmt::format("{}: ITL p99 {} shorter", row.fix,
                                   Range(row.itl_p99_least, row.itl_p99));
    if (row.ttft_p50) {
      text += fmt::format(", TTFT p50 {} shorter",
                          Range(*row.ttft_p50_least, *row.ttft_p50));
    }
    return text + ".";
  }

  const std::vector<ServedPass>& passes_;
  const bool limited_;
  const Rerun rerun_;
  const ServedTimes now_;
  std::vector<EffectRow> rows_;
};

}  // namespace

Schema EffectSchema() { return EffectColumns().schema(); }

Table EffectTable(const std::vector<ServedPass>& passes, const Join& join,
                  const std::vector<Limit>& limits,
                  const std::vector<FixGain>& gains, std::vector<Note>& notes) {
  EffectMaker maker(passes, join, limits);
  if (!maker.usable()) return maker.Take(notes);
  const DecodeTimes decodes(passes);
  Saving prompts(passes.size()), gaps(passes.size());
  for (size_t p = 0; p < passes.size(); ++p) {
    const ServedPass& pass = passes[p];
    if (p > 0) {
      gaps.gap[p] = std::max<int64_t>(0, pass.start_ns - passes[p - 1].end_ns);
    }
    const auto alone = decodes.Of(pass.generating.value_or(0));
    // A pass of prompts alone stays: its own requests wait for it.
    if (pass.MayHavePrompts() && pass.generating.value_or(0) > 0 && alone)
      prompts.pass[p] = std::max<int64_t>(0, pass.wall_ns() - *alone);
  }
  maker.Add("interference", "Smaller chunks, or prompts on another device",
            prompts, 0, 1, false);
  maker.Add("gaps", "Overlap the scheduler with the device", gaps, 0, 1);
  for (const FixGain& one : gains) {
    const Saving saving = SavingOf(passes, one.spans);
    const int64_t all = IntervalSet::Of(one.spans).length_ns();
    if (all <= 0) continue;
    const auto part = [&](int64_t ns) {
      return std::min(1.0, static_cast<double>(std::max<int64_t>(0, ns)) /
                               static_cast<double>(all));
    };
    maker.Add(one.finding, one.fix, saving, part(one.low_ns),
              part(one.high_ns));
  }
  return maker.Take(notes);
}

}  // namespace lamina::serving
