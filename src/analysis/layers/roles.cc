// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/roles.h"

#include <algorithm>
#include <optional>

namespace lamina::analysis::layers {
namespace {

constexpr uint16_t kAnyNorm = kNormMark | kMaybeNormMark;
// Kernels behind the last sign of a feed-forward part that may belong to it.
constexpr uint32_t kTail = 24;

// Mixer kernels with nothing but their own help between them.
struct Mixer {
  uint32_t first = 0;
  uint32_t last = 0;
  bool scan = false;  // no attention: a state-space model, a delta rule
  bool feed = false;  // a feed-forward part before the next mixer
};

class Cutter {
 public:
  Cutter(std::span<const uint32_t> ids, Marks marks)
      : ids_(ids), marks_(marks), n_(static_cast<uint32_t>(ids.size())) {}

  std::vector<RoleLayer> Run() {
    FindMixers();
    if (mixers_.empty()) return {};
    for (size_t i = 0; i < mixers_.size(); ++i) {
      const uint32_t to = i + 1 < mixers_.size() ? mixers_[i + 1].first : n_;
      mixers_[i].feed =
          HasFeed(mixers_[i].last + 1, to, i + 1 == mixers_.size());
    }
    JoinCross();
    std::vector<RoleLayer> layers;
    bool any_feed = false;
    for (const Mixer& m : mixers_) any_feed = any_feed || m.feed;
    for (size_t i = 0; i < mixers_.size(); ++i) {
      const auto begin =
          Start(i == 0 ? std::nullopt : std::optional(mixers_[i - 1]),
                mixers_[i].first);
      RoleLayer layer;
      layer.complete = begin.has_value();
      layer.begin =
          begin.value_or(i == 0 ? mixers_[i].first : mixers_[i - 1].last + 1);
      layers.push_back(layer);
    }
    for (size_t i = 0; i < layers.size(); ++i) {
      const uint32_t to = i + 1 < layers.size() ? layers[i + 1].begin : n_;
      layers[i].end = EndOf(mixers_[i], to, mixers_[i].feed);
      if (i + 1 < layers.size() && layers[i].end + kTail >= to &&
          !Edge(layers[i].end, to))
        layers[i].end = to;
      layers[i].complete = layers[i].complete &&
                           Has(kGemmMark, layers[i].begin, mixers_[i].first) &&
                           layers[i].end > mixers_[i].last + 1;
    }
    (void)any_feed;
    return layers;
  }

 private:
  bool Is(uint32_t i, uint16_t mark) const { return (marks_[i] & mark) != 0; }
  bool Has(uint16_t mark, uint32_t from, uint32_t to) const {
    for (uint32_t i = from; i < to; ++i) {
      if (Is(i, mark)) return true;
    }
    return false;
  }
  bool Edge(uint32_t from, uint32_t to) const {
    return Has(kEdgeMark, from, to);
  }

  void FindMixers() {
    for (uint32_t i = 0; i < n_; ++i) {
      if (!Is(i, kAttentionMark)) continue;
      const bool scan = Is(i, kScanMark);
      if (!mixers_.empty()) {
        Mixer& last = mixers_.back();
        const bool gemm = Has(kGemmMark, last.last + 1, i);
        const bool norm = Has(kAnyNorm, last.last + 1, i);
        const bool feed = Has(kFeedMark, last.last + 1, i);
        const bool edge = Edge(last.last + 1, i);
        // A scan and its convolution may have products between them.
        if (!edge && !feed && (!gemm || (!norm && scan && last.scan))) {
          last.last = i;
          last.scan = last.scan && scan;
          continue;
        }
      }
      mixers_.push_back({i, i, scan, false});
    }
  }

  // Whether a feed-forward part stands in [from, to): an activation or experts,
  // or two products behind a norm that no mixer follows.
  bool HasFeed(uint32_t from, uint32_t to, bool last) const {
    if (last) {
      // Up to where something else begins.
      for (uint32_t i = from; i < to; ++i) {
        if (Is(i, kEdgeMark)) {
          to = i;
          break;
        }
      }
    }
    if (Has(kFeedMark, from, to)) return true;
    uint32_t behind = 0;
    uint32_t most = 0;
    uint32_t norms = 0;
    for (uint32_t i = from; i < to; ++i) {
      if (Is(i, kAnyNorm)) {
        behind = 0;
        ++norms;
      } else if (norms > 0 && Is(i, kGemmMark)) {
        most = std::max(most, ++behind);
      }
    }
    return norms >= (last ? 1U : 2U) && most >= 2;
  }

