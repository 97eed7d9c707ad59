// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/repeats.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>

namespace lamina::analysis::layers {
namespace {

using Ids = std::span<const uint32_t>;

constexpr uint32_t kWindow = 65536;
constexpr size_t kCandidates = 24;
constexpr uint32_t kMinPeriod = 4;
constexpr uint32_t kMinRun = 8;
constexpr size_t kMinDistinct = 3;

// Distances between nearest equal q-grams of a window, with their votes.
void Vote(Ids ids, uint32_t q, std::vector<uint32_t>& votes) {
  if (ids.size() < q) return;
  constexpr uint64_t kBase = 0x9E3779B97F4A7C15;
  uint64_t power = 1;
  for (uint32_t i = 1; i < q; ++i) power *= kBase;
  const auto code = [&](size_t i) {
    // Spread the small ids over all bits.
    return (static_cast<uint64_t>(ids[i]) + 1) * 0xD6E8FEB86659FD93;
  };
  absl::flat_hash_map<uint64_t, uint32_t> last;
  last.reserve(std::min<size_t>(ids.size(), 4096));
  uint64_t hash = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i >= q) hash -= code(i - q) * power;
    hash = hash * kBase + code(i);
    if (i + 1 < q) continue;
    const auto position = static_cast<uint32_t>(i + 1 - q);
    const auto [it, is_new] = last.try_emplace(hash, position);
    if (is_new) continue;
    const uint32_t distance = position - it->second;
    if (distance >= kMinPeriod) ++votes[distance];
    it->second = position;
  }
}

struct Candidate {
  uint32_t period = 0;
  bool dominant = false;  // a third of the window votes for it: two copies do
};

std::vector<Candidate> Candidates(Ids window, bool pairs) {
  std::vector<uint32_t> votes(window.size() + 1, 0);
  Vote(window, 8, votes);
  Vote(window, 4, votes);
  std::vector<uint32_t> periods;
  for (uint32_t p = kMinPeriod; p < votes.size(); ++p) {
    if (votes[p] * 2 >= p && votes[p] > 0) periods.push_back(p);
  }
  const size_t keep = std::min(kCandidates, periods.size());
  std::partial_sort(periods.begin(),
                    periods.begin() + static_cast<ptrdiff_t>(keep),
                    periods.end(), [&](uint32_t a, uint32_t b) {
                      return votes[a] != votes[b] ? votes[a] > votes[b] : a < b;
                    });
  std::vector<Candidate> out;
  for (size_t i = 0; i < keep; ++i) {
    // Both lengths of q-grams vote.
    out.push_back({periods[i], pairs || uint64_t{votes[periods[i]]} * 3 >=
                                            2 * uint64_t{window.size()}});
  }
  return out;
}

bool EnoughDistinct(Ids unit) {
  std::vector<uint32_t> sorted(unit.begin(), unit.end());
  std::sort(sorted.begin(), sorted.end());
  return static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) -
                             sorted.begin()) >= kMinDistinct;
}

// Maximal runs of s[i] == s[i + p] that begin in [from, to).
void Runs(Ids ids, const Candidate& candidate, uint32_t from, uint32_t to,
          std::vector<Region>& out) {
  const uint32_t p = candidate.period;
  const uint32_t least = candidate.dominant ? p : 2 * p;
  const auto n = static_cast<uint32_t>(ids.size());
  if (n <= p) return;
  const uint32_t last = n - p;
  uint32_t i = from;
  // A run that began before belongs to the window before.
  if (i > 0 && i < last && ids[i - 1] == ids[i - 1 + p]) {
    while (i < last && ids[i] == ids[i + p]) ++i;
  }
  while (i < std::min(to, last)) {
    if (ids[i] != ids[i + p]) {
      ++i;
      continue;
    }
    const uint32_t begin = i;
    while (i < last && ids[i] == ids[i + p]) ++i;
    const uint32_t run = i - begin;
    if (run + 2 >= least && run >= kMinRun &&
        EnoughDistinct(ids.subspan(begin, p)))
      out.push_back({begin, i + p, p});
  }
}

