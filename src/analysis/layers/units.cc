// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/units.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace lamina::analysis::layers {
namespace {

using Ids = std::span<const uint32_t>;

// Share of the elements by which the pieces of a unit may differ.
constexpr double kPieceTolerance = 0.20;
// Shorter parts of a unit are alike by chance.
constexpr uint32_t kMinUnitPiece = 8;

// Chooses which regions are stacks: a region that smaller repeats fill by half
// is a pass, and its children are looked at instead. Near-linear: what is
// chosen on one level hardly overlaps, so it is ordered by begin and by end.
class Levels {
 public:
  explicit Levels(std::vector<Region> regions) : regions_(std::move(regions)) {
    std::sort(
        regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
          return a.begin != b.begin ? a.begin < b.begin : a.period < b.period;
        });
  }

  std::vector<Region> Run() {
    std::vector<size_t> all(regions_.size());
    std::iota(all.begin(), all.end(), 0U);
    Choose(all, 0);
    std::ranges::sort(stacks_, {}, &Region::begin);
    return std::move(stacks_);
  }

 private:
  static uint32_t Overlap(const Region& a, const Region& b) {
    const uint32_t begin = std::max(a.begin, b.begin);
    const uint32_t end = std::min(a.end, b.end);
    return end > begin ? end - begin : 0;
  }

  // `members` by begin.
  void Choose(const std::vector<size_t>& members, int depth) {
    std::vector<size_t> longest = members;
    std::stable_sort(longest.begin(), longest.end(), [&](size_t a, size_t b) {
      const Region& x = regions_[a];
      const Region& y = regions_[b];
      if (x.length() != y.length()) return x.length() > y.length();
      return x.period < y.period;
    });
    std::map<uint32_t, size_t> chosen;  // begin -> region
    for (const size_t m : longest) {
      if (IsFree(regions_[m], chosen)) chosen.emplace(regions_[m].begin, m);
    }
    for (const auto& [begin, m] : chosen) {
      const Region& r = regions_[m];
      std::vector<size_t> inside = Inside(m, members);
      if (depth < 8 && IsGroup(r, inside)) {
        Choose(inside, depth + 1);
      } else {
        stacks_.push_back(r);
      }
    }
  }

  // Whether a region has at most half a unit in common with each chosen one.
  bool IsFree(const Region& r, const std::map<uint32_t, size_t>& chosen) const {
    for (auto it = chosen.lower_bound(r.end); it != chosen.begin();) {
      const Region& other = regions_[(--it)->second];
      if (other.end <= r.begin) return true;
      if (other.begin == r.begin ||
          2 * Overlap(r, other) > std::min(r.period, other.period))
        return false;
    }
    return true;
  }

  // Members with a smaller period that lie in a region, up to a unit of theirs
  // at either end; by begin.
  std::vector<size_t> Inside(size_t m,
                             const std::vector<size_t>& members) const {
    const Region& r = regions_[m];
    const uint32_t from = r.begin > r.period ? r.begin - r.period : 0;
    std::vector<size_t> inside;
    for (auto it = std::ranges::lower_bound(
             members, from, {}, [&](size_t i) { return regions_[i].begin; });
         it != members.end() && regions_[*it].begin < r.end; ++it) {
      const Region& o = regions_[*it];
      if (*it != m && o.period < r.period && o.begin + o.period >= r.begin &&
          o.end <= r.end + o.period)
        inside.push_back(*it);
    }
    return inside;
  }

  // Whether regions with less than half the period cover half of it.
  bool IsGroup(const Region& r, const std::vector<size_t>& inside) const {
    std::vector<std::pair<uint32_t, uint32_t>> spans;
    for (const size_t i : inside) {
      const Region& o = regions_[i];
      if (o.period * 2 >= r.period) continue;
      spans.emplace_back(std::max(o.begin, r.begin), std::min(o.end, r.end));
    }
    std::sort(spans.begin(), spans.end());
    uint32_t covered = 0;
    uint32_t reached = r.begin;
    for (const auto& [begin, end] : spans) {
      if (end <= reached) continue;
      covered += end - std::max(begin, reached);
      reached = end;
    }
    return covered * 2 >= r.length();
  }

  std::vector<Region> regions_;
  std::vector<Region> stacks_;
};

}  // namespace

std::vector<Region> ChooseLevel(std::vector<Region> regions) {
  return Levels(std::move(regions)).Run();
}

std::vector<uint32_t> SplitUnit(Ids unit) {
  const auto p = static_cast<uint32_t>(unit.size());
  for (uint32_t k = 2; k <= 6; ++k) {
    const double each = static_cast<double>(p) / k;
    if (each < kMinUnitPiece) break;
    const auto low = static_cast<uint32_t>(std::ceil(0.8 * each));
    const auto high = static_cast<uint32_t>(std::floor(1.2 * each));
    double best = 2;
    std::vector<uint32_t> cuts;
    for (uint32_t c = low; c <= high && c < p; ++c) {
      // The pieces after the first: equal parts of what is left.
      std::vector<uint32_t> lengths = {c};
      uint32_t from = c;
      double worst = 0;
      for (uint32_t i = 1; i < k; ++i) {
        const uint32_t to = i + 1 == k ? p : c + (p - c) * i / (k - 1);
        const Ids piece = unit.subspan(from, to - from);
        const Ids first = unit.subspan(0, c);
        const size_t longer = std::max(piece.size(), first.size());
        const uint32_t limit = static_cast<uint32_t>(
            kPieceTolerance * static_cast<double>(longer));
        const uint32_t edits = EditDistance(first, piece, limit);
        worst = std::max(
            worst, static_cast<double>(edits) / static_cast<double>(longer));
        lengths.push_back(to - from);
        from = to;
      }
      if (worst < best) {
        best = worst;
        cuts = lengths;
      }
    }
    if (best <= kPieceTolerance) return cuts;
  }
  return {p};
}

}  // namespace lamina::analysis::layers
