// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: the tables of requests, each with its columns, over one
// account of every gap between tokens.
#include "serving/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "compare/runs/statistics.h"
#include "serving/effects.h"
#include "table/row_columns.h"

namespace lamina::serving {
namespace {

using OptionalReal = std::optional<double>;

// --- the account of one request ---

enum class Meeting : uint8_t { kNone, kOwnPass, kSharedPass, kPreempted };
constexpr std::array<const char*, 4> kMeetingNames = {
    "none", "own_pass", "shared_pass", "preempted"};

// The gap before one chunk of tokens.
struct TokenGap {
  size_t from = kNoPass, pass = kNoPass;
  int64_t begin_ns = 0;
  int64_t gap_ns = 0;  // all of it
  int64_t decode_ns = 0, host_ns = 0, stopped_ns = 0, shared_ns = 0;
  int64_t rest_ns() const {
    return gap_ns - decode_ns - host_ns - stopped_ns - shared_ns;
  }
  Meeting meeting = Meeting::kNone;
};

struct RequestTimes {
  const PlacedRequest* placed = nullptr;
  std::optional<int64_t> queue_ns, prefill_ns, between_ns, after_ns;
  std::vector<TokenGap> gaps;  // of tokens whose passes are both known
  size_t decode_passes = 0;
  std::optional<int64_t> itl_mean_ns, itl_p99_ns, tpot_ns;
  int64_t stopped_ns = 0, shared_ns = 0;
  std::optional<bool> met;

  bool complete() const { return placed->state == PlacedState::kComplete; }
};

class Accountant {
 public:
  Accountant(const std::vector<ServedPass>& passes, const Records& records)
      : passes_(passes), decodes_(passes), every_token_(records.every_token) {}

  RequestTimes Of(const PlacedRequest& placed) const {
    RequestTimes out;
    out.placed = &placed;
    const Request& request = *placed.request;
    if (placed.prompt_known && placed.pass.front() != kNoPass) {
      const ServedPass& first = passes_[placed.prompt.front().pass];
      const ServedPass& last = passes_[placed.pass.front()];
      out.queue_ns = first.start_ns - placed.arrival_ns;
      out.prefill_ns = last.end_ns - first.start_ns;
      out.after_ns = placed.Ttft() - *out.queue_ns - *out.prefill_ns;
      int64_t own = 0;
      for (const Chunk& chunk : placed.prompt)
        own += passes_[chunk.pass].wall_ns();
      out.between_ns = *out.prefill_ns - own;
    }
    if (every_token_) AddGaps(placed, out);
    const auto& at = request.chunk_ns;
    if (at.size() > 1) {
      const auto tokens = std::max<int64_t>(request.output_tokens.value_or(0),
                                            static_cast<int64_t>(at.size()));
      out.tpot_ns = (at.back() - at.front()) / (tokens - 1);
      if (every_token_) {
        std::vector<double> itl;
        for (size_t i = 1; i < at.size(); ++i)
          itl.push_back(static_cast<double>(at[i] - at[i - 1]));
        std::sort(itl.begin(), itl.end());
        out.itl_p99_ns = std::llround(Quantile(itl, 0.99));
        out.itl_mean_ns =
            (at.back() - at.front()) / static_cast<int64_t>(at.size() - 1);
      }
    }
    return out;
  }

 private:
  void AddGaps(const PlacedRequest& placed, RequestTimes& out) const {
    for (size_t i = 1; i < placed.pass.size(); ++i) {
      const size_t p = placed.pass[i - 1], q = placed.pass[i];
      if (q != kNoPass && q != p) ++out.decode_passes;
      if (p == kNoPass || q == kNoPass) continue;
      TokenGap gap;
      gap.from = p;
      gap.pass = q;
      gap.begin_ns = placed.token_ns[i - 1];
      gap.gap_ns = placed.token_ns[i] - placed.token_ns[i - 1];
      if (q > p) Split(gap);
      out.stopped_ns += gap.stopped_ns;
      out.shared_ns += gap.shared_ns;
      out.gaps.push_back(gap);
    }
  }

  void Split(TokenGap& gap) const {
    constexpr size_t kPreempted = 20;  // passes without a token
    const ServedPass& own = passes_[gap.pass];
    // Passes of several streams may overlap: what begins before the last one
    // ended has no gap.
    const int64_t before = std::min(passes_[gap.pass - 1].end_ns, own.start_ns);
    gap.host_ns = own.start_ns - before;
    gap.stopped_ns = before - passes_[gap.from].end_ns;
    gap.decode_ns = own.end_ns - own.start_ns;
    if (gap.from + 1 == gap.pass) {
      gap.host_ns += gap.stopped_ns;
      gap.stopped_ns = 0;
    }
    bool prompts = false;
    for (size_t j = gap.from + 1; j < gap.pass && !prompts; ++j)
      prompts = passes_[j].MayHavePrompts();
    if (own.MayHavePrompts() && own.generating.value_or(0) > 0) {
      const auto alone = decodes_.Of(*own.generating);
      if (alone) {
        gap.shared_ns =
            std::clamp<int64_t>(gap.decode_ns - *alone, 0, gap.decode_ns);
        gap.decode_ns -= gap.shared_ns;
      }
    }
    gap.meeting = prompts && gap.pass - gap.from > kPreempted
                      ? Meeting::kPreempted
                  : prompts              ? Meeting::kOwnPass
                  : own.MayHavePrompts() ? Meeting::kSharedPass
                                         : Meeting::kNone;
  }