// Drops regions that a region with a period dividing theirs covers.
void KeepFundamental(std::vector<Region>& regions) {
  std::sort(
      regions.begin(), regions.end(), [](const Region& a, const Region& b) {
        return a.period != b.period ? a.period < b.period : a.begin < b.begin;
      });
  regions.erase(std::unique(regions.begin(), regions.end(),
                            [](const Region& a, const Region& b) {
                              return a.period == b.period && a.begin == b.begin;
                            }),
                regions.end());
  std::vector<Region> kept;
  std::vector<std::pair<uint32_t, std::vector<Region>>> by_period;
  for (const Region& r : regions) {
    bool covered = false;
    for (const auto& [period, list] : by_period) {
      if (period == r.period || r.period % period != 0) continue;
      // Regions of one period are disjoint but for less than a unit: the one
      // before r.begin and the next can cover it.
      auto it = std::upper_bound(
          list.begin(), list.end(), r.begin + r.period,
          [](uint32_t at, const Region& other) { return at < other.begin; });
      for (int k = 0; k < 2 && it != list.begin(); ++k) {
        --it;
        covered = covered || (it->begin <= r.begin + r.period &&
                              it->end + r.period >= r.end);
      }
      if (covered) break;
    }
    if (covered) continue;
    kept.push_back(r);
    if (by_period.empty() || by_period.back().first != r.period)
      by_period.emplace_back(r.period, std::vector<Region>());
    by_period.back().second.push_back(r);
  }
  regions = std::move(kept);
}

}  // namespace

std::vector<Region> FindRegions(std::span<const uint32_t> ids, bool pairs) {
  std::vector<Region> regions;
  const auto n = static_cast<uint32_t>(ids.size());
  for (uint32_t from = 0; from < n;) {
    const uint32_t to = std::min(n, from + kWindow);
    for (const Candidate& candidate :
         Candidates(ids.subspan(from, to - from), pairs))
      Runs(ids, candidate, from, to, regions);
    if (to == n) break;
    from += kWindow / 2;
  }
  KeepFundamental(regions);
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
            });
  return regions;
}

uint32_t EditDistance(std::span<const uint32_t> a, std::span<const uint32_t> b,
                      uint32_t limit) {
  const auto n = static_cast<int64_t>(a.size());
  const auto m = static_cast<int64_t>(b.size());
  const auto band = static_cast<int64_t>(limit);
  if (std::abs(n - m) > band) return limit + 1;
  const uint32_t far = limit + 1;
  std::vector<uint32_t> row(static_cast<size_t>(m) + 1, far);
  std::vector<uint32_t> next(static_cast<size_t>(m) + 1, far);
  for (int64_t j = 0; j <= std::min(m, band); ++j)
    row[static_cast<size_t>(j)] = static_cast<uint32_t>(j);
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t low = std::max<int64_t>(0, i - band);
    const int64_t high = std::min(m, i + band);
    if (low > 0) next[static_cast<size_t>(low - 1)] = far;
    for (int64_t j = low; j <= high; ++j) {
      uint32_t best = far;
      if (j == 0) {
        best = static_cast<uint32_t>(std::min<int64_t>(i, far));
      } else {
        const auto at = static_cast<size_t>(j);
        const bool equal =
            a[static_cast<size_t>(i - 1)] == b[static_cast<size_t>(j - 1)];
        best = std::min(best, row[at - 1] + (equal ? 0 : 1));
        best = std::min(best, next[at - 1] + 1);
        if (j < i + band) best = std::min(best, row[at] + 1);
      }
      next[static_cast<size_t>(j)] = std::min(best, far);
    }
    if (high < m) next[static_cast<size_t>(high + 1)] = far;
    std::swap(row, next);
  }
  return std::min(row[static_cast<size_t>(m)], far);
}

}  // namespace lamina::analysis::layers
