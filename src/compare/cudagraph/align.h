// SPDX-License-Identifier: Apache-2.0
//
// Which captured launch a replayed kernel comes from, from the two sequences of
// tokens alone, and how sure that is.
#pragma once

#include <cstdint>
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

}  // namespace lamina::cudagraph
