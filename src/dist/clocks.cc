// SPDX-License-Identifier: Apache-2.0
#include "dist/clocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace lamina::dist {

double Median(std::vector<double>& values) {
  const size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return (below + *middle) / 2;
}

namespace {

// Up to here every pair of calls gives a slope; above, pairs half a list apart.
constexpr size_t kAllPairs = 128;
// Turns a median deviation into a standard one (1.4826), with the loss of a
// median against a mean (1.2533).
constexpr double kDeviation = 1.4826 * 1.2533;

struct Point {
  double x = 0;  // time since the origin
  double y = 0;  // difference of the clocks
};

ClockFit Fit(int64_t rank, int64_t reference, int64_t origin,
             const std::vector<Point>& points) {
  ClockFit fit;
  fit.rank = rank;
  fit.reference = reference;
  fit.origin_ns = origin;
  fit.calls = points.size();
  const size_t n = points.size();
  std::vector<double> values;
  if (n >= kCallsForDrift) {
    const auto slope = [&](const Point& a, const Point& b) {
      if (b.x > a.x) values.push_back((b.y - a.y) / (b.x - a.x));
    };
    if (n <= kAllPairs) {
      for (size_t i = 0; i < n; ++i)
        for (size_t j = i + 1; j < n; ++j) slope(points[i], points[j]);
    } else {
      for (size_t i = 0; i + n / 2 < n; ++i)
        slope(points[i], points[i + n / 2]);
    }
    if (!values.empty()) fit.drift = Median(values);
  }
  values.clear();
  for (const Point& p : points) values.push_back(p.y - fit.drift * p.x);
  fit.offset_ns = Median(values);
  for (double& value : values) value = std::abs(value - fit.offset_ns);
  fit.spread_ns = Median(values);
  double mean = 0;
  for (const Point& p : points) {
    fit.largest_ns =
        std::max(fit.largest_ns, std::abs(fit.offset_ns + fit.drift * p.x));
    mean += p.x / static_cast<double>(n);
  }
  double squares = 0;
  for (const Point& p : points) squares += (p.x - mean) * (p.x - mean);
  if (fit.drift != 0)
    fit.drift_error =
        kDeviation * fit.spread_ns / std::sqrt(squares) *
        std::sqrt(static_cast<double>(n) / static_cast<double>(n - 2));
  return fit;
}

}  // namespace

double ClockFit::error_ns() const {
  // Few calls may agree by chance: those that fix the
  // line do not count.
  const double free = calls > 2 ? static_cast<double>(calls - 2) : 0.5;
  return kDeviation * spread_ns / std::sqrt(free);
}

bool Synchronises(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kBarrier:
      return true;
    default:
      return false;
  }
}

namespace {

struct Points {
  const RankSummary* rank = nullptr;
  const RankSummary* reference = nullptr;
  std::vector<Point> forward, backward;

  void Add(const JoinedMember& m, const JoinedMember& base) {
    rank = m.rank;
    reference = base.rank;
    const int64_t end = m.call->end_ns();
    const int64_t base_end = base.call->end_ns();
    const auto difference = static_cast<double>(end - base_end);
    forward.push_back(
        {static_cast<double>(end - m.rank->first_ns), difference});
    backward.push_back(
        {static_cast<double>(base_end - base.rank->first_ns), -difference});
  }
  void FitBoth(bool pairs, std::vector<ClockFit>& fits) const {
    fits.push_back(Fit(rank->rank, reference->rank, rank->first_ns, forward));
    fits.back().pairs = pairs;
    fits.push_back(
        Fit(reference->rank, rank->rank, reference->first_ns, backward));
    fits.back().pairs = pairs;
  }
};

// Both ends of a send and its receive leave together: of those that name their
// ranks, and those in a group of two, whose ranks need no name.
bool IsPair(const JoinedGroup& group, const JoinedCall& call) {
  if (call.members.size() != 2 || !call.doubt.empty()) return false;
  return call.by == MatchedBy::kPeer ||
         (call.by != MatchedBy::kUnmatched && group.present.size() == 2 &&
          (group.size == kNoInt || group.size == 2) &&
          call.members[0].call->kind == CollectiveKind::kSendRecv);
}

void FitPairs(const JoinedGroup& group, std::vector<ClockFit>& fits) {
  std::map<std::pair<int64_t, int64_t>, Points> points;
  for (const JoinedCall& call : group.calls) {
    if (!IsPair(group, call)) continue;
    const JoinedMember& a = call.members[0];
    const JoinedMember& b = call.members[1];
    points[{a.rank->rank, b.rank->rank}].Add(b, a);
  }
  for (const auto& [ranks, p] : points) p.FitBoth(true, fits);
}

}  // namespace

