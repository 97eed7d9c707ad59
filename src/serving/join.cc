// SPDX-License-Identifier: Apache-2.0
//
// Input: passes in order of their ends, requests with the times of their tokens
// on another clock. Output: the pass of each token.
//
// A token belongs to the last pass that ended before it left, once the offset
// is known. The offset is known up to the delay of the client, which is the
// same for all tokens but for noise. Each candidate offset puts one first token
// right behind the end of one pass that read prompts. A cheap score (first
// tokens behind passes with prompts, of a sample) leaves a few hundred, which
// are judged in full: share of passes that gave as many tokens as requests that
// generated in them, times share of first tokens behind prompts, times share of
// tokens near the median delay.
#include "serving/join.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "compare/runs/statistics.h"

namespace lamina::serving {
namespace {

constexpr double kLeastScore = 0.8;
constexpr double kSecondShare = 0.97;  // of the best: then it is one of two
constexpr int64_t kLeastDelayNs = -2'000'000, kMostDelayNs = 50'000'000;
constexpr int64_t kTightNs = 400'000;
constexpr int64_t kMostSlackNs = 100'000;
constexpr size_t kAnchors = 8;

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Candidate {
  int64_t offset = 0;
  double score = 0;
  size_t quick = 0;
};

class Placer {
 public:
  Placer(const Records& records, const std::vector<ServedPass>& passes)
      : passes_(passes), every_token_(records.every_token) {
    for (const ServedPass& pass : passes) ends_.push_back(pass.end_ns);
    std::vector<int64_t> gaps, walls;
    for (size_t i = 0; i < ends_.size(); ++i) {
      if (i > 0) gaps.push_back(ends_[i] - ends_[i - 1]);
      walls.push_back(passes[i].wall_ns());
    }
    median_wall_ = std::max<int64_t>(1, MedianOf(walls));
    period_ =
        gaps.empty() ? median_wall_ : std::max<int64_t>(1, MedianOf(gaps));
    slack_ = std::min(kMostSlackNs, period_ / 4);
    tight_ = std::max(kTightNs, period_ / 4);
    for (const Request& request : records.requests) {
      first_.push_back(request.start_ns + request.chunk_ns.front());
      for (const int64_t at : request.chunk_ns)
        tokens_.push_back(request.start_ns + at);
      spans_.push_back({request.start_ns + request.chunk_ns.front(),
                        request.start_ns + request.chunk_ns.back()});
    }
    std::sort(first_.begin(), first_.end());
    std::sort(tokens_.begin(), tokens_.end());
    for (const ServedPass& pass : passes) {
      if (pass.generating) expected_ += *pass.generating;
      if (pass.prompts) expected_ += *pass.prompts > 0;
    }
  }

  // The pass that made what left at `time` of the trace.
  size_t PassAt(int64_t time) const {
    const auto behind =
        std::upper_bound(ends_.begin(), ends_.end(), time + slack_);
    if (behind == ends_.begin()) return kNoPass;
    const auto j = static_cast<size_t>(behind - ends_.begin()) - 1;
    if (j + 1 == ends_.size() && time - ends_[j] > LastReach()) return kNoPass;
    return j;
  }

