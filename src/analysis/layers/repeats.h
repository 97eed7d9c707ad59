// SPDX-License-Identifier: Apache-2.0
//
// Repeated structure in a sequence of kernels, found without looking at a name:
// the layers of a model are what a stream does again and again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina::analysis::layers {

// A part of the sequence in which s[i] == s[i + period] throughout.
struct Region {
  uint32_t begin = 0;
  uint32_t end = 0;  // one past the last
  uint32_t period = 0;

  uint32_t length() const { return end - begin; }
};

// All repeats of three copies or more (the ends may lack one element each)
// whose unit has at least three different ids and at least four elements,
// with their fundamental periods, by begin; of a period that a third of the
// elements vote for, two copies are enough, and of any with `pairs`.
// Near-linear: candidates come from votes of equal q-grams, and every region is
// verified by comparing ids.
std::vector<Region> FindRegions(std::span<const uint32_t> ids,
                                bool pairs = false);

struct StackOptions {
  uint32_t min_layers = 3;
  // Longer units without an inner repeat are passes or iterations.
  uint32_t max_layer = 400;
  // Takes two equal copies for a repeat, not three.
  bool pairs = false;
};

// What is known of an element of a sequence, as bits.
enum Mark : uint16_t {
  kNoMark = 0,
  kNormMark = 1,       // a layer may begin here
  kAttentionMark = 2,  // a mixer: attention or a scan
  kGemmMark = 4,
  kMaybeNormMark = 8,   // a norm that may stand inside a layer, too
  kCutMark = 16,        // a step or a graph begins here: no layer goes across
  kFeedMark = 32,       // an activation or experts
  kEdgeMark = 64,       // stands between passes: embedding, sampling, loss
  kBackwardMark = 128,  // of a backward pass
  kScanMark = 256,      // of the mixers: a state-space model or a delta rule
  kConvMark = 512,      // a convolution of images
};
using Marks = std::span<const uint16_t>;

// Edits that turn one sequence into the other, or `limit` + 1 when there are
// more: a dynamic program over a band of that width.
uint32_t EditDistance(std::span<const uint32_t> a, std::span<const uint32_t> b,
                      uint32_t limit);

}  // namespace lamina::analysis::layers