  // Self and cross attention of a decoder: two attentions before every
  // feed-forward part.
  void JoinCross() {
    size_t feeds = 0;
    for (const Mixer& m : mixers_) feeds += m.feed;
    if (feeds == 0 || feeds == mixers_.size()) return;
    size_t pairs = 0;
    size_t alone = 0;
    for (size_t i = 0; i < mixers_.size(); ++i) {
      if (!mixers_[i].feed) continue;
      const size_t first = FirstOf(i);
      if (i - first == 1 && !mixers_[i].scan && !mixers_[first].scan)
        ++pairs;
      else if (i > first + 1)
        ++alone;
    }
    if (pairs == 0 || alone > 0) return;
    std::vector<Mixer> joined;
    for (size_t i = 0; i < mixers_.size(); ++i) {
      const bool open = !joined.empty() && !joined.back().feed &&
                        !joined.back().scan && !mixers_[i].scan &&
                        mixers_[i].feed &&
                        !Edge(joined.back().last + 1, mixers_[i].first);
      if (open) {
        joined.back().last = mixers_[i].last;
        joined.back().feed = true;
      } else {
        joined.push_back(mixers_[i]);
      }
    }
    mixers_ = std::move(joined);
  }
  // The first of the mixers without a feed-forward part before `i`.
  size_t FirstOf(size_t i) const {
    size_t first = i;
    while (first > 0 && !mixers_[first - 1].feed) --first;
    return first;
  }

  // The norm at which the layer of the mixer at `first` begins.
  std::optional<uint32_t> Start(std::optional<Mixer> before,
                                uint32_t first) const {
    uint32_t from = before ? before->last + 1 : 0;
    bool feed = false;
    for (uint32_t i = first; i-- > from;) {
      if (Is(i, kEdgeMark | kBackwardMark)) {
        from = i + 1;
        feed = true;
        break;
      }
      if (Is(i, kFeedMark)) {
        from = i + 1;
        feed = true;
        break;
      }
    }
    // Norms with a product between them and the mixer.
    std::vector<uint32_t> norms;
    bool product = false;
    for (uint32_t i = first; i-- > from;) {
      if (Is(i, kGemmMark)) product = true;
      if (product && Is(i, kAnyNorm)) norms.push_back(i);
    }
    std::ranges::reverse(norms);
    if (!feed && before) {
      // A norm of the mixer before stands ahead of its last product.
      std::erase_if(norms,
                    [&](uint32_t i) { return !Has(kGemmMark, from, i); });
      // With a feed-forward part of unnamed kernels before it the layer begins
      // at its own norm: the last behind two products or more.
      if (before->feed) {
        size_t keep = norms.size() - (norms.empty() ? 0 : 1);
        for (size_t k = norms.size(); k-- > 1;) {
          uint32_t gemms = 0;
          for (uint32_t i = norms[k - 1]; i < norms[k]; ++i)
            gemms += Is(i, kGemmMark);
          if (gemms >= 2) {
            keep = k;
            break;
          }
        }
        norms.erase(norms.begin(),
                    norms.begin() + static_cast<ptrdiff_t>(keep));
      }
    } else if (!before && !feed && norms.size() > 1) {
      // What stands before the first layer may have norms, too: only the block
      // next to the mixer, or the one before it when that is a norm of queries.
      size_t keep = norms.size() - 1;
      if (!Is(norms[keep], kNormMark) && Is(norms[keep - 1], kNormMark)) --keep;
      norms.erase(norms.begin(), norms.begin() + static_cast<ptrdiff_t>(keep));
    }
    if (norms.empty()) return std::nullopt;
    for (size_t k = 0; k + 1 < norms.size(); ++k) {
      // A product before the next norm: this one is not the end of a block.
      if (Has(kGemmMark, norms[k], norms[k + 1])) return norms[k];
    }
    return norms.back();
  }

  // One past the last kernel of the layer of a mixer, before `to`.
  uint32_t EndOf(const Mixer& mixer, uint32_t to, bool feed) const {
    bool product = false;
    bool fed = !feed;
    uint32_t gemms = 0;
    bool norm = false;
    for (uint32_t i = mixer.last + 1; i < to; ++i) {
      if (Is(i, kEdgeMark)) return i;
      if (Is(i, kAnyNorm)) {
        if (product && fed) return i;
        norm = true;
        gemms = 0;
      }
      if (Is(i, kFeedMark)) fed = true;
      if (Is(i, kGemmMark) || (fed && Is(i, kFeedMark))) product = true;
      if (Is(i, kGemmMark) && norm && ++gemms >= 2) fed = true;
    }
    return to;
  }

  std::span<const uint32_t> ids_;
  Marks marks_;
  uint32_t n_;
  std::vector<Mixer> mixers_;
};

}  // namespace

std::vector<RoleLayer> CutByRoles(std::span<const uint32_t> ids, Marks marks) {
  return Cutter(ids, marks).Run();
}

}  // namespace lamina::analysis::layers