  // Every offset that puts one of some first tokens behind a pass that may have
  // read its prompt. Of the longer of both times few are enough.
  std::vector<int64_t> Candidates(int64_t low, int64_t high) const {
    std::vector<int64_t> prompt_ends;
    for (const ServedPass& pass : passes_) {
      if (pass.MayHavePrompts()) prompt_ends.push_back(pass.end_ns);
    }
    std::vector<int64_t> out;
    if (prompt_ends.empty()) return out;
    const bool within = first_.back() - first_.front() <=
                        prompt_ends.back() - prompt_ends.front();
    const std::vector<int64_t>& few = within ? first_ : prompt_ends;
    const std::vector<int64_t>& all = within ? prompt_ends : first_;
    const size_t step = std::max<size_t>(1, few.size() / kAnchors);
    for (size_t i = 0; i < few.size(); i += step) {
      for (const int64_t other : all) {
        const int64_t offset = within ? few[i] - other : other - few[i];
        if (offset >= low && offset <= high) out.push_back(offset);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  size_t Quick(int64_t offset, size_t step) const {
    size_t out = 0;
    for (size_t i = 0; i < first_.size(); i += step) {
      const size_t j = PassAt(first_[i] - offset);
      out += j != kNoPass && passes_[j].MayHavePrompts();
    }
    return out;
  }

  // Of each pass: how many requests got a chunk of tokens from it; without the
  // time of every token, how many were at work.
  std::vector<int64_t> Given(int64_t offset, std::vector<int64_t>& late) const {
    std::vector<int64_t> given(passes_.size());
    const auto& times = every_token_ ? tokens_ : first_;
    size_t j = 0;
    for (const int64_t token : times) {
      const int64_t time = token - offset;
      while (j < ends_.size() && ends_[j] <= time + slack_) ++j;
      if (j == 0) continue;
      if (j == ends_.size() && time - ends_[j - 1] > LastReach()) break;
      if (every_token_) ++given[j - 1];
      late.push_back(time - ends_[j - 1]);
    }
    if (every_token_) return given;
    for (const auto& [first, last] : spans_) {
      const size_t from = PassAt(first - offset), to = PassAt(last - offset);
      if (from == kNoPass && last - offset < ends_.front()) continue;
      const size_t begin = from == kNoPass ? 0 : from;
      if (from == kNoPass && first - offset > ends_.front()) continue;
      const size_t end = to == kNoPass ? passes_.size() - 1 : to;
      for (size_t p = begin; p <= end; ++p) ++given[p];
    }
    return given;
  }

  double Judge(int64_t offset) const {
    std::vector<int64_t> late;
    const std::vector<int64_t> given = Given(offset, late);
    const size_t all = every_token_ ? tokens_.size() : first_.size();
    size_t needed = all;
    if (expected_ > 0 && every_token_)
      needed = std::min(needed, static_cast<size_t>(expected_));
    if (late.empty() ||
        static_cast<double>(late.size()) <
            (every_token_ ? 0.2 : 0.02) * static_cast<double>(needed))
      return 0;
    double agree = 0, judged = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      if (given[p] == 0 || !passes_[p].generating || !passes_[p].prompts)
        continue;
      const int64_t least = *passes_[p].generating,
                    most = least + *passes_[p].prompts;
      judged += 1;
      if (given[p] < least) {
        // Traffic that the records lack.
        agree += static_cast<double>(given[p]) / static_cast<double>(least);
      } else if (given[p] <= most) {
        agree += 1;
      }
    }
    const double prompts = PromptShare(offset);
    const int64_t middle = MedianOf(late);
    const auto near = std::count_if(late.begin(), late.end(), [&](int64_t x) {
      return std::abs(x - middle) < tight_;
    });
    return (judged > 0 ? agree / judged : 1) * prompts *
           static_cast<double>(near) / static_cast<double>(late.size());
  }

  // Passes that got tokens, of those that must have given some.
  double Coverage(int64_t offset) const {
    std::vector<int64_t> late;
    const std::vector<int64_t> given = Given(offset, late);
    double busy = 0, covered = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      if (passes_[p].generating.value_or(1) == 0) continue;
      busy += 1;
      covered += given[p] > 0;
    }
    return busy > 0 ? covered / busy : 1;
  }

  // Whether first tokens stand on other passes: more than a few.
  bool DiffersFrom(int64_t a, int64_t b) const {
    if (std::abs(a - b) <= period_ / 2) return false;
    const size_t step = std::max<size_t>(1, first_.size() / 500);
    size_t other = 0, all = 0;
    for (size_t i = 0; i < first_.size(); i += step) {
      const size_t x = PassAt(first_[i] - a), y = PassAt(first_[i] - b);
      if (x == kNoPass && y == kNoPass) continue;
      ++all;
      other += x != y;
    }
    return other * 5 > all;
  }

  // Moves an offset so that the least delay is none: one of a hundred tokens
  // may be earlier.
  int64_t WithLeastDelay(int64_t offset) const {
    std::vector<int64_t> late;
    Given(offset, late);
    std::sort(late.begin(), late.end());
    return late.empty() ? offset : offset + late[late.size() / 100];
  }

  int64_t MedianLate(int64_t offset) const {
    std::vector<int64_t> late;
    Given(offset, late);
    return MedianOf(std::move(late));
  }

  int64_t median_wall() const { return median_wall_; }
  int64_t period() const { return period_; }
  int64_t slack() const { return slack_; }
  size_t tokens() const { return tokens_.size(); }
  size_t firsts() const { return first_.size(); }

 private:
  // Behind the last pass stands what a pass made that was not recorded.
  int64_t LastReach() const { return std::max(period_ / 2, slack_); }

  double PromptShare(int64_t offset) const {
    size_t all = 0, good = 0, in_pass = 0;
    size_t before = kNoPass;
    for (const int64_t first : first_) {
      const size_t j = PassAt(first - offset);
      if (j == kNoPass) continue;
      in_pass = j == before ? in_pass + 1 : 1;
      before = j;
      ++all;
      good += passes_[j].prompts
                  ? static_cast<int64_t>(in_pass) <= *passes_[j].prompts
                  : passes_[j].MayHavePrompts();
    }
    return all > 0 ? static_cast<double>(good) / static_cast<double>(all) : 0;
  }

  const std::vector<ServedPass>& passes_;
  const bool every_token_;
  std::vector<int64_t> ends_;
  std::vector<int64_t> first_, tokens_;  // on the clock of the records, sorted
  std::vector<std::pair<int64_t, int64_t>> spans_;
  int64_t median_wall_ = 1, period_ = 1, slack_ = 0, tight_ = 0;
  int64_t expected_ = 0;
};

// The best candidates, best first.
std::vector<Candidate> BestOf(const Placer& placer,
                              const std::vector<int64_t>& offsets) {
  std::vector<Candidate> out;
  out.reserve(offsets.size());
  for (const int64_t offset : offsets) out.push_back({offset});
  // A sample of first tokens for many candidates, all of them for few.
  for (const auto& [sample, left] :
       {std::pair<size_t, size_t>{64, 4000}, {1000, 400}, {SIZE_MAX, 200}}) {
    if (out.size() <= left && sample != SIZE_MAX) continue;
    const size_t step =
        sample == SIZE_MAX ? 1 : std::max<size_t>(1, placer.firsts() / sample);
    for (Candidate& one : out) one.quick = placer.Quick(one.offset, step);
    std::sort(
        out.begin(), out.end(), [](const Candidate& x, const Candidate& y) {
          return std::pair(y.quick, x.offset) < std::pair(x.quick, y.offset);
        });
    // Not all that are as good as the last are kept; they are near others.
    out.resize(std::min(out.size(), left));
  }
  constexpr size_t kSteps = 20'000'000;
  out.resize(std::min(
      out.size(), std::clamp<size_t>(kSteps / (placer.tokens() + 1), 16, 200)));
  for (Candidate& one : out) one.score = placer.Judge(one.offset);
  std::sort(out.begin(), out.end(), [](const Candidate& x, const Candidate& y) {
    return std::pair(y.score, y.offset) < std::pair(x.score, x.offset);
  });
  return out;
}

// The drift of a clock in nanoseconds per nanosecond: the Theil-Sen slope of
// how late tokens are, where that halves their spread.
double DriftOf(const std::vector<std::pair<int64_t, int64_t>>& late) {
  constexpr size_t kMost = 400;
  const size_t step = std::max<size_t>(1, late.size() / kMost);
  std::vector<double> slopes, before, after;
  for (size_t i = 0; i < late.size(); i += step) {
    for (size_t j = i + step; j < late.size(); j += step) {
      const auto time = static_cast<double>(late[j].first - late[i].first);
      if (time > 0) {
        slopes.push_back(static_cast<double>(late[j].second - late[i].second) /
                         time);
      }
    }
  }
  if (slopes.size() < 10) return 0;
  const double slope = runs::Median(slopes);
  for (size_t i = 0; i < late.size(); i += step) {
    const auto y = static_cast<double>(late[i].second);
    before.push_back(y);
    after.push_back(
        y - slope * static_cast<double>(late[i].first - late.front().first));
  }
  return 2 * runs::RobustDeviation(after) <= runs::RobustDeviation(before)
             ? slope
             : 0;
}

// Gives the tokens of prompts in each pass to requests in order of arrival: to
// those whose first token it made what they lack, the rest to who waits.
class PromptSharer {
 public:
  PromptSharer(const std::vector<ServedPass>& passes,
               std::vector<PlacedRequest>& requests, int64_t tolerance)
      : passes_(passes), requests_(requests), tolerance_(tolerance) {
    for (const PlacedRequest& one : requests) {
      need_.push_back(one.request->input_tokens
                          ? std::optional(std::max<int64_t>(
                                1, *one.request->input_tokens -
                                       one.request->cached_tokens.value_or(0)))
                          : std::nullopt);
    }
    exact_.assign(requests.size(), true);
  }

