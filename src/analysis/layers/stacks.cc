// SPDX-License-Identifier: Apache-2.0
//
// From repeats to layer stacks: which repeat is a layer and which a pass,
// units of several layers, ends that differ, and where a layer begins.
#include <algorithm>
#include <cmath>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {
namespace {

using Ids = std::span<const uint32_t>;

// Share of the elements by which layers of one stack may differ.
constexpr double kTolerance = 0.34;
constexpr double kWholeLayer = 0.66;
constexpr double kPieceTolerance = 0.20;
// Shorter parts of a unit are alike by chance.
constexpr uint32_t kMinPiece = 8;
// Beyond this many regions only the longest are looked at, which keeps
// adversarial sequences near-linear.
constexpr size_t kMaxRegions = 4096;

uint32_t Limit(double share, size_t length) {
  return static_cast<uint32_t>(share * static_cast<double>(length));
}

// Chooses which regions are stacks: a region that smaller repeats fill by half
// is a pass, and its children are looked at instead.
class Levels {
 public:
  explicit Levels(std::vector<Region> regions) : regions_(std::move(regions)) {}

  std::vector<Region> Run() {
    std::vector<size_t> all(regions_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    Choose(all, 0);
    std::sort(
        stacks_.begin(), stacks_.end(),
        [](const Region& a, const Region& b) { return a.begin < b.begin; });
    return std::move(stacks_);
  }

 private:
  static uint32_t Overlap(const Region& a, const Region& b) {
    const uint32_t begin = std::max(a.begin, b.begin);
    const uint32_t end = std::min(a.end, b.end);
    return end > begin ? end - begin : 0;
  }

  void Choose(std::vector<size_t> members, int depth) {
    std::sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      const Region& x = regions_[a];
      const Region& y = regions_[b];
      if (x.length() != y.length()) return x.length() > y.length();
      if (x.period != y.period) return x.period < y.period;
      return x.begin < y.begin;
    });
    std::vector<size_t> chosen;
    for (const size_t m : members) {
      const Region& r = regions_[m];
      const bool free =
          std::all_of(chosen.begin(), chosen.end(), [&](size_t other) {
            const Region& o = regions_[other];
            return 2 * Overlap(r, o) <= std::min(r.period, o.period);
          });
      if (!free) continue;
      chosen.push_back(m);
      std::vector<size_t> inside;
      for (const size_t other : members) {
        const Region& o = regions_[other];
        if (other != m && o.period < r.period &&
            o.begin + o.period >= r.begin && o.end <= r.end + o.period)
          inside.push_back(other);
      }
      if (depth < 8 && IsGroup(r, inside)) {
        Choose(std::move(inside), depth + 1);
      } else {
        stacks_.push_back(r);
      }
    }
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

// Lengths of the layers in a unit: one, or k when k nearly equal pieces make
// it up (layers that alternate).
std::vector<uint32_t> SplitUnit(Ids unit) {
  const auto p = static_cast<uint32_t>(unit.size());
  for (uint32_t k = 2; k <= 6; ++k) {
    const double each = static_cast<double>(p) / k;
    if (each < kMinPiece) break;
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
        const uint32_t limit = Limit(kPieceTolerance, longer);
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

class Builder {
 public:
  Builder(Ids ids, std::span<const uint8_t> marks, const StackOptions& options)
      : ids_(ids), marks_(marks), options_(options) {
    for (uint32_t i = 0; i < marks_.size(); ++i) {
      if ((marks_[i] & kCutMark) != 0) cuts_.push_back(i);
    }
  }

  std::vector<Stack> Run() {
    std::vector<Region> regions = FindRegions(ids_);
    if (regions.size() > kMaxRegions) {
      std::nth_element(regions.begin(),
                       regions.begin() + static_cast<ptrdiff_t>(kMaxRegions),
                       regions.end(), [](const Region& a, const Region& b) {
                         return a.length() != b.length()
                                    ? a.length() > b.length()
                                    : a.begin < b.begin;
                       });
      regions.resize(kMaxRegions);
    }
    regions = Levels(std::move(regions)).Run();
    for (size_t i = 0; i < regions.size(); ++i) {
      const Region& r = regions[i];
      if (r.period > options_.max_layer) continue;
      const uint32_t before = stacks_.empty() ? 0 : stacks_.back().end();
      const uint32_t after = i + 1 < regions.size()
                                 ? std::max(FirstLayer(regions[i + 1]), r.end)
                                 : static_cast<uint32_t>(ids_.size());
      if (r.end <= before) continue;
      stacks_.push_back(Layers(r, before, after));
    }
    Merge();
    for (size_t i = 0; i < stacks_.size(); ++i) {
      if (stacks_[i].at_norm) continue;
      Complete(stacks_[i], i > 0 ? stacks_[i - 1].end() : 0,
               i + 1 < stacks_.size() ? stacks_[i + 1].begin()
                                      : static_cast<uint32_t>(ids_.size()));
      Variants(stacks_[i]);
    }
    std::erase_if(stacks_, [&](const Stack& stack) {
      return stack.pieces.size() < options_.min_layers;
    });
    Kinds();
    return std::move(stacks_);
  }

 private:
  Ids Unit(const Piece& piece) const {
    return ids_.subspan(piece.begin, piece.end - piece.begin);
  }

  // The layers of a region, and of what continues it at both ends.
  Stack Layers(const Region& r, uint32_t before, uint32_t after) {
    Stack stack;
    stack.period = r.period;
    uint32_t begin = FirstLayer(r);
    while (begin < before) begin += r.period;
    const std::vector<uint32_t> lengths =
        SplitUnit(ids_.subspan(std::min(begin, r.end - r.period), r.period));
    stack.per_unit = static_cast<uint32_t>(lengths.size());
    uint32_t at = begin;
    for (size_t i = 0;; ++i) {
      const uint32_t length = lengths[i % lengths.size()];
      // The last copy may lack one element.
      if (at + length > r.end + 1 || at + length > ids_.size()) break;
      stack.pieces.push_back(
          {at, at + length, static_cast<uint32_t>(i % lengths.size()), true});
      at += length;
    }
    if (stack.pieces.empty()) {
      stack.pieces.push_back({std::min(begin, r.end - 1), r.end, 0, true});
      return stack;
    }
    Rotate(stack, r);
    Extend(stack, lengths, after);
    ExtendBack(stack, lengths, before);
    Variants(stack);
    return stack;
  }

  // Without a norm the phase is arbitrary, and half a layer may be left over at
  // both ends. Where the two halves make one, the boundaries move.
  void Complete(Stack& stack, uint32_t before, uint32_t after) const {
    const Ids unit = Unit(Typical(stack));
    const auto p = static_cast<uint32_t>(unit.size());
    uint32_t left = 0;
    const uint32_t room = std::min(p - 1, stack.begin() - before);
    for (uint32_t l = room; l > 0 && left == 0; --l) {
      const uint32_t limit = Limit(kTolerance, l);
      if (EditDistance(unit.subspan(p - l), ids_.subspan(stack.begin() - l, l),
                       limit) <= limit)
        left = l;
    }
    uint32_t right = 0;
    const uint32_t end = stack.end();
    const uint32_t space = after > end ? std::min(p - 1, after - end) : 0;
    for (uint32_t r = space; r > 0 && right == 0; --r) {
      const uint32_t limit = Limit(kTolerance, r);
      if (EditDistance(unit.subspan(0, r), ids_.subspan(end, r), limit) <=
          limit)
        right = r;
    }
    const double share = static_cast<double>(left + right) / p;
    if (left == 0 || share < kWholeLayer || share > 2 - kWholeLayer) return;
    for (Piece& piece : stack.pieces) {
      piece.begin -= left;
      piece.end -= left;
    }
    stack.pieces.push_back({end - left, end + right, 0, false});
  }

  // The first cut at or behind a position; the end without one.
  uint32_t CutFrom(uint32_t at) const {
    const auto it = std::lower_bound(cuts_.begin(), cuts_.end(), at);
    return it == cuts_.end() ? static_cast<uint32_t>(ids_.size()) : *it;
  }
  // The last cut at or before a position; 0 without one.
  uint32_t CutUpTo(uint32_t at) const {
    const auto it = std::upper_bound(cuts_.begin(), cuts_.end(), at);
    return it == cuts_.begin() ? 0 : *(it - 1);
  }

  // The window at `from` that is nearest to `unit`: its end, or `from` when
  // none is near enough.
  uint32_t Nearest(Ids unit, uint32_t from, uint32_t limit_end,
                   bool backwards) const {
    const auto p = static_cast<uint32_t>(unit.size());
    const uint32_t limit = Limit(kTolerance, p);
    uint32_t best = limit + 1;
    uint32_t best_length = 0;
    const auto low = static_cast<uint32_t>(std::ceil(0.7 * p));
    const auto high = static_cast<uint32_t>(std::floor(1.3 * p));
    for (uint32_t length = low; length <= high; ++length) {
      uint32_t begin = from;
      if (backwards) {
        if (from < limit_end + length) break;
        begin = from - length;
      } else if (from + length > limit_end) {
        break;
      }
      const uint32_t edits =
          EditDistance(unit, ids_.subspan(begin, length), limit);
      const auto away = [&](uint32_t l) { return l > p ? l - p : p - l; };
      if (edits < best || (edits == best && best_length > 0 &&
                           away(length) < away(best_length))) {
        best = edits;
        best_length = length;
      }
    }
    return best <= limit ? best_length : 0;
  }

  void Extend(Stack& stack, const std::vector<uint32_t>& lengths,
              uint32_t after) {
    for (;;) {
      const size_t i = stack.pieces.size() % lengths.size();
      const uint32_t from = stack.pieces.back().end;
      const Ids unit = Unit(stack.pieces[i]);
      const uint32_t length =
          Nearest(unit, from, std::min(after, CutFrom(from)), false);
      if (length == 0) return;
      stack.pieces.push_back({from, from + length, 0, false});
    }
  }

  void ExtendBack(Stack& stack, const std::vector<uint32_t>& lengths,
                  uint32_t before) {
    std::vector<Piece> front;
    const size_t k = lengths.size();
    for (size_t step = 1;; ++step) {
      const uint32_t to =
          front.empty() ? stack.pieces.front().begin : front.back().begin;
      const size_t i = (k - step % k) % k;
      if (i >= stack.pieces.size()) return Prepend(stack, front);
      const uint32_t length = Nearest(Unit(stack.pieces[i]), to,
                                      std::max(before, CutUpTo(to)), true);
      if (length == 0) return Prepend(stack, front);
      front.push_back({to - length, to, 0, false});
    }
  }

  static void Prepend(Stack& stack, std::vector<Piece>& front) {
    stack.pieces.insert(stack.pieces.begin(), front.rbegin(), front.rend());
  }

  // Layers with the same sequence share a letter, in order of first use.
  void Variants(Stack& stack) const {
    std::vector<Piece> known;
    for (Piece& piece : stack.pieces) {
      const Ids own = Unit(piece);
      const auto it =
          std::find_if(known.begin(), known.end(), [&](const Piece& other) {
            return std::ranges::equal(own, Unit(other));
          });
      piece.variant = static_cast<uint32_t>(it - known.begin());
      if (it == known.end()) known.push_back(piece);
    }
  }

  // Neighbours of one stack with little between them are one.
  void Merge() {
    for (size_t i = 0; i + 1 < stacks_.size();) {
      Stack& a = stacks_[i];
      Stack& b = stacks_[i + 1];
      const uint32_t limit = Limit(
          kTolerance, std::max(a.period, b.period) / std::max(1U, a.per_unit));
      const uint32_t between = b.begin() > a.end() ? b.begin() - a.end() : 0;
      if (b.begin() >= a.end() && between <= limit &&
          CutFrom(a.end()) > b.begin() && Similar(a, b)) {
        a.pieces.back().end = b.begin();
        a.pieces.insert(a.pieces.end(), b.pieces.begin(), b.pieces.end());
        Variants(a);
        stacks_.erase(stacks_.begin() + static_cast<ptrdiff_t>(i) + 1);
      } else {
        ++i;
      }
    }
  }

  static Piece Typical(const Stack& stack) {
    for (const Piece& piece : stack.pieces) {
      if (piece.exact) return piece;
    }
    return stack.pieces.front();
  }

  // Whether the layers are the same after some rotation.
  bool Similar(const Stack& a, const Stack& b) const {
    const Ids x = Unit(Typical(a));
    const Ids y = Unit(Typical(b));
    const uint32_t limit = Limit(kTolerance, std::max(x.size(), y.size()));
    if (EditDistance(x, y, limit) <= limit) return true;
    std::vector<uint32_t> turned(y.begin(), y.end());
    for (size_t turn = 1; turn < y.size(); ++turn) {
      std::rotate(turned.begin(), turned.begin() + 1, turned.end());
      if (turned[0] != x[0]) continue;
      if (EditDistance(x, turned, limit) <= limit) return true;
    }
    return false;
  }

  // Offset in a layer of the norm that begins one: a product follows it, then
  // attention, and no norm of the layer is nearer to attention. The first norm
  // when the layer has no attention; the length of the layer when no norm.
  uint32_t Anchor(const Piece& layer) const {
    const uint32_t sure = Anchor(layer, kNormMark);
    return sure < layer.end - layer.begin ? sure
                                          : Anchor(layer, kMaybeNormMark);
  }

  uint32_t Anchor(const Piece& layer, Mark norm) const {
    const uint32_t p = layer.end - layer.begin;
    const auto mark = [&](uint32_t i) { return marks_[layer.begin + i % p]; };
    uint32_t best = p;
    uint32_t best_distance = 2 * p;
    uint32_t first = p;
    for (uint32_t i = 0; i < p; ++i) {
      if ((mark(i) & norm) == 0) continue;
      if (first == p) first = i;
      bool product = false;
      for (uint32_t away = 1; away < p; ++away) {
        product = product || (mark(i + away) & kGemmMark) != 0;
        if ((mark(i + away) & kAttentionMark) == 0) continue;
        if (product && away < best_distance) {
          best = i;
          best_distance = away;
        }
        break;
      }
    }
    return best < p ? best : first;
  }

  // Where the first whole layer of a region begins: at the norm, else where a
  // unit seen before begins, so that the parts of a stack that noise has
  // broken fit together.
  uint32_t FirstLayer(const Region& r) {
    if (!marks_.empty()) {
      const uint32_t offset = Anchor({r.begin, r.begin + r.period, 0, false});
      if (offset < r.period) return r.begin + offset;
    }
    const Ids unit = ids_.subspan(r.begin, r.period);
    const uint32_t limit = Limit(kTolerance, r.period);
    std::vector<uint32_t> turned(unit.begin(), unit.end());
    for (const std::vector<uint32_t>& known : known_units_) {
      uint32_t best = limit + 1;
      uint32_t best_turn = 0;
      for (uint32_t turn = 0; turn < r.period; ++turn) {
        if (turned[0] == known[0] || turned[1] == known[1]) {
          const uint32_t edits = EditDistance(turned, known, limit);
          if (edits < best) {
            best = edits;
            best_turn = turn;
          }
        }
        std::rotate(turned.begin(), turned.begin() + 1, turned.end());
      }
      if (best <= limit) return r.begin + best_turn;
    }
    known_units_.emplace_back(unit.begin(), unit.end());
    return r.begin;
  }

  // Moves the boundaries of exact layers to the norm that begins one. What is
  // left at the ends is for Extend and ExtendBack.
  void Rotate(Stack& stack, const Region& r) {
    if (marks_.empty()) return;
    std::vector<uint32_t> starts;
    for (const Piece& piece : stack.pieces) {
      const uint32_t offset = Anchor(piece);
      if (offset == piece.end - piece.begin) return;
      starts.push_back(piece.begin + offset);
    }
    stack.at_norm = true;
    const size_t k = stack.per_unit;
    const size_t count = starts.size();
    // The layer after the last boundary is as long as the one a unit before.
    uint32_t last =
        starts.back() + (stack.pieces.back().end - stack.pieces.back().begin);
    if (count > k)
      last = starts.back() + starts[count - k] - starts[count - k - 1];
    if (last <= r.end) starts.push_back(last);
    if (starts.size() < 2) return;
    stack.pieces.clear();
    for (size_t i = 0; i + 1 < starts.size(); ++i)
      stack.pieces.push_back({starts[i], starts[i + 1], 0, true});
  }

  void Kinds() {
    std::vector<size_t> firsts;
    for (size_t i = 0; i < stacks_.size(); ++i) {
      const auto it = std::find_if(
          firsts.begin(), firsts.end(),
          [&](size_t first) { return Similar(stacks_[first], stacks_[i]); });
      stacks_[i].kind = static_cast<uint32_t>(it - firsts.begin());
      if (it == firsts.end()) firsts.push_back(i);
    }
  }

  Ids ids_;
  std::span<const uint8_t> marks_;
  StackOptions options_;
  std::vector<Stack> stacks_;
  std::vector<std::vector<uint32_t>> known_units_;
  std::vector<uint32_t> cuts_;
};

}  // namespace

std::vector<Stack> FindStacks(std::span<const uint32_t> ids,
                              std::span<const uint8_t> marks,
                              const StackOptions& options) {
  return Builder(ids, marks, options).Run();
}

}  // namespace lamina::analysis::layers