  const std::vector<ServedPass>& passes_;
  const DecodeTimes decodes_;
  const bool every_token_;
};

OptionalReal Ms(const std::optional<int64_t>& ns) {
  return ns ? OptionalReal(Milliseconds(*ns)) : std::nullopt;
}

// --- requests_join ---

struct JoinRow {
  std::string_view status, clock;
  std::string format;
  size_t requests = 0, placed = 0, cut = 0, outside = 0;
  size_t failed = 0, unusable = 0;
  OptionalReal offset_s, uncertainty_ms, delay_ms, drift_ppm;
  double score = 0, second = 0;
  size_t passes = 0, explained = 0;
  OptionalReal other;
};

const RowColumns<JoinRow>& JoinColumns() {
  static const RowColumns<JoinRow> columns{
      "requests_join",
      "Whether and how the records of clients were laid on the trace.",
      {{"status", ColumnType::kText,
        "joined; no_fit: the tokens fit no place; ambiguous: they fit "
        "several; no_start_times; clocks_apart: clocks differ by more than a "
        "pass; no_passes: the trace does not say what passes had to do.",
        &JoinRow::status},
       {"format", ColumnType::kText, "Form of the records.", &JoinRow::format},
       {"requests", ColumnType::kInt, "Requests of the records.",
        &JoinRow::requests},
       {"placed", ColumnType::kInt,
        "Of them with tokens that passes of the trace made.", &JoinRow::placed},
       {"cut", ColumnType::kInt,
        "Of those: began before the recording, or ended after it.",
        &JoinRow::cut},
       {"outside", ColumnType::kInt, "Without a token in the recording.",
        &JoinRow::outside, Shown::kHidden},
       {"failed", ColumnType::kInt,
        "Left out: failed, cancelled or of a warm-up.", &JoinRow::failed,
        Shown::kHidden},
       {"unusable", ColumnType::kInt, "Left out: without usable times.",
        &JoinRow::unusable, Shown::kHidden},
       {"clock", ColumnType::kText,
        "epoch: wall clock of both; own: the offset was found by the tokens.",
        &JoinRow::clock},
       {"offset_s", ColumnType::kReal,
        "Clock of the records minus that of the trace, in seconds; of wall "
        "clocks minus the wall clock of the trace.",
        &JoinRow::offset_s},
       {"drift_ppm", ColumnType::kReal,
        "How much faster the clock of the records goes, in millionths.",
        &JoinRow::drift_ppm, Shown::kHidden},
       {"uncertainty_ms", ColumnType::kReal,
        "Requests may have come later than said by up to this: an own clock "
        "cannot tell offset from delay. Only queue times depend on it.",
        &JoinRow::uncertainty_ms},
       {"delay_ms", ColumnType::kReal,
        "Median time from the end of a pass to its tokens at the client.",
        &JoinRow::delay_ms},
       {"score_percent", ColumnType::kReal,
        "How well tokens fit what the passes say of themselves.",
        &JoinRow::score, Shown::kPercent},
       {"second_percent", ColumnType::kReal,
        "The same of the best other placement.", &JoinRow::second,
        Shown::kPercent},
       {"passes", ColumnType::kInt, "Passes that say their load.",
        &JoinRow::passes, Shown::kHidden},
       {"passes_explained", ColumnType::kInt,
        "Of them with as many tokens as they must have given.",
        &JoinRow::explained, Shown::kHidden},
       {"other_tokens_percent", ColumnType::kReal,
        "Tokens of passes that belong to no request of the records.",
        &JoinRow::other, Shown::kPercent}}};
  return columns;
}

Table JoinTable(const Records& records, const Join& join) {
  JoinRow row;
  row.status = JoinStatusName(join.status);
  row.format = records.format;
  row.requests = records.requests.size();
  row.failed = records.failed + records.warmup;
  row.unusable = records.unusable;
  row.clock = ClockName(join.clock);
  row.score = 100 * join.score;
  row.second = 100 * join.second;
  if (join.status == JoinStatus::kJoined) {
    for (const PlacedRequest& one : join.requests) {
      row.placed += one.state != PlacedState::kOutside;
      row.cut += one.state == PlacedState::kCut;
      row.outside += one.state == PlacedState::kOutside;
    }
    row.offset_s = static_cast<double>(join.offset_ns) * 1e-9;
    if (join.clock == Clock::kEpoch && join.delay_ns)
      row.offset_s = static_cast<double>(*join.delay_ns) * 1e-9;
    row.drift_ppm = join.drift_ppm;
    row.uncertainty_ms = Milliseconds(join.uncertainty_ns);
    row.delay_ms = Ms(join.delay_ns);
    row.passes = join.passes_judged;
    row.explained = join.passes_explained;
    row.other = 100 * join.other_tokens;
  }
  return JoinColumns().Make({row});
}

// --- requests_summary ---

struct SummaryRow {
  std::string metric;
  size_t requests = 0;
  OptionalReal mean, p50, p90, p99, p99_low, p99_high, max;
  std::optional<size_t> met;
};

const RowColumns<SummaryRow>& SummaryColumns() {
  static const RowColumns<SummaryRow> columns{
      "requests_summary",
      "Times of all requests, in milliseconds, as their clients saw them.",
      {{"metric", ColumnType::kText,
        "ttft_ms: to the first token; itl_ms: between two chunks of tokens; "
        "tpot_ms: per token behind the first; e2e_ms: to the last; queue_ms, "
        "prefill_ms, after_ms: parts of the first; output_tokens_per_s: of "
        "all; goodput: requests per second that meet all limits.",
        &SummaryRow::metric},
       {"requests", ColumnType::kInt,
        "Values: requests; of itl_ms gaps between tokens.",
        &SummaryRow::requests},
       {"mean", ColumnType::kReal, "Mean; of rates the rate.",
        &SummaryRow::mean},
       {"p50", ColumnType::kReal, "Median.", &SummaryRow::p50},
       {"p90", ColumnType::kReal, "90th percentile.", &SummaryRow::p90},
       {"p99", ColumnType::kReal, "99th percentile.", &SummaryRow::p99},
       {"p99_low", ColumnType::kReal,
        "The 99th percentile is at least this, at 95 %, by order statistics.",
        &SummaryRow::p99_low, Shown::kHidden},
       {"p99_high", ColumnType::kReal,
        "And at most this; empty: too few values to tell.",
        &SummaryRow::p99_high, Shown::kHidden},
       {"max", ColumnType::kReal, "The longest.", &SummaryRow::max},
       {"met", ColumnType::kInt, "Of goodput: requests that meet all limits.",
        &SummaryRow::met}}};
  return columns;
}

// Ranks, from 0, between which a quantile lies with 95 %: nothing where there
// are too few values for either side.
struct RankBounds {
  std::optional<size_t> low, high;
};

RankBounds BoundsOf(size_t n, double share) {
  RankBounds out;
  // P(X <= k) of the binomial distribution, term by term in logarithms; what is
  // 12 standard deviations below the mean is nothing.
  double below = 0;
  const auto count = static_cast<double>(n);
  const double first =
      count * share - 12 * std::sqrt(count * share * (1 - share)) - 1;
  for (auto k = static_cast<size_t>(std::max(0.0, first)); k <= n; ++k) {
    const auto x = static_cast<double>(k);
    const double term =
        std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) -
                 std::lgamma(count - x + 1) + x * std::log(share) +
                 (count - x) * std::log1p(-share));
    if (below + term > 0.025 && !out.low && k > 0) out.low = k - 1;
    below += term;
    if (below >= 0.975 && k < n) {
      out.high = k;
      break;
    }
  }
  return out;
}

SummaryRow Summarize(std::string metric, std::vector<double> values) {
  SummaryRow row;
  row.metric = std::move(metric);
  row.requests = values.size();
  if (values.empty()) return row;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  row.mean = sum / static_cast<double>(values.size());
  row.p50 = Quantile(values, 0.5);
  row.p90 = Quantile(values, 0.9);
  row.p99 = Quantile(values, 0.99);
  const RankBounds bounds = BoundsOf(values.size(), 0.99);
  if (bounds.low) row.p99_low = values[*bounds.low];
  if (bounds.high) row.p99_high = values[*bounds.high];
  row.max = values.back();
  return row;
}

// --- requests ---

struct RequestRow {
  std::string request;
  std::string_view state;
  double arrival_ms = 0;
  std::optional<int64_t> input, cached, output;
  OptionalReal ttft, queue, prefill, between, after;
  std::optional<size_t> prompt_passes, first_pass, first_token_pass, last_pass;
  size_t decode_passes = 0;
  OptionalReal itl_mean, itl_p99, stopped, shared, e2e;
  std::optional<bool> met;
};

const RowColumns<RequestRow>& RequestColumns() {
  static const RowColumns<RequestRow> columns{
      "requests",
      "One row per request that is placed, by arrival. ttft_ms is queue_ms, "
      "prefill_ms and after_ms.",
      {{"request", ColumnType::kText, "Its id, or its number in the file.",
        &RequestRow::request},
       {"state", ColumnType::kText,
        "complete, or cut: it began before the recording or ended after it.",
        &RequestRow::state},
       {"arrival_ms", ColumnType::kReal, "From the first event of the trace.",
        &RequestRow::arrival_ms},
       {"input_tokens", ColumnType::kInt, "Tokens of its prompt.",
        &RequestRow::input},
       {"cached_tokens", ColumnType::kInt,
        "Of them not computed again: as recorded, else what passes did not "
        "read.",
        &RequestRow::cached, Shown::kHidden},
       {"output_tokens", ColumnType::kInt, "Tokens that it got.",
        &RequestRow::output},
       {"ttft_ms", ColumnType::kReal, "From arrival to the first token.",
        &RequestRow::ttft},
       {"queue_ms", ColumnType::kReal,
        "From arrival to the start of the first pass with its prompt; empty: "
        "the passes do not add up.",
        &RequestRow::queue},
       {"prefill_ms", ColumnType::kReal,
        "From there to the end of the pass that made its first token.",
        &RequestRow::prefill},
       {"prefill_between_ms", ColumnType::kReal,
        "Of prefill_ms: gaps, and passes without a chunk of its prompt.",
        &RequestRow::between, Shown::kHidden},
       {"after_ms", ColumnType::kReal,
        "From there to the client: sampling, text, network.",
        &RequestRow::after},
       {"prefill_passes", ColumnType::kInt,
        "Passes that read its prompt; empty: the passes do not add up.",
        &RequestRow::prompt_passes},
       {"first_pass", ColumnType::kInt, "The first of them.",
        &RequestRow::first_pass, Shown::kHidden},
       {"first_token_pass", ColumnType::kInt, "Made its first token.",
        &RequestRow::first_token_pass, Shown::kHidden},
       {"last_pass", ColumnType::kInt, "Made its last token.",
        &RequestRow::last_pass, Shown::kHidden},
       {"decode_passes", ColumnType::kInt, "Made tokens behind the first.",
        &RequestRow::decode_passes, Shown::kHidden},
       {"itl_mean_ms", ColumnType::kReal, "Mean gap between chunks of tokens.",
        &RequestRow::itl_mean},
       {"itl_p99_ms", ColumnType::kReal, "99th percentile of them.",
        &RequestRow::itl_p99, Shown::kHidden},
       {"stopped_ms", ColumnType::kReal,
        "Of its gaps: passes that served others.", &RequestRow::stopped},
       {"shared_ms", ColumnType::kReal,
        "Of its gaps: what prompts in its own passes cost.",
        &RequestRow::shared},
       {"e2e_ms", ColumnType::kReal, "From arrival to the last token.",
        &RequestRow::e2e},
       {"met", ColumnType::kBool, "Whether it meets all limits.",
        &RequestRow::met}}};
  return columns;
}