  void Share() {
    std::vector<std::vector<size_t>> ended(passes_.size());
    for (size_t r = 0; r < requests_.size(); ++r) {
      if (requests_[r].pass.front() != kNoPass)
        ended[requests_[r].pass.front()].push_back(r);
    }
    size_t arrived = 0;
    for (size_t p = 0; p < passes_.size(); ++p) {
      // Requests stand in order of arrival.
      while (arrived < requests_.size() &&
             requests_[arrived].arrival_ns <=
                 passes_[p].start_ns + tolerance_) {
        const size_t first = requests_[arrived].pass.front();
        if (first != kNoPass && first > p) waiting_.insert(arrived);
        ++arrived;
      }
      for (const size_t r : ended[p]) waiting_.erase(r);
      if (passes_[p].MayHavePrompts()) SharePass(p, ended[p]);
    }
    for (size_t r = 0; r < requests_.size(); ++r) {
      PlacedRequest& one = requests_[r];
      one.prompt_known = exact_[r] && !one.prompt.empty();
    }
  }

 private:
  void Give(size_t r, size_t p, std::optional<int64_t> tokens) {
    requests_[r].prompt.push_back({p, tokens});
    if (need_[r] && tokens) *need_[r] -= *tokens;
  }

  void SharePass(size_t p, const std::vector<size_t>& ended) {
    std::optional<int64_t> left = passes_[p].prompt_tokens;
    int64_t others =
        passes_[p].prompts.value_or(0) - static_cast<int64_t>(ended.size());
    if (ended.size() == 1 && left && others == 0) {
      GiveAll(ended.front(), p, *left);
      return;
    }
    int64_t lacked = 0;
    bool all_known = left.has_value();
    for (const size_t r : ended) {
      all_known &= need_[r].has_value();
      lacked += need_[r].value_or(0);
    }
    // A prompt that a prefix cache shortened has fewer left than it lacks: who
    // got how much cannot be told then.
    const bool adds_up = all_known && lacked <= *left;
    for (const size_t r : ended) {
      const auto tokens = adds_up ? need_[r] : std::nullopt;
      Give(r, p, tokens);
      if (tokens) *left -= *tokens;
    }
    if (others < 0 || !adds_up) {
      if (others != 0) Doubt();
      return;
    }
    std::vector<std::pair<size_t, int64_t>> given;
    for (auto r = waiting_.begin(); r != waiting_.end() && others > 0; ++r) {
      if (!need_[*r]) continue;
      const int64_t tokens = std::min(*need_[*r] - 1, *left);
      if (tokens <= 0) continue;
      given.push_back({*r, tokens});
      *left -= tokens;
      --others;
    }
    // Traffic that the records lack, or another order: who got these tokens
    // cannot be told.
    if (others != 0 || *left != 0) {
      Doubt();
      for (const size_t r : ended) {
        if (requests_[r].prompt.size() > 1) exact_[r] = false;
      }
      return;
    }
    for (const auto& [r, tokens] : given) Give(r, p, tokens);
  }

