// SPDX-License-Identifier: Apache-2.0
//
// From repeats to layer stacks: which repeat is a layer and which a pass,
// units of several layers, ends that differ, and where a layer begins.
#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/layers/norm_boundary.h"
#include "analysis/layers/repeats.h"
#include "analysis/layers/units.h"

namespace lamina::analysis::layers {
namespace {

using Ids = std::span<const uint32_t>;

// Share of the elements by which layers of one stack may differ.
constexpr double kTolerance = 0.34;
constexpr double kWholeLayer = 0.66;
// More units than this are not compared with each other: a model has few kinds
// of layers.
constexpr size_t kMaxModels = 32;

uint32_t Limit(double share, size_t length) {
  return static_cast<uint32_t>(share * static_cast<double>(length));
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
    std::vector<Region> regions =
        ChooseLevel(FindRegions(ids_, options_.pairs));
    std::erase_if(regions, [&](const Region& r) {
      return r.period > options_.max_layer;
    });
    std::vector<Stack> parts = Parts(regions);
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint32_t before = stacks_.empty() ? 0 : stacks_.back().end();
      const uint32_t after =
          i + 1 < parts.size() ? std::max(parts[i + 1].begin(), parts[i].end())
                               : static_cast<uint32_t>(ids_.size());
      std::erase_if(parts[i].pieces,
                    [&](const Piece& piece) { return piece.begin < before; });
      if (parts[i].pieces.empty()) continue;
      Extend(parts[i], after);
      ExtendBack(parts[i], before);
      Variants(parts[i]);
      stacks_.push_back(std::move(parts[i]));
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

  // The exact layers of every region, by begin. The longest regions say where a
  // layer begins and how a unit is cut; shorter ones like them follow, so that
  // the parts of a stack that noise has broken fit together.
  std::vector<Stack> Parts(const std::vector<Region>& regions) const {
    std::vector<size_t> order(regions.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return regions[a].length() > regions[b].length();
    });
    std::vector<Stack> parts(regions.size());
    std::vector<Model> models;
    for (const size_t i : order) {
      parts[i] = Like(models, regions[i]);
      if (!parts[i].pieces.empty()) continue;
      parts[i] = OwnLayers(regions[i]);
      const Stack& own = parts[i];
      const size_t k = own.per_unit;
      if (own.pieces.size() < k || models.size() == kMaxModels) continue;
      Model model{{}, {}, own.at_norm};
      for (size_t j = 0; j < k; ++j) {
        const Ids piece = Unit(own.pieces[j]);
        model.unit.insert(model.unit.end(), piece.begin(), piece.end());
        model.lengths.push_back(static_cast<uint32_t>(piece.size()));
      }
      models.push_back(std::move(model));
    }
    return parts;
  }

  // The unit of a stack from where a layer begins, and the lengths of its
  // layers.
  struct Model {
    std::vector<uint32_t> unit;
    std::vector<uint32_t> lengths;
    bool at_norm = false;
  };

  // The exact layers of a region that one of the models fits in some rotation;
  // none otherwise.
  Stack Like(const std::vector<Model>& models, const Region& r) const {
    Stack stack;
    const Ids unit = ids_.subspan(r.begin, r.period);
    for (const Model& model : models) {
      if (model.unit.size() != r.period) continue;
      const uint32_t turn = Turn(unit, model.unit);
      if (turn == r.period) continue;
      stack.period = r.period;
      stack.per_unit = static_cast<uint32_t>(model.lengths.size());
      stack.at_norm = model.at_norm;
      Cut(stack, r, r.begin + turn, model.lengths);
      return stack;
    }
    return stack;
  }

