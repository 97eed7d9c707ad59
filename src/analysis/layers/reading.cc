// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/reading.h"

#include <algorithm>

namespace lamina::analysis::layers {
namespace {

// Costs in hundredths of an edit.
constexpr int32_t kEdit = 100;
constexpr int32_t kAlikeCost = 25;  // names that differ in numbers
constexpr int32_t kSameRole = 60;   // two products, two attentions
// A kernel of no layer; between two layers one that is damaged is likelier.
constexpr int32_t kOutside = 34;
// A kernel of the beginning of a layer that was entered behind it.
constexpr int32_t kSkipped = 45;
constexpr int32_t kOutsideInside = 50;
constexpr double kToleranceInside = 0.5;
constexpr int32_t kEnter = 40;  // a layer
// Cells of the table of one alignment; larger gaps are not read.
constexpr uint64_t kMaxCells = 12'000'000;
// Share of a unit's kernels by which the beginning of another may differ.
constexpr double kNearly = 0.15;
constexpr uint32_t kLookAhead = 3;
// Shorter pieces of a unit stand anywhere by chance.
constexpr uint32_t kMinPiece = 4;
constexpr uint16_t kRoles = kAttentionMark | kGemmMark | kFeedMark;

}  // namespace

Reader::Reader(const Sequence& in, const std::vector<Unit>& units)
    : in_(in), units_(units) {
  for (uint32_t u = 0; u < units.size(); ++u) {
    by_first_[units[u].ids[0]].push_back(u);
    shortest_ = std::min(shortest_, static_cast<uint32_t>(units[u].ids.size()));
  }
  for (auto& [first, list] : by_first_) {
    std::ranges::stable_sort(list, [&](uint32_t a, uint32_t b) {
      return units[a].ids.size() > units[b].ids.size();
    });
  }
  FindLonger();
}

int Reader::UnitAt(uint32_t at, uint32_t end) const {
  const auto list = by_first_.find(in_.ids[at]);
  if (list == by_first_.end()) return -1;
  for (const uint32_t u : list->second) {
    const auto& ids = units_[u].ids;
    if (at + ids.size() <= end &&
        std::equal(ids.begin(), ids.end(), in_.ids.begin() + at))
      return GoesOn(u, at, end) ? -1 : static_cast<int>(u);
  }
  return -1;
}

// Whether a copy of a unit may be the beginning of a longer one that is damaged
// behind it: the forward part of a backward layer that computes it again.
bool Reader::GoesOn(uint32_t unit, uint32_t at, uint32_t end) const {
  const auto next = static_cast<uint32_t>(at + units_[unit].ids.size());
  if (next >= end || by_first_.contains(in_.ids[next])) return false;
  for (const auto& [other, behind] : longer_[unit]) {
    const auto& ids = units_[other].ids;
    // One of its next kernels comes next, perhaps behind a stray one.
    for (uint32_t k = 0; k < kLookAhead && next + k < end; ++k) {
      for (uint32_t j = behind; j < behind + kLookAhead && j < ids.size();
           ++j) {
        if (in_.ids[next + k] == ids[j] &&
            !by_first_.contains(in_.ids[next + k]))
          return true;
      }
    }
  }
  return false;
}

// The units that begin with a unit or nearly so, and where they go on.
void Reader::FindLonger() {
  longer_.resize(units_.size());
  for (uint32_t u = 0; u < units_.size(); ++u) {
    const std::span<const uint32_t> ids(units_[u].ids);
    const auto length = static_cast<uint32_t>(ids.size());
    const auto limit = static_cast<uint32_t>(kNearly * length);
    for (uint32_t o = 0; o < units_.size(); ++o) {
      const std::span<const uint32_t> other(units_[o].ids);
      uint32_t best = limit + 1;
      uint32_t behind = 0;
      for (uint32_t part = length - std::min(length, limit);
           part <= length + limit && part + 2 < other.size(); ++part) {
        const uint32_t own = EditDistance(ids, other.first(part), limit);
        if (own >= best) continue;
        best = own;
        behind = part;
      }
      if (best <= limit && other.size() > length)
        longer_[u].emplace_back(o, behind);
    }
  }
}

std::vector<Found> Reader::Read(uint32_t begin, uint32_t end) {
  std::vector<Found> out;
  if (units_.empty()) return out;
  uint32_t gap = begin;
  for (uint32_t at = begin; at < end;) {
    const int unit = UnitAt(at, end);
    if (unit < 0) {
      ++at;
      continue;
    }
    if (at > gap) {
      const auto whole = InTwoPieces(gap, at, static_cast<uint32_t>(unit));
      const uint32_t until = whole ? whole->begin : at;
      if (until > gap) Between(gap, until, gap > begin, out);
      if (whole) out.push_back(*whole);
    }
    const auto length =
        static_cast<uint32_t>(units_[static_cast<size_t>(unit)].ids.size());
    out.push_back({at, at + length, static_cast<uint32_t>(unit), 0, true});
    at += length;
    gap = at;
  }
  if (gap < end) Between(gap, end, false, out);
  return out;
}

// A layer before another of its kind that has every kernel of it, in two pieces
// with others between: the first layer computes what all layers share, a mask
// or the bias of positions.
std::optional<Found> Reader::InTwoPieces(uint32_t begin, uint32_t end,
                                         uint32_t unit) const {
  const auto& ids = units_[unit].ids;
  const auto length = static_cast<uint32_t>(ids.size());
  if (end - begin <= length) return std::nullopt;
  uint32_t behind = 0;
  while (behind < length &&
         in_.ids[end - 1 - behind] == ids[length - 1 - behind])
    ++behind;
  if (behind < kMinPiece || length - behind < kMinPiece) return std::nullopt;
  const uint32_t front = length - behind;
  const uint32_t low =
      end - begin > 2 * length ? end - 2 * length : begin;  // one more length
  for (uint32_t at = end - length; at-- > low;) {
    if (!std::equal(ids.begin(), ids.begin() + front, in_.ids.begin() + at))
      continue;
    // Kernels of the unit between the pieces are of damaged layers.
    uint32_t own = 0;
    for (uint32_t i = at + front; i < end - behind; ++i)
      own += std::ranges::find(ids, in_.ids[i]) != ids.end();
    if (4 * own > end - behind - at - front) return std::nullopt;
    return Found{at, end, unit, 0, false};
  }
  return std::nullopt;
}

void Reader::Between(uint32_t begin, uint32_t end, bool inside,
                     std::vector<Found>& out) {
  const uint32_t length = end - begin;
  if (2 * length < shortest_) return;
  const auto ids = in_.ids.subspan(begin, length);
  const auto [it, is_new] = known_[inside].try_emplace(
      absl::Span<const uint32_t>(ids.data(), ids.size()));
  if (is_new) it->second = Align(begin, end, inside);
  for (Found layer : it->second) {
    layer.begin += begin;
    layer.end += begin;
    out.push_back(layer);
  }
}

// The cheapest way to write the kernels as units and kernels outside them.
// State (i, u, j): i kernels are read, the last j of unit u's are matched.
std::vector<Found> Reader::Align(uint32_t begin, uint32_t end,
                                 bool inside) const {
  const int32_t price_outside = inside ? kOutsideInside : kOutside;
  const double tolerance = inside ? kToleranceInside : kReadTolerance;
  const uint32_t n = end - begin;
  std::vector<uint32_t> offset;  // of the states of a unit
  // Edits of a layer of it at most: a state beyond never becomes a layer.
  std::vector<int32_t> limit;
  uint32_t states = 0;
  std::vector<uint32_t> used;
  for (uint32_t u = 0; u < units_.size(); ++u) {
    // A unit much longer than the gap cannot stand in it.
    if (units_[u].ids.size() * 3 > uint64_t{n} * 5) continue;
    used.push_back(u);
    offset.push_back(states);
    limit.push_back(static_cast<int32_t>(
        tolerance * kEdit * static_cast<double>(units_[u].ids.size())));
    states += static_cast<uint32_t>(units_[u].ids.size()) + 1;
  }
  if (states == 0 || uint64_t{states} * (n + 1) > kMaxCells) return {};
  constexpr int32_t kFar = 1 << 29;
  std::vector<int32_t> cost(states, kFar), next(states, kFar);
  // Where the layer of a state began, and its edits, follow the costs.
  std::vector<uint32_t> from(states), next_from(states);
  std::vector<int32_t> edits(states), next_edits(states);
  std::vector<int32_t> outside(n + 1, kFar);
  struct Step {
    int unit = -1;  // -1: a kernel outside
    uint32_t from = 0;
  };
  std::vector<Step> back(n + 1);
  outside[0] = 0;
  const auto role = [&](uint16_t a, uint16_t b) {
    return (a & b & kRoles) != 0;
  };
  for (uint32_t i = 0;; ++i) {
    // Leave a layer that ends here.
    for (size_t k = 0; k < used.size(); ++k) {
      const auto length = static_cast<uint32_t>(units_[used[k]].ids.size());
      const uint32_t o = offset[k];
      // Kernels of the unit that are missing.
      for (uint32_t j = 0; j < length; ++j) {
        if (cost[o + j] >= kFar || i == 0) continue;
        if (cost[o + j] + kEdit < cost[o + j + 1] &&
            edits[o + j] + kEdit <= limit[k]) {
          cost[o + j + 1] = cost[o + j] + kEdit;
          from[o + j + 1] = from[o + j];
          edits[o + j + 1] = edits[o + j] + kEdit;
        }
      }
      const uint32_t last = o + length;
      if (cost[last] < outside[i]) {
        outside[i] = cost[last];
        back[i] = {static_cast<int>(used[k]), from[last]};
      }
    }
    if (i == n) break;
    if (outside[i] < kFar) {
      // Enter a layer, perhaps behind its first kernel.
      for (size_t k = 0; k < used.size(); ++k) {
        int32_t own = outside[i] + kEnter;
        const auto most = static_cast<uint32_t>(
            kReadTolerance * static_cast<double>(units_[used[k]].ids.size()));
        for (uint32_t j = 0; j <= most; ++j) {
          const uint32_t s = offset[k] + j;
          if (own < cost[s]) {
            cost[s] = own;
            from[s] = i;
            edits[s] = static_cast<int32_t>(j) * kEdit;
          }
          own += kSkipped;
        }
      }
    }
    std::ranges::fill(next, kFar);
    const uint32_t id = in_.ids[begin + i];
    const uint32_t like = in_.like.empty() ? id : in_.like[begin + i];
    const uint16_t mark = in_.marks.empty() ? 0 : in_.marks[begin + i];
    for (size_t k = 0; k < used.size(); ++k) {
      const Unit& unit = units_[used[k]];
      const auto length = static_cast<uint32_t>(unit.ids.size());
      for (uint32_t j = 0; j <= length; ++j) {
        const uint32_t s = offset[k] + j;
        if (cost[s] >= kFar) continue;
        // A kernel that the unit lacks; at either end it is outside.
        if (j > 0 && j < length && cost[s] + kEdit < next[s] &&
            edits[s] + kEdit <= limit[k]) {
          next[s] = cost[s] + kEdit;
          next_from[s] = from[s];
          next_edits[s] = edits[s] + kEdit;
        }
        if (j == length) continue;
        const int32_t price = unit.ids[j] == id           ? 0
                              : unit.like[j] == like      ? kAlikeCost
                              : role(unit.marks[j], mark) ? kSameRole
                                                          : kEdit;
        if (cost[s] + price < next[s + 1] && edits[s] + price <= limit[k]) {
          next[s + 1] = cost[s] + price;
          next_from[s + 1] = from[s];
          next_edits[s + 1] = edits[s] + price;
        }
      }
    }
    std::swap(cost, next);
    std::swap(from, next_from);
    std::swap(edits, next_edits);
    if (outside[i] < kFar && outside[i] + price_outside < outside[i + 1]) {
      outside[i + 1] = outside[i] + price_outside;
      back[i + 1] = {-1, i};
    }
  }
  std::vector<Found> out;
  for (uint32_t i = n; i > 0; i = back[i].from) {
    if (back[i].unit >= 0) {
      out.push_back(
          {back[i].from, i, static_cast<uint32_t>(back[i].unit), 0, false});
    }
  }
  std::ranges::reverse(out);
  return out;
}

}  // namespace lamina::analysis::layers
