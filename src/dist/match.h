// SPDX-License-Identifier: Apache-2.0
//
// Calls of many ranks joined into collectives, group by group.
//
// With sequence numbers a collective is (group, kind, sequence). Without, the
// lists of the ranks are aligned (align.h). Sends and receives are joined by
// (group, source, destination) and order. A group without a name takes in what
// the profiler told nothing about; it is joined by order, and only if the
// lists of all ranks are equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rank_summary.h"

namespace lamina::dist {

enum class MatchedBy : uint8_t { kSequence, kOrder, kPeer, kUnmatched };
std::string_view MatchedByName(MatchedBy by);

struct JoinedMember {
  const RankSummary* rank = nullptr;
  const Call* call = nullptr;
};

struct JoinedCall {
  MatchedBy by = MatchedBy::kUnmatched;
  // As recorded, else the position in the group.
  int64_t sequence = 0;
  // What speaks against the match; empty if nothing does.
  std::string_view doubt;
  std::vector<JoinedMember> members;  // by rank
};

// A call that other ranks of the group have.
struct LostCall {
  size_t call = 0;  // of JoinedGroup::calls
  int64_t rank = 0;
  // Other calls of the group were recorded on the rank before and after it.
  bool inside = false;
};

struct JoinedGroup {
  std::string key;  // identity: name and ranks
  std::string name;
  std::string ranks;  // as recorded
  std::string description;
  int64_t size = kNoInt;
  std::vector<int64_t> present;   // ranks with a trace, ascending
  std::vector<JoinedCall> calls;  // by start on the lowest rank
  std::vector<LostCall> lost;
};

// One group of one rank.
struct GroupPart {
  const RankSummary* rank = nullptr;
  uint32_t group = 0;
  std::vector<const Call*> calls;  // by start
};
// The groups of a rank, each with its calls, in one pass over them.
std::vector<GroupPart> PartsOf(const RankSummary& rank);

// Same for all members of a group, different for any two groups.
std::string GroupKey(const RankSummary& rank, uint32_t group);

// `parts` of one key, by rank. The summaries must outlive the result.
JoinedGroup JoinGroup(const std::vector<GroupPart>& parts);

}  // namespace lamina::dist