// --- the other tables ---

struct PassRow {
  std::string request;
  size_t pass = 0;
  std::string_view role;
  std::optional<int64_t> tokens;
};

const RowColumns<PassRow>& PassColumns() {
  static const RowColumns<PassRow> columns{
      "request_passes",
      "Which passes served which request.",
      {{"request", ColumnType::kText, "Its id.", &PassRow::request},
       {"pass", ColumnType::kInt, "Number of the pass.", &PassRow::pass},
       {"role", ColumnType::kText,
        "chunk: it read part of the prompt; token: it made tokens; both.",
        &PassRow::role},
       {"tokens", ColumnType::kInt,
        "Tokens of the prompt that it read, or that it made; empty: not "
        "known.",
        &PassRow::tokens}}};
  return columns;
}

struct PathRow {
  std::string_view what;
  std::optional<size_t> pass;
  double start_ms = 0, time_ms = 0;
  std::string cause;
};

const RowColumns<PathRow>& PathColumns() {
  static const RowColumns<PathRow> columns{
      "request_path",
      "What the time of one request is made of, in order; the times add up to "
      "its e2e_ms.",
      {{"what", ColumnType::kText,
        "queue, prefill, between, after, decode, gap, stopped or shared.",
        &PathRow::what},
       {"pass", ColumnType::kInt, "Number of the pass.", &PathRow::pass},
       {"start_ms", ColumnType::kReal, "From the first event of the trace.",
        &PathRow::start_ms},
       {"time_ms", ColumnType::kReal, "Its time.", &PathRow::time_ms},
       {"cause", ColumnType::kText, "Why.", &PathRow::cause}}};
  return columns;
}

struct KernelShareRow {
  std::string family;
  double share_ms = 0, wall_ms = 0;
};

const RowColumns<KernelShareRow>& KernelShareColumns() {
  static const RowColumns<KernelShareRow> columns{
      "request_kernels",
      "Device work of the passes of one request, by family.",
      {{"family", ColumnType::kText, "Family of device work.",
        &KernelShareRow::family},
       {"share_ms", ColumnType::kReal,
        "Its part: time shared out by the tokens of each pass.",
        &KernelShareRow::share_ms},
       {"wall_ms", ColumnType::kReal, "All of it in these passes.",
        &KernelShareRow::wall_ms}}};
  return columns;
}

struct MeetingRow {
  std::string_view kind;
  size_t tokens = 0, passes = 0;
  OptionalReal p50, p99;
  double extra_ms = 0, share = 0;
};

const RowColumns<MeetingRow>& MeetingColumns() {
  static const RowColumns<MeetingRow> columns{
      "interference",
      "Gaps between tokens by what prompts of others did in them.",
      {{"kind", ColumnType::kText,
        "none; own_pass: a pass with prompts came between; shared_pass: the "
        "pass that made the token also read prompts; preempted: no token for "
        "more than 20 passes.",
        &MeetingRow::kind},
       {"tokens", ColumnType::kInt, "Gaps.", &MeetingRow::tokens},
       {"itl_p50_ms", ColumnType::kReal, "Median gap.", &MeetingRow::p50},
       {"itl_p99_ms", ColumnType::kReal, "99th percentile.", &MeetingRow::p99},
       {"extra_ms", ColumnType::kReal,
        "What passes for others, and prompts in the own, added to them.",
        &MeetingRow::extra_ms},
       {"share_percent", ColumnType::kReal, "Of all gaps.", &MeetingRow::share,
        Shown::kPercent},
       {"passes", ColumnType::kInt, "Passes that made these tokens.",
        &MeetingRow::passes}}};
  return columns;
}

struct CauseRow {
  std::optional<std::string> request;
  std::optional<int64_t> input;
  size_t passes = 0, tokens = 0, requests = 0;
  double extra_ms = 0, longest_ms = 0;
};

const RowColumns<CauseRow>& CauseColumns() {
  static const RowColumns<CauseRow> columns{
      "interference_causes",
      "Whose prompts delayed the tokens of others, and by how much.",
      {{"request", ColumnType::kText,
        "Whose prompt; empty: of no request of the records.",
        [](const CauseRow& row) { return Value(row.request); }},
       {"input_tokens", ColumnType::kInt, "Tokens of the prompt.",
        &CauseRow::input},
       {"passes", ColumnType::kInt, "Passes that read it.", &CauseRow::passes},
       {"delayed_tokens", ColumnType::kInt, "Gaps of others that it is in.",
        &CauseRow::tokens},
       {"delayed_requests", ColumnType::kInt, "Of so many requests.",
        &CauseRow::requests},
       {"extra_ms", ColumnType::kReal,
        "Added to their gaps in sum; of a pass with several prompts by their "
        "tokens.",
        &CauseRow::extra_ms},
       {"longest_ms", ColumnType::kReal, "Added to one gap at most.",
        &CauseRow::longest_ms}}};
  return columns;
}

struct LoadRow {
  size_t pass = 0;
  double start_ms = 0;
  std::string_view phase;
  std::optional<int64_t> batch, prompts, prompt_tokens, context, running,
      waiting;
  double wall_ms = 0;
  OptionalReal gap_ms;
  std::optional<int64_t> tokens;
  std::string requests;
};

const RowColumns<LoadRow>& LoadColumns() {
  static const RowColumns<LoadRow> columns{
      "serving_load",
      "One row per pass, with what it had to do.",
      {{"pass", ColumnType::kInt, "Number of the pass.", &LoadRow::pass},
       {"start_ms", ColumnType::kReal, "From the first event of the trace.",
        &LoadRow::start_ms},
       {"phase", ColumnType::kText, "prefill, decode or mixed.",
        &LoadRow::phase},
       {"batch", ColumnType::kInt, "Requests that got a token.",
        &LoadRow::batch},
       {"ctx_requests", ColumnType::kInt, "Prompts that it read.",
        &LoadRow::prompts},
       {"ctx_tokens", ColumnType::kInt, "Tokens of prompts that it read.",
        &LoadRow::prompt_tokens},
       {"context", ColumnType::kInt, "Context of the requests that generate.",
        &LoadRow::context, Shown::kHidden},
       {"running", ColumnType::kInt,
        "Requests between first chunk and last token.", &LoadRow::running},
       {"waiting", ColumnType::kInt, "Requests that came and were not begun.",
        &LoadRow::waiting},
       {"wall_ms", ColumnType::kReal, "First start to last end of its work.",
        &LoadRow::wall_ms},
       {"gap_ms", ColumnType::kReal, "Since the end of the pass before.",
        &LoadRow::gap_ms},
       {"tokens", ColumnType::kInt, "Chunks of tokens that it gave.",
        &LoadRow::tokens},
       {"requests", ColumnType::kText, "Ids of the first that it served.",
        &LoadRow::requests, Shown::kHidden}}};
  return columns;
}

