// SPDX-License-Identifier: Apache-2.0

#include "dist/blame.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <tuple>

#include "analysis/common/stats.h"
#include "base/decimal.h"
#include "dist/tables.h"

namespace lamina::dist {

namespace {

// Delays pass through a pipeline stage by stage; longer ways than this are
// noise adding up.
constexpr int kMostHops = 256;

// Where a call stands, by one of its members.
using CallPlace = std::pair<int64_t, uint32_t>;  // rank, number of the call

const MeasuredMember& MemberOf(const MeasuredCall& call, int64_t rank) {
  for (const MeasuredMember& m : call.members) {
    if (m.rank == rank) return m;
  }
  return call.members.front();
}

// A delay: a call, and which of its late ranks.
struct Delay {
  size_t call = 0;
  size_t late = 0;
};

class Follower {
 public:
  explicit Follower(const std::vector<MeasuredCall>& calls) : calls_(calls) {
    for (size_t c = 0; c < calls.size(); ++c) {
      for (const MeasuredMember& m : calls[c].members)
        places_.try_emplace(CallPlace{m.rank, m.call}, c);
    }
  }

  // The delay behind the lateness `start`.
  Delay RootOf(const Delay& start) const {
    Delay root = start;
    int64_t largest = 0;
    Delay at = start;
    const MeasuredCall& first = calls_[start.call];
    for (int hop = 0; hop < kMostHops; ++hop) {
      const MeasuredCall& call = calls_[at.call];
      const LateRank& late = call.late[at.late];
      if (late.cause != Cause::kNone && late.cause != Cause::kPrevious &&
          late.cause_ns > largest) {
        largest = late.cause_ns;
        root = at;
        // It alone explains most of the skew.
        if (2 * largest >= first.start_skew_ns) break;
      }
      const MeasuredMember& member = MemberOf(call, late.rank);
      if (member.previous == kNoIndex) break;
      const auto it = places_.find(CallPlace{member.rank, member.previous});
      if (it == places_.end()) break;
      const MeasuredCall& before = calls_[it->second];
      if (!before.doubt.empty() || before.late.empty()) break;
      // All were together there, so what came before made no difference.
      if (before.group == first.group && before.synchronises &&
          before.members.size() == first.members.size())
        break;
      at = {it->second, 0};
    }
    return root;
  }

 private:
  const std::vector<MeasuredCall>& calls_;
  absl::flat_hash_map<CallPlace, size_t> places_;
};

}  // namespace

std::vector<BlamedCall> BlameCalls(const Measured& measured) {
  const Follower follower(measured.calls);
  std::vector<BlamedCall> out;
  for (size_t c = 0; c < measured.calls.size(); ++c) {
    const MeasuredCall& call = measured.calls[c];
    if (!call.waited() || call.start_skew_ns == 0) continue;
    for (size_t i = 0; i < call.late.size(); ++i) {
      const Delay root = follower.RootOf({c, i});
      out.push_back({c, i, root.call, root.late,
                     measured.calls[root.call].late[root.late].rank,
                     call.late[i].wait_ns});
    }
  }
  return out;
}

std::vector<RankBlame> FindBlame(const Measured& measured) {
  std::map<int64_t, RankBlame> ranks;
  using Key = std::tuple<int64_t, Cause, std::string_view>;
  std::map<Key, CauseSum> sums;
  std::set<std::pair<size_t, size_t>> counted;  // delays that are in a sum
  for (size_t c = 0; c < measured.calls.size(); ++c) {
    const MeasuredCall& call = measured.calls[c];
    if (!call.waited()) continue;
    for (const MeasuredMember& m : call.members) {
      RankBlame& blame = ranks[m.rank];
      blame.wait_ns += m.wait_ns;
      ++blame.calls;
    }
    if (call.start_skew_ns == 0) continue;
    ++ranks[call.late_rank].times_last;
    ++ranks[call.early_rank].times_first;
    for (const LateRank& late : call.late)
      ranks[late.rank].caused_ns += late.wait_ns;
  }
  for (const BlamedCall& blamed : BlameCalls(measured)) {
    const LateRank& first = measured.calls[blamed.root].late[blamed.root_late];
    ranks[blamed.rank].blamed_ns += blamed.wait_ns;
    CauseSum& sum = sums[Key{blamed.rank, first.cause, first.cause_name}];
    sum.cause = first.cause;
    sum.name = first.cause_name;
    sum.wait_ns += blamed.wait_ns;
    if (counted.insert({blamed.root, blamed.root_late}).second) {
      sum.delay_ns += first.cause_ns;
      ++sum.calls;
    }
  }
  for (auto& [key, sum] : sums)
    ranks[std::get<0>(key)].causes.push_back(std::move(sum));
  std::vector<RankBlame> out;
  for (auto& [rank, blame] : ranks) {
    blame.rank = rank;
    std::stable_sort(blame.causes.begin(), blame.causes.end(),
                     [](const CauseSum& a, const CauseSum& b) {
                       return a.wait_ns > b.wait_ns;
                     });
    out.push_back(std::move(blame));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RankBlame& a, const RankBlame& b) {
                     return a.blamed_ns > b.blamed_ns;
                   });
  return out;
}

