// SPDX-License-Identifier: Apache-2.0
//
// A joined collective measured on aligned clocks: who came late and why, how
// long the others waited, how long the transfer itself took.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dist/clocks.h"
#include "dist/match.h"

namespace lamina::dist {

enum class Cause : uint8_t {
  kNone,      // nobody came late, or there is nobody to compare with
  kCompute,   // device work before it took longer than on the others
  kLaunch,    // the device was idle: the host call came late
  kPrevious,  // the collective before it ended late on this rank
};
std::string_view CauseName(Cause cause);

struct MeasuredMember {
  int64_t rank = 0;
  uint32_t call = 0;         // number among the calls of the rank
  uint32_t previous = 0;     // number of the call before, or kNoIndex
  uint32_t step = kNoIndex;  // of RankSummary::steps
  int64_t start_ns = 0;      // aligned
  int64_t dur_ns = 0;
  int64_t wait_ns = 0;  // for the last to start, at most its duration
  int64_t in_bytes = kNoInt;
  // As recorded, for the tables of other tools.
  int64_t file_ns = 0;  // start on the rank's clock, without its base time
  int64_t stream = kNoInt;
  int64_t in_elements = kNoInt;
  int64_t out_elements = kNoInt;
  std::string in_split;
  std::string out_split;
};

// A rank that the others of a call waited for.
struct LateRank {
  int64_t rank = 0;
  int64_t late_ns = 0;  // after the median start of the others
  int64_t wait_ns = 0;  // of the others, put down to it
  Cause cause = Cause::kNone;
  int64_t cause_ns = 0;            // more than the median of the others
  std::string cause_name;          // op; of kPrevious: empty
  uint32_t cause_call = kNoIndex;  // of kPrevious: number on the rank
};

struct MeasuredCall {
  uint64_t group = 0;  // of MeasuredGroups::groups
  int64_t sequence = 0;
  CollectiveKind kind = CollectiveKind::kUnknown;
  MatchedBy by = MatchedBy::kUnmatched;
  std::string name;
  std::string dtype;
  std::string doubt;  // not empty: the numbers below mean nothing
  int64_t bytes = kNoInt;
  int64_t in_elements = kNoInt;  // largest of the members
  int64_t out_elements = kNoInt;
  int64_t source = kNoInt;  // of transfers only
  int64_t destination = kNoInt;
  int64_t ranks = 0;  // that take part in one call
  int64_t start_ns = 0;
  int64_t start_skew_ns = 0;
  int64_t end_skew_ns = 0;
  int64_t transfer_ns = 0;
  int64_t late_rank = 0;
  int64_t early_rank = 0;
  int64_t wait_ns = 0;  // of all members
  // No rank left before the last had come: by its kind, or because all ranks
  // ended together whatever the kernel is called.
  bool synchronises = false;
  // Whom the waiting is put down to, the last to start first: more than one
  // where several came late together. Their waits add up to wait_ns.
  std::vector<LateRank> late;
  std::vector<MeasuredMember> members;

  // There is another rank to compare with, and no doubt.
  bool comparable() const { return members.size() > 1 && doubt.empty(); }
  // Its waits are waiting for late ranks.
  bool waited() const { return comparable() && synchronises; }
};

// Bytes between two ranks, from the split sizes of all_to_all.
struct Traffic {
  uint64_t group = 0;
  int64_t source = 0;
  int64_t destination = 0;
  int64_t bytes = 0;
  int64_t calls = 0;
};

struct MeasuredLoss {
  uint64_t group = 0;
  int64_t sequence = 0;
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t rank = 0;
  bool inside = false;
};

struct MeasuredGroup {
  std::string key;
  std::string name;
  std::string ranks;
  std::string description;
  int64_t size = kNoInt;
  std::vector<int64_t> present;
};

// Measured results of some groups; joined by Append in the order of keys.
struct Measured {
  std::vector<MeasuredGroup> groups;
  std::vector<MeasuredCall> calls;
  std::vector<Traffic> traffic;
  std::vector<MeasuredLoss> lost;

  void Append(Measured&& other);
};

Measured Measure(const JoinedGroup& group, const Clocks& clocks);

std::string EncodeMeasured(const std::vector<Measured>& list);
// Adds them to `list`; false for bytes that EncodeMeasured did not write.
bool DecodeMeasured(std::string_view bytes, std::vector<Measured>& list);

using analysis::BusFactor;

// Ranks of a list as profilers write them: "[0, 1, 8]".
std::vector<int64_t> ParseRanks(std::string_view text);

// What the links carry: transfer times by size, and the straight line through
// them (a latency and a bandwidth) that says what to expect of other sizes.

struct LinkSize {
  int64_t bytes = 0;        // full message
  double link_bytes = 0;    // that a link moves: bytes x bus factor
  int64_t transfer_ns = 0;  // median
  uint64_t calls = 0;
};

// Collectives of one kind over groups of one description and size.
struct LinkSeries {
  std::string description;  // of the groups; of a nameless one the group
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t ranks = 0;
  std::vector<LinkSize> sizes;  // ascending
  // Fit over the sizes; both 0 with fewer than two that differ enough.
  double latency_ns = 0;
  double bytes_per_ns = 0;
};

// By description, kind and ranks. Only collectives of which every rank or the
// last to start is known.
std::vector<LinkSeries> FindLinks(const Measured& measured);

}  // namespace lamina::dist