struct WindowRow {
  double start_ms = 0, end_ms = 0;
  size_t passes = 0;
  std::optional<int64_t> low, high;
  OptionalReal mix;
  std::string_view reason;
};

const RowColumns<WindowRow>& WindowColumns() {
  static const RowColumns<WindowRow> columns{
      "serving_window",
      "Where the load of the server is even.",
      {{"start_ms", ColumnType::kReal, "From the first event of the trace.",
        &WindowRow::start_ms},
       {"end_ms", ColumnType::kReal, "The same.", &WindowRow::end_ms},
       {"passes", ColumnType::kInt, "Passes in it.", &WindowRow::passes},
       {"running_low", ColumnType::kInt, "Fewest requests in a pass.",
        &WindowRow::low},
       {"running_high", ColumnType::kInt, "Most.", &WindowRow::high},
       {"mix_percent", ColumnType::kReal,
        "Share of its time in passes that read prompts.", &WindowRow::mix,
        Shown::kPercent},
       {"reason", ColumnType::kText,
        "steady; ramp_up and drain: before and behind it; low_load: no part "
        "is even.",
        &WindowRow::reason}}};
  return columns;
}

struct LimitRow {
  std::string limit;
  size_t requests = 0, met = 0;
  double share = 0;
  OptionalReal value_ms;
  bool holds = false;
};

const RowColumns<LimitRow>& LimitColumns() {
  static const RowColumns<LimitRow> columns{
      "requests_slo",
      "Each limit alone.",
      {{"limit", ColumnType::kText, "As it was given.", &LimitRow::limit},
       {"requests", ColumnType::kInt, "Requests that it was held against.",
        &LimitRow::requests},
       {"met", ColumnType::kInt, "Of them within it.", &LimitRow::met},
       {"met_percent", ColumnType::kReal, "Their share.", &LimitRow::share,
        Shown::kPercent},
       {"value_ms", ColumnType::kReal, "Of a percentile: where it lies.",
        &LimitRow::value_ms},
       {"holds", ColumnType::kBool,
        "Of a percentile: whether it is within; else whether all are.",
        &LimitRow::holds}}};
  return columns;
}

// --- filling them ---

std::optional<int64_t> MeasureOf(const RequestTimes& one, Limit::Of of) {
  switch (of) {
    case Limit::Of::kTtft:
      return one.placed->Ttft();
    case Limit::Of::kItl:
      return one.itl_p99_ns;
    case Limit::Of::kTpot:
      return one.tpot_ns;
    case Limit::Of::kEndToEnd:
      return one.placed->EndToEnd();
  }
  return std::nullopt;
}

class TableMaker {
 public:
  TableMaker(const runs::Units& units, const std::vector<ServedPass>& passes,
             const Records& records, const Join& join,
             const AccountOptions& options)
      : units_(units),
        passes_(passes),
        records_(records),
        join_(join),
        options_(options) {
    const Accountant accountant(passes, records);
    for (const PlacedRequest& one : join.requests) {
      if (one.state != PlacedState::kOutside)
        times_.push_back(accountant.Of(one));
    }
  }

  Result<Account> Make() {
    Account out;
    Judge();
    auto& tables = out.result.tables;
    tables.push_back(JoinTable(records_, join_));
    tables.push_back(Summary());
    if (!options_.limits.empty()) tables.push_back(Limits(out.missed));
    tables.push_back(Meetings());
    tables.push_back(Causes());
    tables.push_back(Requests());
    if (!options_.request.empty()) {
      LAMINA_ASSIGN(const RequestTimes* const one, Wanted());
      tables.push_back(Path(*one));
      tables.push_back(Kernels(*one));
    }
    tables.push_back(EffectTable(passes_, join_, options_.limits,
                                 options_.gains, out.result.notes));
    FindSteadyWindow(passes_, options_.first_ns, &tables);
    tables.push_back(Passes());
    tables.push_back(Load());
    AddSentences(out.result.notes);
    std::stable_sort(
        out.result.notes.begin(), out.result.notes.end(),
        [](const Note& x, const Note& y) { return x.severity < y.severity; });
    return out;
  }

 private:
  double SinceFirst(int64_t ns) const {
    return Milliseconds(ns - options_.first_ns);
  }
  // Whether a summary takes it: complete, and of a window, begun in it.
  bool Counts(const RequestTimes& one) const {
    return !options_.window ||
           (one.placed->arrival_ns >= options_.window->start_ns &&
            one.placed->arrival_ns <= options_.window->end_ns);
  }
  bool Counts(const TokenGap& gap) const {
    return !options_.window ||
           (gap.begin_ns >= options_.window->start_ns &&
            gap.begin_ns + gap.gap_ns <= options_.window->end_ns);
  }

  void Judge() {
    if (options_.limits.empty()) return;
    for (RequestTimes& one : times_) {
      bool met = true;
      for (const Limit& limit : options_.limits) {
        if (limit.percentile) continue;
        const auto value = MeasureOf(one, limit.of);
        met &= !value || *value <= limit.most_ns;
      }
      one.met = met;
    }
  }

  Table Summary() {
    std::vector<double> ttft, itl, tpot, e2e, queue, prefill, after;
    size_t judged = 0, met = 0;
    int64_t first = INT64_MAX, last = INT64_MIN, tokens = 0;
    for (const RequestTimes& one : times_) {
      const PlacedRequest& placed = *one.placed;
      for (const TokenGap& gap : one.gaps) {
        if (Counts(gap)) itl.push_back(Milliseconds(gap.gap_ns));
      }
      if (!Counts(one)) continue;
      if (placed.pass.front() != kNoPass)
        ttft.push_back(Milliseconds(placed.Ttft()));
      const auto add = [](const std::optional<int64_t>& ns,
                          std::vector<double>& out) {
        if (ns) out.push_back(Milliseconds(*ns));
      };
      add(one.queue_ns, queue);
      add(one.prefill_ns, prefill);
      add(one.after_ns, after);
      if (!one.complete()) continue;
      e2e.push_back(Milliseconds(placed.EndToEnd()));
      add(one.tpot_ns, tpot);
      ++judged;
      met += one.met.value_or(false);
      first = std::min(first, placed.arrival_ns);
      last = std::max(last, placed.token_ns.back());
      tokens += placed.request->output_tokens.value_or(
          static_cast<int64_t>(placed.token_ns.size()));
    }
    std::vector<SummaryRow> rows;
    rows.push_back(Summarize("ttft_ms", std::move(ttft)));
    if (records_.every_token) rows.push_back(Summarize("itl_ms", itl));
    rows.push_back(Summarize("tpot_ms", std::move(tpot)));
    rows.push_back(Summarize("e2e_ms", std::move(e2e)));
    rows.push_back(Summarize("queue_ms", std::move(queue)));
    rows.push_back(Summarize("prefill_ms", std::move(prefill)));
    rows.push_back(Summarize("after_ms", std::move(after)));
    const double seconds =
        judged > 0 ? static_cast<double>(last - first) * 1e-9 : 0;
    if (seconds > 0) {
      SummaryRow rate;
      rate.metric = "output_tokens_per_s";
      rate.requests = judged;
      rate.mean = static_cast<double>(tokens) / seconds;
      rows.push_back(rate);
      if (!options_.limits.empty()) {
        SummaryRow goodput;
        goodput.metric = "goodput";
        goodput.requests = judged;
        goodput.mean = static_cast<double>(met) / seconds;
        goodput.met = met;
        rows.push_back(goodput);
      }
    }
    summary_ = rows;
    return SummaryColumns().Make(rows);
  }