// Three patterns of lateness, which ask for three remedies: one rank (its
// machine), a wandering one (uneven input, noise of hosts), few steps
// (checkpoints, evaluation, garbage collection). What a rank waits is put down
// to the rank behind it and counted by step; without steps by equal parts of
// the list of collectives.

namespace {

// Fewer units of time show no pattern.
constexpr size_t kLeastUnits = 4;
constexpr size_t kParts = 20;  // of a job without steps
constexpr size_t kMostNamed = 8;

// Waiting in one step, by the rank behind it.
struct Unit {
  int64_t number = 0;
  int64_t wait_ns = 0;
  std::map<int64_t, int64_t> by_rank;

  // The rank with the most; the lowest of equals.
  std::pair<int64_t, int64_t> Worst() const {
    std::pair<int64_t, int64_t> worst{0, -1};
    for (const auto& [rank, ns] : by_rank) {
      if (ns > worst.second) worst = {rank, ns};
    }
    return worst;
  }
};

struct Waiting {
  std::vector<Unit> units;  // by number
  std::map<int64_t, int64_t> by_rank;
  int64_t all_ns = 0;
  size_t ranks = 0;    // readable
  bool steps = false;  // units are steps
};

// Step of a call: that of its late rank.
int64_t StepOf(const std::map<int64_t, const RankSummary*>& ranks,
               const MeasuredCall& call) {
  for (const MeasuredMember& m : call.members) {
    const auto it = ranks.find(m.rank);
    if (m.rank != call.late_rank || it == ranks.end()) continue;
    if (m.step < it->second->steps.size())
      return it->second->steps[m.step].number;
  }
  return kNoInt;
}

Waiting CollectWaiting(const Job& job) {
  std::map<int64_t, const RankSummary*> ranks;
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty()) ranks.emplace(rank.rank, &rank);
  }
  Waiting out;
  out.ranks = ranks.size();
  for (const auto& [number, rank] : ranks) {
    for (const StepTimes& step : rank->steps)
      out.steps = out.steps || step.number != kNoInt;
  }
  std::vector<BlamedCall> calls = BlameCalls(job.measured);
  const auto call_of = [&](const BlamedCall& b) -> const MeasuredCall& {
    return job.measured.calls[b.call];
  };
  std::stable_sort(calls.begin(), calls.end(),
                   [&](const BlamedCall& a, const BlamedCall& b) {
                     return call_of(a).start_ns < call_of(b).start_ns;
                   });
  std::map<int64_t, Unit> units;
  for (size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall& call = call_of(calls[i]);
    const int64_t number =
        out.steps ? StepOf(ranks, call)
                  : static_cast<int64_t>(i * kParts / calls.size());
    if (number == kNoInt) continue;
    Unit& unit = units[number];
    unit.number = number;
    unit.wait_ns += calls[i].wait_ns;
    unit.by_rank[calls[i].rank] += calls[i].wait_ns;
    out.by_rank[calls[i].rank] += calls[i].wait_ns;
    out.all_ns += calls[i].wait_ns;
  }
  for (auto& [number, unit] : units) out.units.push_back(std::move(unit));
  return out;
}

