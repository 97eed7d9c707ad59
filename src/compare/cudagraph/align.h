// SPDX-License-Identifier: Apache-2.0
//
// Which captured launch a replayed kernel comes from: by the two sequences of
// tokens alone, how sure that is, and which captured segment each graph launch
// of a step replays.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lamina::cudagraph {

// From the surest to none.
enum class Level : uint8_t {
  kExactId,    // the recording names the node that it goes back to
  kExact,      // equal sequences, by position
  kFifo,       // equal multisets, by order inside a name
  kSure,       // one partner on every optimal alignment
  kGapFifo,    // same name inside a gap between two anchors
  kFamily,     // same kind of work inside a gap
  kLcs,        // one of several equally good alignments
  kScope,      // between neighbours: what they have in common
  kAmbiguous,  // by name alone: a list
  kNone,
};
inline constexpr int kLevels = 10;
std::string_view LevelName(Level level);
std::optional<Level> FindLevel(std::string_view name);
// fact, likely, partial, list or none.
enum class Confidence : uint8_t { kFact, kLikely, kPartial, kList, kNone };
Confidence ConfidenceOf(Level level);
std::string_view ConfidenceName(Confidence confidence);

struct Match {
  static constexpr uint32_t kNoPartner = UINT32_MAX;
  uint32_t partner = kNoPartner;  // position in the capture
  Level level = Level::kNone;
  uint32_t alternatives = 1;  // partners that are equally good
  // kScope: the nearest partners on both sides.
  uint32_t before = kNoPartner;
  uint32_t after = kNoPartner;
};

struct Sequence {
  std::span<const uint32_t> tokens;
  std::span<const uint8_t> families;  // by element
  // Replay: stream of each element; capture: empty.
  std::span<const uint32_t> streams;
};

// One match per element of the replay. Deterministic; time and memory are the
// product of the lengths after equal ends are cut off, or linear when the
// sequences are equal.
std::vector<Match> Align(const Sequence& capture, const Sequence& replay);

// Partners by the longest common subsequence of two sequences of tokens.

// Fills one match per element of the replay. An element whose partner is the
// same on every optimal alignment is sure; the others take that of the
// alignment with the longest runs. Each side has fewer than 65536 elements.
void MatchByLcs(std::span<const uint32_t> capture,
                std::span<const uint32_t> replay, std::vector<Match>& matches);

// Which captured segment each graph launch of a step replays, when the contents
// alone cannot tell: the layers of a model are captured one by one and most of
// them hold the same kernels.

// How badly a segment fits a launch: 0 for equal sequences, else 1 plus the
// number of elements that one has and the other lacks.
// The same of tokens that are sorted; 0 where these are equal.
uint32_t SortedDistance(std::span<const uint32_t> a,
                        std::span<const uint32_t> b);
uint32_t Distance(std::span<const uint32_t> segment,
                  std::span<const uint32_t> launch);

// `cost(launch, segment)` of `launches` launches in their order and `segments`
// segments in the order of capture. Returns a segment for each launch: the k-th
// to the k-th, again from the first after the last, or an increasing choice
// when there are fewer launches; but the best one for each launch alone when an
// order costs a quarter more than that.
std::vector<uint32_t> Assign(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost);

}  // namespace lamina::cudagraph