  Table Limits(bool& missed) const {
    std::vector<LimitRow> rows;
    for (const Limit& limit : options_.limits) {
      LimitRow row;
      row.limit = limit.text;
      std::vector<double> values;
      for (const RequestTimes& one : times_) {
        const auto value = MeasureOf(one, limit.of);
        if (!value || !one.complete() || !Counts(one)) continue;
        ++row.requests;
        row.met += *value <= limit.most_ns;
        values.push_back(Milliseconds(*value));
      }
      std::sort(values.begin(), values.end());
      row.share = row.requests > 0 ? 100 * static_cast<double>(row.met) /
                                         static_cast<double>(row.requests)
                                   : 0;
      row.holds = row.met == row.requests;
      if (limit.percentile && !values.empty()) {
        row.value_ms = Quantile(values, *limit.percentile / 100);
        row.holds = *row.value_ms <= Milliseconds(limit.most_ns);
        missed |= !row.holds;
      }
      rows.push_back(std::move(row));
    }
    return LimitColumns().Make(rows);
  }

  Table Requests() const {
    std::vector<RequestRow> rows;
    for (const RequestTimes& one : times_) {
      const PlacedRequest& placed = *one.placed;
      const Request& request = *placed.request;
      RequestRow row;
      row.request = request.id;
      row.state = one.complete() ? "complete" : "cut";
      row.arrival_ms = SinceFirst(placed.arrival_ns);
      row.input = request.input_tokens;
      row.cached = request.cached_tokens;
      row.output = request.output_tokens;
      row.ttft = Milliseconds(placed.Ttft());
      row.queue = Ms(one.queue_ns);
      row.prefill = Ms(one.prefill_ns);
      row.between = Ms(one.between_ns);
      row.after = Ms(one.after_ns);
      const auto number = [&](size_t p) {
        return p == kNoPass ? std::optional<size_t>()
                            : std::optional(passes_[p].number);
      };
      if (placed.prompt_known) row.prompt_passes = placed.prompt.size();
      if (placed.prompt_known)
        row.first_pass = number(placed.prompt.front().pass);
      row.first_token_pass = number(placed.pass.front());
      row.last_pass = number(placed.pass.back());
      row.decode_passes = one.decode_passes;
      if (!row.cached && placed.prompt_known && request.input_tokens) {
        int64_t read = 0;
        bool known = true;
        for (const Chunk& chunk : placed.prompt) {
          known &= chunk.tokens.has_value();
          read += chunk.tokens.value_or(0);
        }
        if (known && read < *request.input_tokens)
          row.cached = *request.input_tokens - read;
      }
      row.itl_mean = Ms(one.itl_mean_ns);
      row.itl_p99 = Ms(one.itl_p99_ns);
      if (records_.every_token) {
        row.stopped = Milliseconds(one.stopped_ns);
        row.shared = Milliseconds(one.shared_ns);
      }
      row.e2e = Milliseconds(placed.EndToEnd());
      row.met = one.met;
      rows.push_back(std::move(row));
    }
    return RequestColumns().Make(rows);
  }

  Table Meetings() {
    std::array<std::vector<double>, kMeetingNames.size()> gaps;
    std::array<int64_t, kMeetingNames.size()> extra{};
    std::array<std::set<size_t>, kMeetingNames.size()> passes;
    size_t all = 0;
    for (const RequestTimes& one : times_) {
      for (const TokenGap& gap : one.gaps) {
        if (!Counts(gap)) continue;
        const auto kind = static_cast<size_t>(gap.meeting);
        gaps[kind].push_back(Milliseconds(gap.gap_ns));
        extra[kind] += gap.stopped_ns + gap.shared_ns;
        passes[kind].insert(gap.pass);
        ++all;
      }
    }
    std::vector<MeetingRow> rows;
    for (size_t kind = 0; kind < kMeetingNames.size(); ++kind) {
      if (gaps[kind].empty() && kind > 0) continue;
      MeetingRow row;
      row.kind = kMeetingNames[kind];
      row.tokens = gaps[kind].size();
      row.passes = passes[kind].size();
      std::sort(gaps[kind].begin(), gaps[kind].end());
      if (!gaps[kind].empty()) {
        row.p50 = Quantile(gaps[kind], 0.5);
        row.p99 = Quantile(gaps[kind], 0.99);
        row.share =
            100 * static_cast<double>(row.tokens) / static_cast<double>(all);
      }
      row.extra_ms = Milliseconds(extra[kind]);
      rows.push_back(row);
    }
    meetings_ = rows;
    return MeetingColumns().Make(rows);
  }

  // Whose prompts each pass read, with the part of each.
  std::map<size_t, std::vector<std::pair<const Request*, double>>> Readers()
      const {
    std::map<size_t, std::vector<std::pair<const Request*, double>>> out;
    for (const RequestTimes& one : times_) {
      for (const Chunk& chunk : one.placed->prompt) {
        const double tokens = static_cast<double>(std::max<int64_t>(
            1, chunk.tokens.value_or(
                   one.placed->request->input_tokens.value_or(1))));
        out[chunk.pass].push_back({one.placed->request, tokens});
      }
    }
    for (auto& [pass, readers] : out) {
      double sum = 0;
      for (const auto& reader : readers) sum += reader.second;
      for (auto& reader : readers) reader.second /= sum;
    }
    return out;
  }