std::vector<ClockFit> FitClocks(const JoinedGroup& group) {
  std::vector<ClockFit> fits;
  FitPairs(group, fits);
  std::map<int64_t, size_t> counts;
  for (const JoinedCall& call : group.calls) {
    for (const JoinedMember& m : call.members) {
      if (Synchronises(m.call->kind)) ++counts[m.rank->rank];
    }
  }
  if (counts.size() < 2) return fits;
  const auto most = std::max_element(
      counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second < b.second : a.first > b.first;
      });
  const int64_t reference = most->first;
  std::map<int64_t, Points> points;
  for (const JoinedCall& call : group.calls) {
    if (!Synchronises(call.members.front().call->kind) || !call.doubt.empty())
      continue;
    const JoinedMember* base = nullptr;
    for (const JoinedMember& m : call.members) {
      if (m.rank->rank == reference) base = &m;
    }
    if (base == nullptr) continue;
    for (const JoinedMember& m : call.members) {
      if (&m == base) continue;
      points[m.rank->rank].Add(m, *base);
    }
  }
  for (const auto& [rank, p] : points) p.FitBoth(false, fits);
  return fits;
}

int64_t RankClock::Align(int64_t t) const {
  const int64_t drifted =
      std::llround(drift * static_cast<double>(t - origin_ns));
  // Hostile clocks may lie centuries apart: wraps instead of overflowing.
  return static_cast<int64_t>(static_cast<uint64_t>(t) -
                              static_cast<uint64_t>(offset_ns) -
                              static_cast<uint64_t>(drifted));
}

Clocks::Clocks(const std::vector<RankOrigin>& ranks, std::vector<ClockFit> fits,
               bool raw)
    : raw_(raw) {
  for (const RankOrigin& origin : ranks) {
    index_[origin.rank] = ranks_.size();
    RankClock clock;
    clock.rank = clock.reference = clock.via = origin.rank;
    clock.origin_ns = origin.origin_ns;
    ranks_.push_back(clock);
  }
  // The surest first: collectives before pairs, with drift, then those with the
  // least error. A tree of the surest fits joins all ranks that can be joined.
  std::sort(fits.begin(), fits.end(), [](const ClockFit& a, const ClockFit& b) {
    const auto key = [](const ClockFit& f) {
      return std::make_tuple(f.pairs, f.calls < kCallsForDrift, f.error_ns(),
                             f.rank, f.reference, f.offset_ns, f.drift);
    };
    return key(a) < key(b);
  });
  std::vector<size_t> parts(ranks_.size());
  std::iota(parts.begin(), parts.end(), size_t{0});
  const auto part_of = [&](size_t i) {
    while (parts[i] != i) i = parts[i] = parts[parts[i]];
    return i;
  };
  // Fits of a rank against its neighbours in the tree.
  std::vector<std::vector<ClockFit>> neighbours(ranks_.size());
  std::map<std::pair<int64_t, int64_t>, const ClockFit*> by_pair;
  for (const ClockFit& fit : fits)
    by_pair.try_emplace({fit.rank, fit.reference}, &fit);
  for (const ClockFit& fit : fits) {
    const size_t a = part_of(index_.at(fit.rank));
    const size_t b = part_of(index_.at(fit.reference));
    if (a == b) continue;
    parts[a] = b;
    neighbours[index_.at(fit.reference)].push_back(
        *by_pair.at({fit.rank, fit.reference}));
    neighbours[index_.at(fit.rank)].push_back(
        *by_pair.at({fit.reference, fit.rank}));
  }
  std::vector<bool> done(ranks_.size());
  for (size_t root = 0; root < ranks_.size(); ++root) {
    if (done[root]) continue;
    done[root] = true;
    ranks_[root].known = !neighbours[root].empty();
    std::vector<size_t> queue = {root};
    for (size_t q = 0; q < queue.size(); ++q) {
      const RankClock& parent = ranks_[queue[q]];
      for (const ClockFit& fit : neighbours[queue[q]]) {
        const size_t child = index_.at(fit.rank);
        if (done[child]) continue;
        done[child] = true;
        queue.push_back(child);
        RankClock& clock = ranks_[child];
        const bool counts = fit.significant();
        const double offset = counts ? fit.offset_ns : 0;
        const double drift = counts ? fit.drift : 0;
        clock.reference = parent.reference;
        clock.via = parent.rank;
        clock.known = true;
        clock.applied = counts || parent.applied;
        clock.calls = fit.calls;
        clock.spread_ns = std::max(parent.spread_ns, fit.spread_ns);
        clock.uncertainty_ns =
            std::hypot(parent.uncertainty_ns, fit.error_ns());
        // The time of the child on the parent's clock, then on the root's.
        const auto at_parent =
            static_cast<double>(clock.origin_ns - parent.origin_ns) - offset;
        clock.offset_ns =
            std::llround(offset + parent.drift * at_parent) + parent.offset_ns;
        clock.drift_error = std::hypot(parent.drift_error, fit.drift_error);
        clock.drift = drift + parent.drift * (1 - drift);
      }
    }
  }
}

int64_t Clocks::Align(int64_t rank, int64_t t) const {
  return raw_ ? t : ranks_[index_.at(rank)].Align(t);
}

}  // namespace lamina::dist
