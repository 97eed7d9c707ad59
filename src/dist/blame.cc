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

const MeasuredMember& LateMember(const MeasuredCall& call) {
  for (const MeasuredMember& m : call.members) {
    if (m.rank == call.late_rank) return m;
  }
  return call.members.front();
}

class Follower {
 public:
  explicit Follower(const std::vector<MeasuredCall>& calls) : calls_(calls) {
    for (size_t c = 0; c < calls.size(); ++c) {
      for (const MeasuredMember& m : calls[c].members)
        places_.try_emplace(Place{m.rank, m.call}, c);
    }
  }

  // The call whose late rank is to blame for the skew of `start`.
  size_t RootOf(size_t start) const {
    size_t root = start;
    int64_t largest = 0;
    size_t at = start;
    for (int hop = 0; hop < kMostHops; ++hop) {
      const MeasuredCall& call = calls_[at];
      if (call.cause != Cause::kNone && call.cause != Cause::kPrevious &&
          call.cause_ns > largest) {
        largest = call.cause_ns;
        root = at;
        // It alone explains most of the skew.
        if (2 * largest >= calls_[start].start_skew_ns) break;
      }
      const MeasuredMember& late = LateMember(call);
      if (late.previous == kNoIndex) break;
      const auto it = places_.find(Place{late.rank, late.previous});
      if (it == places_.end()) break;
      const MeasuredCall& before = calls_[it->second];
      if (!before.doubt.empty()) break;
      // All were together there, so what came before made no difference.
      if (before.group == calls_[start].group && Synchronises(before.kind) &&
          before.members.size() == calls_[start].members.size())
        break;
      at = it->second;
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
    if (!call.comparable() || !Synchronises(call.kind) ||
        call.start_skew_ns == 0)
      continue;
    const size_t root = follower.RootOf(c);
    out.push_back({c, root, measured.calls[root].late_rank});
  }
  return out;
}

std::vector<RankBlame> FindBlame(const Measured& measured) {
  std::map<int64_t, RankBlame> ranks;
  using Key = std::tuple<int64_t, Cause, std::string_view>;
  std::map<Key, CauseSum> sums;
  std::set<size_t> counted;  // roots whose delay is in a sum
  for (size_t c = 0; c < measured.calls.size(); ++c) {
    const MeasuredCall& call = measured.calls[c];
    if (!call.comparable() || !Synchronises(call.kind)) continue;
    for (const MeasuredMember& m : call.members) {
      RankBlame& blame = ranks[m.rank];
      blame.wait_ns += m.wait_ns;
      ++blame.calls;
    }
  }
  for (const auto& [c, root, rank] : BlameCalls(measured)) {
    const MeasuredCall& call = measured.calls[c];
    ++ranks[call.late_rank].times_last;
    ++ranks[call.early_rank].times_first;
    ranks[call.late_rank].caused_ns += call.wait_ns;
    const MeasuredCall& first = measured.calls[root];
    ranks[rank].blamed_ns += call.wait_ns;
    CauseSum& sum = sums[Key{rank, first.cause, first.cause_name}];
    sum.cause = first.cause;
    sum.name = first.cause_name;
    sum.wait_ns += call.wait_ns;
    if (counted.insert(root).second) {
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