  Table Causes() {
    struct Sum {
      std::set<size_t> passes;
      std::set<const Request*> requests;
      size_t tokens = 0;
      double extra_ns = 0, longest_ns = 0;
    };
    std::map<const Request*, Sum> sums;
    const auto readers = Readers();
    for (const RequestTimes& one : times_) {
      for (const TokenGap& gap : one.gaps) {
        if (gap.meeting == Meeting::kNone || !Counts(gap)) continue;
        // A request is behind more than one pass of a gap once.
        std::map<const Request*, double> own;
        const auto add = [&](size_t pass, double ns) {
          const auto found = readers.find(pass);
          if (found == readers.end()) {
            own[nullptr] += ns;
          } else {
            for (const auto& [request, part] : found->second)
              own[request] += ns * part;
          }
          const Request* const whose =
              found == readers.end() ? nullptr : found->second.front().first;
          sums[whose].passes.insert(pass);
        };
        for (size_t p = gap.from + 1; p < gap.pass; ++p) {
          if (passes_[p].MayHavePrompts())
            add(p, static_cast<double>(passes_[p].wall_ns()));
        }
        if (passes_[gap.pass].MayHavePrompts())
          add(gap.pass, static_cast<double>(gap.shared_ns));
        for (const auto& [request, ns] : own) {
          if (request == one.placed->request) continue;
          Sum& sum = sums[request];
          ++sum.tokens;
          sum.requests.insert(one.placed->request);
          sum.extra_ns += ns;
          sum.longest_ns = std::max(sum.longest_ns, ns);
        }
      }
    }
    std::map<const Request*, size_t> prompt_passes;
    for (const RequestTimes& one : times_)
      prompt_passes[one.placed->request] = one.placed->prompt.size();
    std::vector<CauseRow> rows;
    // In the order of the records, not of addresses.
    const auto row_of = [&](const Request* request) {
      const auto found = sums.find(request);
      if (found == sums.end() || found->second.tokens == 0) return;
      const Sum& sum = found->second;
      CauseRow row;
      if (request != nullptr) {
        row.request = request->id;
        row.input = request->input_tokens;
        row.passes = prompt_passes.at(request);
      } else {
        row.passes = sum.passes.size();
      }
      row.tokens = sum.tokens;
      row.requests = sum.requests.size();
      row.extra_ms = sum.extra_ns * 1e-6;
      row.longest_ms = sum.longest_ns * 1e-6;
      rows.push_back(std::move(row));
    };
    for (const Request& request : records_.requests) row_of(&request);
    row_of(nullptr);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const CauseRow& x, const CauseRow& y) {
                       return x.extra_ms > y.extra_ms;
                     });
    causes_ = rows;
    return CauseColumns().Make(rows);
  }

  Table Passes() const {
    RowWriter<PassRow> rows(PassColumns());
    for (const RequestTimes& one : times_) {
      struct Role {
        bool chunk = false;
        std::optional<int64_t> read;
        int64_t made = 0;
      };
      std::map<size_t, Role> roles;
      for (const Chunk& chunk : one.placed->prompt) {
        roles[chunk.pass].chunk = true;
        roles[chunk.pass].read = chunk.tokens;
      }
      // A chunk of several tokens cannot be told from one.
      const bool single =
          one.placed->request->output_tokens.value_or(0) ==
          static_cast<int64_t>(one.placed->request->chunk_ns.size());
      for (const size_t p : one.placed->pass) {
        if (p != kNoPass) ++roles[p].made;
      }
      for (const auto& [p, role] : roles) {
        PassRow row;
        row.request = one.placed->request->id;
        row.pass = passes_[p].number;
        row.role = !role.chunk ? "token" : role.made > 0 ? "both" : "chunk";
        row.tokens = role.chunk ? role.read
                     : single   ? std::optional(role.made)
                                : std::nullopt;
        rows.Add(row);
      }
    }
    return rows.Take();
  }

  Table Load() const {
    constexpr size_t kNamed = 8;
    std::vector<std::vector<const Request*>> served(passes_.size());
    std::vector<int64_t> tokens(passes_.size()), running(passes_.size() + 1),
        waiting(passes_.size() + 1);
    const auto at = [&](int64_t time) {
      // The first pass that ends at or behind it.
      return static_cast<size_t>(
          std::lower_bound(passes_.begin(), passes_.end(), time,
                           [](const ServedPass& pass, int64_t t) {
                             return pass.end_ns < t;
                           }) -
          passes_.begin());
    };
    for (const RequestTimes& one : times_) {
      std::set<size_t> own;
      for (const Chunk& chunk : one.placed->prompt) own.insert(chunk.pass);
      for (const size_t p : one.placed->pass) {
        if (p == kNoPass) continue;
        own.insert(p);
        ++tokens[p];
      }
      for (const size_t p : own) served[p].push_back(one.placed->request);
      const size_t begin = own.empty() ? passes_.size() : *own.begin();
      if (!own.empty()) {
        ++running[begin];
        --running[*own.rbegin() + 1];
      }
      const size_t came = at(one.placed->arrival_ns);
      if (one.placed->pass.front() != kNoPass && came < begin) {
        ++waiting[came];
        --waiting[begin];
      }
    }
    std::vector<LoadRow> rows;
    int64_t now_running = 0, now_waiting = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      const ServedPass& pass = passes_[p];
      now_running += running[p];
      now_waiting += waiting[p];
      LoadRow row;
      row.pass = pass.number;
      row.start_ms = SinceFirst(pass.start_ns);
      row.phase = runs::PhaseName(pass.phase);
      row.batch = pass.generating;
      row.prompts = pass.prompts;
      row.prompt_tokens = pass.prompt_tokens;
      row.context = pass.context;
      row.running = now_running;
      row.waiting = pass.waiting ? pass.waiting : std::optional(now_waiting);
      row.wall_ms = Milliseconds(pass.wall_ns());
      if (p > 0)
        row.gap_ms = Milliseconds(pass.start_ns - passes_[p - 1].end_ns);
      row.tokens = tokens[p];
      for (size_t i = 0; i < std::min(kNamed, served[p].size()); ++i)
        row.requests += (i > 0 ? " " : "") + served[p][i]->id;
      if (served[p].size() > kNamed)
        row.requests += fmt::format(" +{}", served[p].size() - kNamed);
      rows.push_back(std::move(row));
    }
    return LoadColumns().Make(rows);
  }

  // --- one request ---

  Result<const RequestTimes*> Wanted() const {
    for (const RequestTimes& one : times_) {
      if (one.placed->request->id == options_.request) return &one;
    }
    return Fail(UsageError(
        "⟨request⟩: no request '" + options_.request + "' is placed",
        times_.empty() ? ""
                       : "for example " + times_.front().placed->request->id));
  }

  void AddQueue(const RequestTimes& one, std::vector<PathRow>& rows) const {
    const int64_t arrival = one.placed->arrival_ns;
    const int64_t end = arrival + *one.queue_ns;
    const auto ran = std::find_if(
        passes_.begin(), passes_.end(), [&](const ServedPass& pass) {
          return pass.start_ns <= arrival && arrival < pass.end_ns;
        });
    int64_t at = arrival;
    if (ran != passes_.end() && ran->end_ns < end) {
      rows.push_back({"queue", ran->number, SinceFirst(arrival),
                      Milliseconds(ran->end_ns - arrival),
                      "the pass that ran when it came"});
      at = ran->end_ns;
    }
    const auto others = std::count_if(
        passes_.begin(), passes_.end(), [&](const ServedPass& pass) {
          return pass.start_ns >= at && pass.end_ns <= end;
        });
    rows.push_back(
        {"queue", std::nullopt, SinceFirst(at), Milliseconds(end - at),
         others > 0 ? Counted(static_cast<uint64_t>(others), "pass", "passes") +
                          " did not take it"
                    : "until a pass took it"});
  }

  Table Path(const RequestTimes& one) const {
    std::vector<PathRow> rows;
    const PlacedRequest& placed = *one.placed;
    int64_t told = 0;
    if (one.queue_ns) {
      AddQueue(one, rows);
      int64_t at = placed.arrival_ns + *one.queue_ns;
      for (const Chunk& chunk : placed.prompt) {
        const ServedPass& pass = passes_[chunk.pass];
        if (pass.start_ns > at) {
          rows.push_back({"between", std::nullopt, SinceFirst(at),
                          Milliseconds(pass.start_ns - at),
                          "gaps, and passes without its prompt"});
        }
        rows.push_back({"prefill", pass.number, SinceFirst(pass.start_ns),
                        Milliseconds(pass.end_ns - std::max(at, pass.start_ns)),
                        chunk.tokens ? fmt::format("{} tokens of its prompt",
                                                   *chunk.tokens)
                                     : "its prompt"});
        at = pass.end_ns;
      }
      rows.push_back({"after", std::nullopt, SinceFirst(at),
                      Milliseconds(*one.after_ns),
                      "sampling, text and network, to the client"});
      told = placed.Ttft();
    }
    int64_t rest = 0;
    for (const TokenGap& gap : one.gaps) {
      AddGap(gap, rows);
      rest += gap.rest_ns();
      told += gap.gap_ns;
    }
    // What passes do not explain: how unevenly the client got its tokens, and
    // of a request that is cut what is not recorded.
    if (rest != 0) {
      rows.push_back({"after", std::nullopt, SinceFirst(placed.token_ns.back()),
                      Milliseconds(rest),
                      "tokens came later or sooner than their passes ended"});
    }
    if (placed.EndToEnd() != told) {
      rows.push_back({"after", std::nullopt, SinceFirst(placed.token_ns.back()),
                      Milliseconds(placed.EndToEnd() - told),
                      "outside of the recording, or not known by token"});
    }
    return PathColumns().Make(rows);
  }

  void AddGap(const TokenGap& gap, std::vector<PathRow>& rows) const {
    if (gap.pass <= gap.from) return;
    const ServedPass& pass = passes_[gap.pass];
    const auto add = [&](const char* what, int64_t start, int64_t ns,
                         std::string cause) {
      if (ns != 0) {
        rows.push_back({what, pass.number, SinceFirst(start), Milliseconds(ns),
                        std::move(cause)});
      }
    };
    add("stopped", passes_[gap.from].end_ns, gap.stopped_ns,
        Counted(gap.pass - gap.from - 1, "pass", "passes") + " served others");
    add("gap", pass.start_ns - gap.host_ns, gap.host_ns,
        "the device waited for the host");
    add("decode", pass.start_ns, gap.decode_ns, "");
    add("shared", pass.end_ns - gap.shared_ns, gap.shared_ns,
        "prompts in the same pass");
  }

  Table Kernels(const RequestTimes& one) const {
    std::map<std::string, KernelShareRow> sums;
    std::map<size_t, double> own;  // tokens by pass
    for (const Chunk& chunk : one.placed->prompt)
      own[chunk.pass] += static_cast<double>(chunk.tokens.value_or(1));
    for (const size_t p : one.placed->pass) {
      if (p != kNoPass && !own.contains(p)) own[p] = 1;
    }
    for (const auto& [p, tokens] : own) {
      const runs::Unit& unit = units_.units[passes_[p].number];
      const auto all =
          static_cast<double>(passes_[p].prompt_tokens.value_or(0) +
                              passes_[p].generating.value_or(0));
      const double part = all > 0 ? std::min(1.0, tokens / all) : 0;
      const auto add = [&](const std::string& family, int64_t ns) {
        KernelShareRow& row = sums[family];
        row.family = family;
        row.wall_ms += Milliseconds(ns);
        row.share_ms += part * Milliseconds(ns);
      };
      for (const auto s : unit.work) {
        add(unit.context->catalog.family(unit.context->device.family(s)).name,
            unit.context->trace.Duration(s));
      }
      if (unit.unit_ns > unit.busy_ns) add("idle", unit.unit_ns - unit.busy_ns);
      if (unit.kernel_ns > unit.busy_ns)
        add("overlap", unit.busy_ns - unit.kernel_ns);
    }
    std::vector<KernelShareRow> rows;
    for (auto& [family, row] : sums) rows.push_back(std::move(row));
    std::stable_sort(rows.begin(), rows.end(),
                     [](const KernelShareRow& x, const KernelShareRow& y) {
                       return x.wall_ms > y.wall_ms;
                     });
    return KernelShareColumns().Make(rows);
  }

  // --- sentences ---

  const SummaryRow* Row(std::string_view metric) const {
    for (const SummaryRow& row : summary_) {
      if (row.metric == metric && row.requests > 0) return &row;
    }
    return nullptr;
  }

  static std::string Time(double ms) {
    return HumanTime(std::llround(ms * 1e6));
  }

  void AddSentences(std::vector<Note>& notes) const {
    const SummaryRow* const ttft = Row("ttft_ms");
    const SummaryRow* const queue = Row("queue_ms");
    const SummaryRow* const prefill = Row("prefill_ms");
    const SummaryRow* const after = Row("after_ms");
    const SummaryRow* const itl = Row("itl_ms");
    if (ttft != nullptr) {
      std::string text = fmt::format("TTFT is {} at the median, {} at p99",
                                     Time(*ttft->p50), Time(*ttft->p99));
      if (queue != nullptr && prefill != nullptr && after != nullptr) {
        text += fmt::format(
            "; on average {} of queue, {} of prefill, {} to the client",
            Time(*queue->mean), Time(*prefill->mean), Time(*after->mean));
      }
      notes.push_back(
          MakeNote(Severity::kVerdict, "requests_ttft", text + ".",
                   {{"requests_summary", "metric", "ttft_ms", {}}}));
    }
    if (itl != nullptr) {
      std::string text = fmt::format("ITL is {} at the median, {} at p99",
                                     Time(*itl->p50), Time(*itl->p99));
      size_t hit = 0;
      double extra = 0;
      for (const MeetingRow& row : meetings_) {
        if (row.kind == kMeetingNames[0]) continue;
        hit += row.tokens;
        extra += row.extra_ms;
      }
      if (hit > 0) {
        text += fmt::format(
            "; prefill of others delays {} of {} by {} on "
            "average",
            hit, Counted(itl->requests, "token"),
            Time(extra / static_cast<double>(hit)));
        if (!causes_.empty() && causes_.front().request) {
          text +=
              fmt::format(", most of all request {}", *causes_.front().request);
        }
      }
      notes.push_back(MakeNote(Severity::kVerdict, "requests_itl", text + ".",
                               {{"interference", "", "", {}}}));
    }
    if (const SummaryRow* const good = Row("goodput")) {
      notes.push_back(MakeNote(
          Severity::kVerdict, "requests_goodput",
          fmt::format("{} of {} meet all limits: {:.3g} a second.", *good->met,
                      Counted(good->requests, "request"), *good->mean),
          {{"requests_slo", "", "", {}}}));
    }
    AddJoinSentence(notes);
  }

  void AddJoinSentence(std::vector<Note>& notes) const {
    const size_t outside = join_.requests.size() - times_.size();
    std::string text =
        fmt::format("{} of {} placed ({}, {} clock, score {:.0f} %)",
                    times_.size(), Counted(join_.requests.size(), "request"),
                    records_.format, ClockName(join_.clock), 100 * join_.score);
    if (outside > 0)
      text += fmt::format("; {} outside of the recording", outside);
    if (join_.other_tokens >= 0.005) {
      text += fmt::format("; other traffic: {:.0f} % of tokens",
                          100 * join_.other_tokens);
    }
    notes.push_back(MakeNote(Severity::kInfo, "requests_placed", text + ".",
                             {{"requests_join", "", "", {}}}));
    if (join_.clock == Clock::kOwn) {
      notes.push_back(MakeNote(
          Severity::kInfo, "requests_own_clock",
          fmt::format("The records have a clock of their own: queue times are "
                      "at most what is said, and up to {} less.",
                      HumanTime(join_.uncertainty_ns)),
          {{"requests_join", "", "", {}}}));
    }
  }

  const runs::Units& units_;
  const std::vector<ServedPass>& passes_;
  const Records& records_;
  const Join& join_;
  const AccountOptions& options_;
  std::vector<RequestTimes> times_;  // of what is placed, by arrival
  std::vector<SummaryRow> summary_;
  std::vector<MeetingRow> meetings_;
  std::vector<CauseRow> causes_;
};

}  // namespace