  // How far a unit must be turned to be nearest to a model; its length when it
  // is never near.
  static uint32_t Turn(Ids unit, Ids model) {
    const auto p = static_cast<uint32_t>(unit.size());
    const uint32_t limit = Limit(kTolerance, p);
    std::vector<uint32_t> turned(unit.begin(), unit.end());
    uint32_t best = limit + 1;
    uint32_t best_turn = p;
    for (uint32_t turn = 0; turn < p && best > 0; ++turn) {
      if (turned[0] == model[0] || turned[1] == model[1]) {
        const uint32_t edits = EditDistance(turned, model, limit);
        if (edits < best) {
          best = edits;
          best_turn = turn;
        }
      }
      std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    }
    return best_turn;
  }

  // Pieces of the given lengths, in turn, from `begin` to the end of a region.
  // The last copy may lack one element.
  void Cut(Stack& stack, const Region& r, uint32_t begin,
           const std::vector<uint32_t>& lengths) const {
    uint32_t at = begin;
    for (size_t i = 0;; ++i) {
      const uint32_t length = lengths[i % lengths.size()];
      if (at + length > r.end + 1 || at + length > ids_.size()) break;
      stack.pieces.push_back({at, at + length, 0, true});
      at += length;
    }
    if (stack.pieces.empty())
      stack.pieces.push_back({std::min(begin, r.end - 1), r.end, 0, true});
  }

  // The exact layers of a region by its own marks.
  Stack OwnLayers(const Region& r) const {
    Stack stack;
    stack.period = r.period;
    uint32_t begin = r.begin;
    if (!marks_.empty()) {
      const uint32_t offset =
          NormOffset(marks_, {r.begin, r.begin + r.period, 0, false});
      if (offset < r.period) begin += offset;
    }
    const std::vector<uint32_t> lengths =
        SplitUnit(ids_.subspan(std::min(begin, r.end - r.period), r.period));
    stack.per_unit = static_cast<uint32_t>(lengths.size());
    Cut(stack, r, begin, lengths);
    MoveToNorms(marks_, r.end, stack);
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

  void Extend(Stack& stack, uint32_t after) const {
    for (;;) {
      const size_t i = stack.pieces.size() % stack.per_unit;
      const uint32_t from = stack.pieces.back().end;
      const Ids unit = Unit(stack.pieces[i]);
      const uint32_t length =
          Nearest(unit, from, std::min(after, CutFrom(from)), false);
      if (length == 0) return;
      stack.pieces.push_back({from, from + length, 0, false});
    }
  }

  void ExtendBack(Stack& stack, uint32_t before) const {
    std::vector<Piece> front;
    const size_t k = stack.per_unit;
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
    absl::flat_hash_map<absl::Span<const uint32_t>, uint32_t> letter_of;
    for (Piece& piece : stack.pieces) {
      const Ids own = Unit(piece);
      const auto [it, is_new] = letter_of.try_emplace(
          {own.data(), own.size()}, static_cast<uint32_t>(letter_of.size()));
      piece.variant = it->second;
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

  void Kinds() {
    std::vector<size_t> firsts;
    absl::flat_hash_map<absl::Span<const uint32_t>, uint32_t> known;
    uint32_t next = 0;
    for (size_t i = 0; i < stacks_.size(); ++i) {
      const Ids unit = Unit(Typical(stacks_[i]));
      const auto [seen, is_new] = known.try_emplace({unit.data(), unit.size()});
      if (is_new) {
        const auto it = std::find_if(
            firsts.begin(), firsts.end(),
            [&](size_t first) { return Similar(stacks_[first], stacks_[i]); });
        if (it != firsts.end()) {
          seen->second = stacks_[*it].kind;
        } else {
          seen->second = next++;
          if (firsts.size() < kMaxModels) firsts.push_back(i);
        }
      }
      stacks_[i].kind = seen->second;
    }
  }

  Ids ids_;
  std::span<const uint8_t> marks_;
  StackOptions options_;
  std::vector<Stack> stacks_;
  std::vector<uint32_t> cuts_;
};

}  // namespace

std::vector<Stack> FindStacks(std::span<const uint32_t> ids,
                              std::span<const uint8_t> marks,
                              const StackOptions& options) {
  return Builder(ids, marks, options).Run();
}

}  // namespace lamina::analysis::layers
