// SPDX-License-Identifier: Apache-2.0
#include "dist/blame.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lamina::dist {
namespace {

// Delays pass through a pipeline stage by stage; longer ways than this are
// noise adding up.
constexpr int kMostHops = 256;

// Where a call stands, by one of its members.
using Place = std::pair<int64_t, uint32_t>;  // rank, number of the call

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
        places_.try_emplace(Place{m.rank, m.call}, c);
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
      const auto it = places_.find(Place{member.rank, member.previous});
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
  absl::flat_hash_map<Place, size_t> places_;
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

}  // namespace lamina::dist