double Milliseconds(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

DecodeTimes::DecodeTimes(const std::vector<ServedPass>& passes) {
  std::map<int64_t, std::vector<double>> by_batch;
  for (const ServedPass& pass : passes) {
    if (pass.phase == runs::Phase::kDecode && pass.generating)
      by_batch[*pass.generating].push_back(static_cast<double>(pass.wall_ns()));
  }
  for (auto& [batch, walls] : by_batch)
    median_.push_back({batch, std::llround(runs::Median(std::move(walls)))});
}

std::optional<int64_t> DecodeTimes::Of(int64_t generating) const {
  if (median_.empty()) return std::nullopt;
  const auto above = std::lower_bound(median_.begin(), median_.end(),
                                      std::pair(generating, INT64_MIN));
  if (above == median_.end()) return median_.back().second;
  if (above->first == generating || above == median_.begin())
    return above->second;
  const auto below = std::prev(above);
  return below->second + (above->second - below->second) *
                             (generating - below->first) /
                             (above->first - below->first);
}

Result<std::vector<Limit>> ParseLimits(const std::string& text) {
  static constexpr std::pair<std::string_view, Limit::Of> kNames[] = {
      {"ttft", Limit::Of::kTtft},     {"itl", Limit::Of::kItl},
      {"tpot", Limit::Of::kTpot},     {"e2e", Limit::Of::kEndToEnd},
      {"e2el", Limit::Of::kEndToEnd},
  };
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e6}, {"us", 1e3}, {"s", 1e9}};
  std::vector<Limit> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    Limit limit;
    limit.text = text.substr(begin, end - begin);
    begin = end + 1;
    std::string_view rest = limit.text;
    bool good = true;
    if (rest.starts_with('p')) {
      const size_t colon = rest.find(':');
      const auto percent = ParseDouble(
          rest.substr(1, colon == std::string_view::npos ? 0 : colon - 1));
      good = percent && *percent > 0 && *percent < 100;
      if (good) {
        limit.percentile = *percent;
        rest.remove_prefix(colon + 1);
      }
    }
    const size_t equal = rest.find('=');
    const auto name = std::find_if(
        std::begin(kNames), std::end(kNames), [&](const auto& known) {
          return known.first == rest.substr(0, equal);
        });
    good &= name != std::end(kNames) && equal != std::string_view::npos;
    if (good) {
      limit.of = name->second;
      rest.remove_prefix(equal + 1);
      double ns = 1e6;
      for (const auto& [unit, factor] : kUnits) {
        if (!rest.ends_with(unit)) continue;
        rest.remove_suffix(unit.size());
        ns = factor;
        break;
      }
      const auto value = ParseDouble(rest);
      good = value && *value > 0 && *value * ns < 1e18;
      if (good) limit.most_ns = std::llround(*value * ns);
    }
    if (!good) {
      return Fail(UsageError("⟨slo⟩: '" + limit.text + "' is no limit",
                             "for example ttft=200ms,itl=25ms,p99:e2e=4s"));
    }
    out.push_back(std::move(limit));
  }
  return out;
}