// A quarter of the units or fewer that hold most of the waiting.
std::optional<std::string> FewSteps(const Waiting& waiting) {
  std::vector<const Unit*> order;
  for (const Unit& unit : waiting.units) order.push_back(&unit);
  std::stable_sort(
      order.begin(), order.end(),
      [](const Unit* a, const Unit* b) { return a->wait_ns > b->wait_ns; });
  // A bad one holds four times the median.
  const int64_t median = order[order.size() / 2]->wait_ns;
  int64_t sum = 0;
  std::set<int64_t> bad;
  for (const Unit* const unit : order) {
    if (unit->wait_ns / 4 < median || unit->wait_ns == 0) break;
    sum += unit->wait_ns;
    bad.insert(unit->number);
  }
  if (bad.empty() || 4 * bad.size() > order.size() || sum < waiting.all_ns / 2)
    return std::nullopt;
  std::string names;
  for (const int64_t number : bad) {
    if (names.empty()) {
      names = std::to_string(number);
    } else {
      names += fmt::format(", {}", number);
    }
    if (bad.size() > kMostNamed && number == *std::next(bad.begin(), 7)) {
      names += " and others";
      break;
    }
  }
  return fmt::format(
      "Few {}s: {} of {} hold {:.0f} % of all waiting ({}), the others are "
      "even.",
      waiting.steps ? "step" : "part", bad.size(), order.size(),
      analysis::PercentOf(sum, waiting.all_ns), names);
}

// Twice the even share, and a quarter at least.
bool StandsOut(int64_t part, int64_t whole, size_t ranks) {
  return part >= whole / 4 &&
         part / 2 >= whole / static_cast<int64_t>(std::max<size_t>(1, ranks));
}

std::string OneOrWandering(const Waiting& waiting) {
  const std::string unit = waiting.steps ? "step" : "part of the recording";
  std::map<int64_t, size_t> leads;
  size_t with_one = 0;
  for (const Unit& one : waiting.units) {
    const auto [rank, ns] = one.Worst();
    if (!StandsOut(ns, one.wait_ns, waiting.ranks)) continue;
    ++leads[rank];
    ++with_one;
  }
  std::pair<int64_t, int64_t> worst{0, -1};
  for (const auto& [rank, ns] : waiting.by_rank) {
    if (ns > worst.second) worst = {rank, ns};
  }
  const size_t units = waiting.units.size();
  if (StandsOut(worst.second, waiting.all_ns, waiting.ranks) &&
      2 * leads[worst.first] >= units) {
    return fmt::format(
        "One rank: {} is late again and again, the worst in {} of {} {}s and "
        "behind {:.0f} % of all waiting.",
        worst.first, leads[worst.first], units, waiting.steps ? "step" : "part",
        analysis::PercentOf(worst.second, waiting.all_ns));
  }
  std::erase_if(leads, [](const auto& lead) { return lead.second == 0; });
  const bool changes =
      leads.size() >= 3 &&
      std::all_of(leads.begin(), leads.end(),
                  [&](const auto& lead) { return 2 * lead.second <= units; });
  if (changes && 2 * with_one >= units) {
    return fmt::format(
        "Wandering: the late rank changes from {} to {}; {} different ones are "
        "the worst in {} of {}.",
        unit, unit, leads.size(), with_one, units);
  }
  return {};
}

}  // namespace

std::optional<Note> LatenessNote(const Job& job) {
  const Waiting waiting = CollectWaiting(job);
  if (waiting.units.size() < kLeastUnits || waiting.all_ns == 0)
    return std::nullopt;
  const auto few = FewSteps(waiting);
  std::string text = few ? *few : OneOrWandering(waiting);
  if (text.empty()) return std::nullopt;
  Note note = MakeNote(Severity::kInfo, "lateness", std::move(text),
                       {{"stragglers", "", "", {}}});
  if (waiting.steps) note.evidence.push_back({"rank_steps", "", "", {}});
  return note;
}

}  // namespace lamina::dist
