// SPDX-License-Identifier: Apache-2.0
#include "findings/ledger.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace lamina::findings {
namespace {

// Most claims come in their order.
template <class Less>
void SortUnlessSorted(std::vector<Claim*>& claims, Less less) {
  if (!std::is_sorted(claims.begin(), claims.end(), less))
    std::stable_sort(claims.begin(), claims.end(), less);
}

}  // namespace

Ledger::Ledger(std::vector<IntervalSet> idle, EventTimes own_ns)
    : idle_(std::move(idle)),
      owned_(idle_.size()),
      left_ns_(std::move(own_ns)) {}

Ledger::Served Ledger::Serve(std::vector<Claim>& claims) const {
  Served served;
  served.spans.resize(idle_.size());
  std::vector<std::vector<Claim*>> spans(idle_.size());
  std::vector<Claim*> events;
  for (Claim& claim : claims) {
    claim.owned_ns = 0;
    if (claim.uid >= 0) {
      events.push_back(&claim);
    } else if (claim.device < spans.size() && claim.dur_ns > 0) {
      spans[claim.device].push_back(&claim);
    }
  }
  SortUnlessSorted(events, [](const Claim* a, const Claim* b) {
    return std::tie(a->start_ns, a->uid) < std::tie(b->start_ns, b->uid);
  });
  for (Claim* claim : events) {
    const auto left = left_ns_.find(claim->uid);
    if (left == left_ns_.end()) continue;
    int64_t& taken = served.events[claim->uid];
    const int64_t wanted = std::max<int64_t>(0, claim->dur_ns);
    claim->owned_ns = std::min(wanted, left->second - taken);
    taken += claim->owned_ns;
    const auto owner = event_owner_.find(claim->uid);
    if (owner != event_owner_.end())
      served.refused[owner->second] += wanted - claim->owned_ns;
  }
  for (uint32_t d = 0; d < spans.size(); ++d) {
    if (!spans[d].empty()) ServeSpans(spans[d], d, served);
  }
  return served;
}

// One walk over the claims by start; gaps and owned spans are found by
// searching.
void Ledger::ServeSpans(std::vector<Claim*>& claims, uint32_t device,
                        Served& served) const {
  SortUnlessSorted(claims, [](const Claim* a, const Claim* b) {
    return std::tie(a->start_ns, a->dur_ns) < std::tie(b->start_ns, b->dur_ns);
  });
  const std::vector<Owned>& owned = owned_[device];
  const auto gaps = idle_[device].intervals();
  int64_t reached = std::numeric_limits<int64_t>::min();
  for (Claim* claim : claims) {
    const int64_t end = claim->start_ns + claim->dur_ns;
    const int64_t at = std::max(claim->start_ns, reached);
    if (at >= end) continue;
    reached = end;
    auto gap =
        std::partition_point(gaps.begin(), gaps.end(),
                             [&](const Interval& g) { return g.end_ns <= at; });
    for (; gap != gaps.end() && gap->start_ns < end; ++gap) {
      int64_t from = std::max(at, gap->start_ns);
      const int64_t to = std::min(end, gap->end_ns);
      auto taken = std::partition_point(
          owned.begin(), owned.end(),
          [&](const Owned& o) { return o.span.end_ns <= from; });
      while (from < to) {
        const bool any = taken != owned.end() && taken->span.start_ns < to;
        const int64_t free_end = any ? taken->span.start_ns : to;
        if (free_end > from) {
          served.spans[device].push_back({{from, free_end}, 0});
          claim->owned_ns += free_end - from;
          from = free_end;
        }
        if (!any) break;
        const int64_t until = std::min(to, taken->span.end_ns);
        served.refused[taken->rule] += until - from;
        from = until;
        ++taken;
      }
    }
  }
}

void Ledger::Offer(std::vector<Claim>& claims) const { Serve(claims); }

void Ledger::Grant(uint32_t rule, std::vector<Claim>& claims) {
  Served served = Serve(claims);
  for (const auto& [uid, ns] : served.events) {
    left_ns_[uid] -= ns;
    if (ns > 0) event_owner_.try_emplace(uid, rule);
  }
  for (size_t d = 0; d < served.spans.size(); ++d) {
    auto& owned = owned_[d];
    const auto middle = static_cast<ptrdiff_t>(owned.size());
    for (Owned& span : served.spans[d]) {
      span.rule = rule;
      owned_idle_ns_ += span.span.length_ns();
      owned.push_back(span);
    }
    std::inplace_merge(owned.begin(), owned.begin() + middle, owned.end(),
                       [](const Owned& a, const Owned& b) {
                         return a.span.start_ns < b.span.start_ns;
                       });
  }
  for (const auto& [owner, ns] : served.refused) {
    if (owner != rule) refused_[{owner, rule}] += ns;
  }
}

int64_t Ledger::idle_ns() const {
  int64_t sum = 0;
  for (const IntervalSet& gaps : idle_) sum += gaps.length_ns();
  return sum;
}

std::vector<Refusal> Ledger::refusals() const {
  std::vector<Refusal> out;
  for (const auto& [key, ns] : refused_) {
    if (ns > 0) out.push_back({key.first, key.second, ns});
  }
  return out;
}

}  // namespace lamina::findings