namespace {

// Requests in each pass: of one that reads prompts alone, with those that wait
// for it.
std::vector<int64_t> RunningOf(const std::vector<ServedPass>& passes) {
  std::vector<int64_t> out;
  int64_t generating = 0;
  for (const ServedPass& pass : passes) {
    if (pass.phase != runs::Phase::kPrefill)
      generating = pass.generating.value_or(generating);
    out.push_back(generating + pass.prompts.value_or(0));
  }
  return out;
}

WindowRow WindowOf(const std::vector<ServedPass>& passes,
                   const std::vector<int64_t>& running, size_t begin,
                   size_t end, int64_t first_ns, std::string_view reason) {
  WindowRow row;
  row.start_ms = Milliseconds(passes[begin].start_ns - first_ns);
  row.end_ms = Milliseconds(passes[end - 1].end_ns - first_ns);
  row.passes = end - begin;
  int64_t all = 0, prompts = 0;
  for (size_t p = begin; p < end; ++p) {
    row.low = std::min(row.low.value_or(running[p]), running[p]);
    row.high = std::max(row.high.value_or(running[p]), running[p]);
    all += passes[p].wall_ns();
    if (passes[p].MayHavePrompts()) prompts += passes[p].wall_ns();
  }
  if (all > 0)
    row.mix = 100 * static_cast<double>(prompts) / static_cast<double>(all);
  row.reason = reason;
  return row;
}

// The longest stretch, in time, in which the load stays near its most; three
// passes in a row outside end it.
std::pair<size_t, size_t> EvenStretch(const std::vector<ServedPass>& passes,
                                      const std::vector<int64_t>& running) {
  constexpr size_t kMostOutside = 3;
  std::vector<int64_t> sorted = running;
  const auto place =
      sorted.begin() + static_cast<ptrdiff_t>((sorted.size() - 1) * 9 / 10);
  std::nth_element(sorted.begin(), place, sorted.end());
  const int64_t least = *place - std::max<int64_t>(1, *place / 10);
  std::pair<size_t, size_t> best{0, 0};
  int64_t longest = -1;
  for (size_t p = 0; p < passes.size();) {
    if (running[p] < least) {
      ++p;
      continue;
    }
    size_t end = p + 1;
    for (size_t q = p + 1, outside = 0;
         q < passes.size() && outside < kMostOutside; ++q) {
      outside = running[q] < least ? outside + 1 : 0;
      if (outside == 0) end = q + 1;
    }
    const int64_t length = passes[end - 1].end_ns - passes[p].start_ns;
    if (length > longest) {
      longest = length;
      best = {p, end};
    }
    p = end;
  }
  return best;
}

// Whether the thirds of a stretch have about the same mix of prompts and
// decodes, and decodes of one batch do not get longer.
bool IsEven(const std::vector<ServedPass>& passes, size_t begin, size_t end) {
  constexpr double kMix = 0.2, kDrift = 0.1;
  const size_t third = (end - begin) / 3;
  if (third < 2) return false;
  std::array<double, 3> mix{};
  for (size_t t = 0; t < 3; ++t) {
    double all = 0, prompts = 0;
    for (size_t p = begin + t * third; p < begin + (t + 1) * third; ++p) {
      const auto wall = static_cast<double>(passes[p].wall_ns());
      all += wall;
      if (passes[p].MayHavePrompts()) prompts += wall;
    }
    mix[t] = all > 0 ? prompts / all : 0;
  }
  const auto [low, high] = std::minmax_element(mix.begin(), mix.end());
  if (*high - *low > kMix) return false;
  std::map<int64_t, std::array<std::vector<double>, 2>> walls;
  for (size_t p = begin; p < end; ++p) {
    if (passes[p].phase != runs::Phase::kDecode || !passes[p].generating)
      continue;
    const size_t half = p - begin < (end - begin) / 2 ? 0 : 1;
    walls[*passes[p].generating][half].push_back(
        static_cast<double>(passes[p].wall_ns()));
  }
  for (auto& [batch, halves] : walls) {
    if (halves[0].size() < 4 || halves[1].size() < 4) continue;
    const double change =
        runs::Median(halves[1]) / std::max(1.0, runs::Median(halves[0])) - 1;
    if (std::abs(change) > kDrift) return false;
  }
  return true;
}

}  // namespace

std::optional<SteadyWindow> FindSteadyWindow(
    const std::vector<ServedPass>& passes, int64_t first_ns,
    std::vector<Table>* tables) {
  constexpr size_t kFewest = 6;
  std::vector<WindowRow> rows;
  std::optional<SteadyWindow> out;
  const bool known = std::any_of(
      passes.begin(), passes.end(),
      [](const ServedPass& pass) { return pass.generating.has_value(); });
  if (known && !passes.empty()) {
    const auto running = RunningOf(passes);
    const auto [begin, end] = EvenStretch(passes, running);
    if (end - begin >= kFewest && IsEven(passes, begin, end)) {
      out = {passes[begin].start_ns, passes[end - 1].end_ns, end - begin};
      const auto add = [&](size_t from, size_t to, std::string_view reason) {
        if (from < to)
          rows.push_back(WindowOf(passes, running, from, to, first_ns, reason));
      };
      add(0, begin, "ramp_up");
      add(begin, end, "steady");
      add(end, passes.size(), "drain");
    } else {
      rows.push_back(
          WindowOf(passes, running, 0, passes.size(), first_ns, "low_load"));
    }
  }
  if (tables != nullptr) tables->push_back(WindowColumns().Make(rows));
  return out;
}

Result<Account> AccountRequests(const runs::Units& units,
                                const std::vector<ServedPass>& passes,
                                const Records& records, const Join& join,
                                const AccountOptions& options) {
  return TableMaker(units, passes, records, join, options).Make();
}

Account AccountRecords(const Records& records, const Join& join) {
  Account out;
  out.result.tables.push_back(JoinTable(records, join));
  std::vector<double> ttft, itl, e2e;
  for (const Request& request : records.requests) {
    const auto& at = request.chunk_ns;
    ttft.push_back(Milliseconds(at.front()));
    e2e.push_back(Milliseconds(at.back()));
    if (!records.every_token) continue;
    for (size_t i = 1; i < at.size(); ++i)
      itl.push_back(Milliseconds(at[i] - at[i - 1]));
  }
  std::vector<SummaryRow> rows;
  rows.push_back(Summarize("ttft_ms", std::move(ttft)));
  if (!itl.empty()) rows.push_back(Summarize("itl_ms", std::move(itl)));
  rows.push_back(Summarize("e2e_ms", std::move(e2e)));
  out.result.tables.push_back(SummaryColumns().Make(rows));
  return out;
}

std::vector<Schema> RequestSchemas() {
  return {JoinColumns().schema(),  SummaryColumns().schema(),
          LimitColumns().schema(), MeetingColumns().schema(),
          CauseColumns().schema(), RequestColumns().schema(),
          PathColumns().schema(),  KernelShareColumns().schema(),
          EffectSchema(),          WindowColumns().schema(),
          PassColumns().schema(),  LoadColumns().schema()};
}

}  // namespace lamina::serving