  // All tokens of a pass are of one prompt, which ends there.
  void GiveAll(size_t r, size_t p, int64_t tokens) {
    if (need_[r] && tokens > *need_[r]) {
      // It got nothing before, so what it was given was of another.
      const int64_t all = std::max<int64_t>(
          1, *requests_[r].request->input_tokens -
                 requests_[r].request->cached_tokens.value_or(0));
      requests_[r].prompt.clear();
      exact_[r] = tokens == all;
    } else if (!need_[r]) {
      exact_[r] = exact_[r] && requests_[r].prompt.empty();
    }
    Give(r, p, tokens);
  }

  // Chunks of those that wait may have been in a pass that does not add up.
  void Doubt() {
    for (const size_t r : waiting_) exact_[r] = false;
  }

  const std::vector<ServedPass>& passes_;
  std::vector<PlacedRequest>& requests_;
  const int64_t tolerance_;
  std::vector<std::optional<int64_t>> need_;
  std::vector<bool> exact_;
  std::set<size_t> waiting_;  // by arrival
};

// `offset`: of tokens; `arrival_offset`: of arrivals.
void PlaceAll(const Records& records, const Placer& placer,
              const std::vector<ServedPass>& passes, int64_t arrival_offset,
              Join& join) {
  const auto corrected = [&](int64_t time) {
    return time - join.offset_ns -
           std::llround(join.drift_ppm * 1e-6 *
                        static_cast<double>(time - join.offset_ns -
                                            passes.front().end_ns));
  };
  std::vector<const Request*> order;
  for (const Request& request : records.requests) order.push_back(&request);
  std::stable_sort(order.begin(), order.end(),
                   [](const Request* x, const Request* y) {
                     return x->start_ns < y->start_ns;
                   });
  const int64_t shift = join.offset_ns - arrival_offset;
  for (const Request* request : order) {
    PlacedRequest& out = join.requests.emplace_back();
    out.request = request;
    const int64_t arrival = corrected(request->start_ns);
    out.arrival_ns = arrival + shift;
    size_t inside = 0;
    for (const int64_t at : request->chunk_ns) {
      // Durations are those of the client, to the nanosecond.
      out.token_ns.push_back(out.arrival_ns + at);
      out.pass.push_back(placer.PassAt(arrival + at));
      inside += out.pass.back() != kNoPass;
    }
    const bool began = out.pass.front() != kNoPass;
    out.state = inside == 0                           ? PlacedState::kOutside
                : began && out.pass.back() != kNoPass ? PlacedState::kComplete
                                                      : PlacedState::kCut;
  }
}

// By how much arrivals are too late for the passes that made their first
// tokens, or tokens too early for theirs: 0 where the clocks fit.
int64_t ApartOf(const Join& join, const std::vector<ServedPass>& passes,
                int64_t delay_ns) {
  std::vector<int64_t> late;
  for (const PlacedRequest& one : join.requests) {
    if (one.pass.front() != kNoPass)
      late.push_back(one.arrival_ns - passes[one.pass.front()].start_ns);
  }
  if (late.empty()) return 0;
  std::sort(late.begin(), late.end());
  // One of twenty may have another cause.
  const int64_t most = late[late.size() - 1 - late.size() / 20];
  if (most > 0) return most;
  return delay_ns < 0 ? delay_ns : 0;
}

// What of the passes the records explain.
void Explain(const std::vector<ServedPass>& passes, bool every_token,
             Join& join) {
  std::vector<int64_t> given(passes.size());
  size_t first = passes.size(), last = 0;
  for (const PlacedRequest& one : join.requests) {
    for (size_t i = 0; i < one.pass.size(); ++i) {
      const size_t p = one.pass[i];
      if (p == kNoPass) continue;
      ++given[p];
      first = std::min(first, p);
      last = std::max(last, p);
    }
    if (every_token || one.pass.size() < 2) continue;
    // Between the first and the last token it was in every pass.
    const size_t from = one.pass.front() == kNoPass ? 0 : one.pass.front() + 1;
    const size_t to =
        one.pass.back() == kNoPass ? passes.size() : one.pass.back();
    if (one.state == PlacedState::kOutside) continue;
    for (size_t p = from; p < to; ++p) ++given[p];
  }
  double all = 0, other = 0;
  for (size_t p = 0; p < passes.size(); ++p) {
    if (!passes[p].generating || !passes[p].prompts) continue;
    ++join.passes_judged;
    const int64_t least = *passes[p].generating;
    all += static_cast<double>(std::max(least, given[p]));
    other += static_cast<double>(std::max<int64_t>(0, least - given[p]));
    join.passes_explained +=
        given[p] >= least && given[p] <= least + *passes[p].prompts;
  }
  join.other_tokens = all > 0 ? other / all : 0;
}

// Searches for the offset; false: join.status says why not.
// `known`: arrivals are off by `zero_ns`, and only the delay is searched for.
bool FindOffset(const Placer& placer, bool known, int64_t zero_ns, bool by_hand,
                Join& join) {
  const auto offsets =
      placer.Candidates(known ? zero_ns + kLeastDelayNs : INT64_MIN,
                        known ? zero_ns + kMostDelayNs : INT64_MAX);
  const std::vector<Candidate> best = BestOf(placer, offsets);
  join.score = best.empty() ? 0 : best.front().score;
  if (join.score < (by_hand ? 1e-9 : kLeastScore)) return false;
  const Candidate& top = best.front();
  join.offset_ns = top.offset;
  const double covered = placer.Coverage(top.offset);
  for (size_t i = 1; i < best.size(); ++i) {
    if (!placer.DiffersFrom(top.offset, best[i].offset)) continue;
    // A placement that leaves more passes without tokens explains less.
    const double share =
        best[i].score *
        (0.5 + 0.5 * std::min(1.0, placer.Coverage(best[i].offset) /
                                       std::max(covered, 1e-9)));
    join.second = std::max(join.second, share);
    if (best[i].score < join.second) break;
  }
  if (!by_hand && join.second > kSecondShare * join.score) {
    join.status = JoinStatus::kAmbiguous;
    return false;
  }
  return true;
}

}  // namespace

std::string_view JoinStatusName(JoinStatus status) {
  static constexpr std::string_view kNames[] = {
      "joined",         "no_fit",       "ambiguous",
      "no_start_times", "clocks_apart", "no_passes",
  };
  return kNames[static_cast<size_t>(status)];
}

std::vector<ServedPass> PassesOf(const runs::Units& units) {
  std::vector<ServedPass> out;
  for (const runs::Unit& unit : units.units) {
    if (unit.phase == runs::Phase::kTrain || unit.phase == runs::Phase::kEval)
      continue;
    ServedPass& pass = out.emplace_back();
    pass.number = unit.number;
    pass.phase = unit.phase;
    pass.start_ns = unit.start_ns;
    pass.end_ns = unit.start_ns + unit.unit_ns;
    pass.prompts = unit.load.context_requests;
    pass.prompt_tokens = unit.load.context_tokens;
    pass.generating = unit.load.generating;
    pass.context = unit.load.generating_context;
  }
  // By their ends, which tokens stand behind.
  std::stable_sort(out.begin(), out.end(),
                   [](const ServedPass& x, const ServedPass& y) {
                     return x.end_ns < y.end_ns;
                   });
  return out;
}

Join PlaceRequests(const Records& records, std::vector<ServedPass>& passes,
                   std::optional<int64_t> base_ns, const JoinOptions& options) {
  Join join;
  join.clock = records.clock;
  if (join.clock == Clock::kNone) {
    join.status = JoinStatus::kNoStartTimes;
    return join;
  }
  const bool says =
      std::any_of(passes.begin(), passes.end(), [](const ServedPass& pass) {
        return pass.prompts || pass.phase != runs::Phase::kPass;
      });
  if (!says) {
    join.status = JoinStatus::kNoPasses;
    return join;
  }
  // A wall clock helps where the trace has one.
  if (join.clock == Clock::kEpoch && !base_ns) join.clock = Clock::kOwn;
  const bool by_hand = options.offset_ns.has_value();
  const bool known = by_hand || join.clock == Clock::kEpoch;
  const int64_t zero_ns = by_hand ? *options.offset_ns : base_ns.value_or(0);
  const Placer placer(records, passes);
  if (!FindOffset(placer, known, zero_ns, by_hand, join)) return join;
  join.offset_ns = placer.WithLeastDelay(join.offset_ns);
  const int64_t arrival_offset = known ? zero_ns : join.offset_ns;
  PlaceAll(records, placer, passes, arrival_offset, join);
  // Drift: of the placed tokens.
  std::vector<std::pair<int64_t, int64_t>> late;
  for (const PlacedRequest& one : join.requests) {
    for (size_t i = 0; i < one.pass.size(); ++i) {
      if (one.pass[i] != kNoPass) {
        late.push_back(
            {one.token_ns[i], one.token_ns[i] - passes[one.pass[i]].end_ns});
      }
    }
  }
  if (records.requests.size() > 20) {
    std::sort(late.begin(), late.end());
    if (const double drift = DriftOf(late); drift != 0) {
      join.drift_ppm = drift * 1e6;
      join.requests.clear();
      PlaceAll(records, placer, passes, arrival_offset, join);
    }
  }
  std::vector<int64_t> delays;
  for (const auto& [time, delay] : late) delays.push_back(delay);
  if (known) join.delay_ns = MedianOf(std::move(delays));
  const int64_t apart = ApartOf(join, passes, join.offset_ns - arrival_offset);
  if (known && !by_hand && std::abs(apart) > placer.median_wall()) {
    join.status = JoinStatus::kClocksApart;
    join.apart_ns = apart;
    join.requests.clear();
    return join;
  }
  join.status = JoinStatus::kJoined;
  PromptSharer(passes, join.requests, std::max<int64_t>(0, apart) + 20'000)
      .Share();
  // An own clock cannot tell delay from offset: arrivals may be later by what
  // the request that waited least waited.
  std::optional<int64_t> least_queue;
  for (const PlacedRequest& one : join.requests) {
    if (!one.prompt_known) continue;
    const int64_t queue =
        passes[one.prompt.front().pass].start_ns - one.arrival_ns;
    least_queue = std::min(least_queue.value_or(queue), queue);
  }
  join.uncertainty_ns = known ? std::max(std::abs(apart), placer.slack() / 2)
                              : std::max<int64_t>(0, least_queue.value_or(0));
  Explain(passes, records.every_token, join);
  return join;
}

}  // namespace lamina::serving
