// SPDX-License-Identifier: Apache-2.0
#include "dist/match.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "dist/align.h"
#include "dist/clocks.h"

namespace lamina::dist {
namespace {

// The calls of one group, or of one pair of peers in it, on one rank.
struct Lane {
  const RankSummary* rank = nullptr;
  std::vector<const Call*> calls;  // by start
};

// What must be equal on all ranks of one collective.
using Signature = std::tuple<CollectiveKind, std::string_view, std::string_view,
                             int64_t, int64_t>;

Signature SignatureOf(const RankSummary& rank, const Call& call) {
  // The ends of a transfer name it differently, and of a collective with
  // unequal parts each rank has its own sizes.
  if (call.kind == CollectiveKind::kSendRecv &&
      (call.source != kNoInt || call.destination != kNoInt)) {
    return {call.kind, {}, rank.Text(call.dtype), 0, 0};
  }
  if (call.kind == CollectiveKind::kAllToAll)
    return {call.kind, rank.Text(call.name), rank.Text(call.dtype), 0, 0};
  return {call.kind, rank.Text(call.name), rank.Text(call.dtype),
          call.in_elements, call.out_elements};
}

bool SameList(const Lane& a, const Lane& b) {
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(),
                    b.calls.end(), [&](const Call* x, const Call* y) {
                      return SignatureOf(*a.rank, *x) ==
                             SignatureOf(*b.rank, *y);
                    });
}

std::vector<JoinedCall> JoinBySequence(const std::vector<Lane>& lanes) {
  // A coalesced call may show as several kernels of one sequence number.
  using Key = std::tuple<int64_t, CollectiveKind, size_t>;
  std::map<Key, JoinedCall> calls;
  for (const Lane& lane : lanes) {
    std::map<std::pair<int64_t, CollectiveKind>, size_t> repeats;
    for (const Call* call : lane.calls) {
      const size_t repeat = repeats[{call->sequence, call->kind}]++;
      JoinedCall& joined = calls[{call->sequence, call->kind, repeat}];
      joined.by = MatchedBy::kSequence;
      joined.sequence = call->sequence;
      joined.members.push_back({lane.rank, call});
    }
  }
  std::vector<JoinedCall> out;
  for (auto& [key, call] : calls) out.push_back(std::move(call));
  return out;
}

std::vector<JoinedCall> JoinByOrder(const std::vector<Lane>& lanes,
                                    MatchedBy by) {
  size_t reference = 0;
  for (size_t i = 1; i < lanes.size(); ++i) {
    if (lanes[i].calls.size() > lanes[reference].calls.size()) reference = i;
  }
  std::map<Signature, uint32_t> signatures;
  const auto items = [&](const Lane& lane) {
    std::vector<AlignItem> out;
    for (const Call* call : lane.calls) {
      const auto id = static_cast<uint32_t>(signatures.size());
      out.push_back({signatures.try_emplace(SignatureOf(*lane.rank, *call), id)
                         .first->second,
                     call->start_ns, call->end_ns(),
                     Synchronises(call->kind) ||
                         call->kind == CollectiveKind::kSendRecv ||
                         call->kind == CollectiveKind::kUnknown});
    }
    return out;
  };
  const std::vector<AlignItem> first = items(lanes[reference]);
  // Place in the reference, signature and repeat of what only others have.
  using Place = std::tuple<size_t, uint32_t, size_t>;
  std::map<Place, JoinedCall> extra;
  std::vector<JoinedCall> main(first.size());
  for (size_t l = 0; l < lanes.size(); ++l) {
    const Lane& lane = lanes[l];
    const std::vector<AlignItem> list = items(lane);
    std::vector<int32_t> match;
    if (l == reference) {
      match.resize(list.size());
      for (size_t i = 0; i < match.size(); ++i)
        match[i] = static_cast<int32_t>(i);
    } else {
      match = AlignCalls(first, list);
    }
    size_t place = 0;
    std::map<std::pair<size_t, uint32_t>, size_t> repeats;
    for (size_t i = 0; i < list.size(); ++i) {
      const JoinedMember member{lane.rank, lane.calls[i]};
      if (match[i] != kNoMatch) {
        place = static_cast<size_t>(match[i]) + 1;
        main[place - 1].members.push_back(member);
      } else {
        const uint32_t signature = list[i].signature;
        extra[{place, signature, repeats[{place, signature}]++}]
            .members.push_back(member);
      }
    }
  }
  std::vector<JoinedCall> out;
  auto next = extra.begin();
  for (size_t i = 0; i <= main.size(); ++i) {
    for (; next != extra.end() && std::get<0>(next->first) == i; ++next)
      out.push_back(std::move(next->second));
    if (i < main.size()) out.push_back(std::move(main[i]));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].by = by;
    out[i].sequence = static_cast<int64_t>(i);
  }
  return out;
}

// Calls that no rule joins stand alone.
std::vector<JoinedCall> LeaveApart(const std::vector<Lane>& lanes) {
  std::vector<JoinedCall> out;
  for (const Lane& lane : lanes) {
    for (size_t i = 0; i < lane.calls.size(); ++i) {
      JoinedCall call;
      call.sequence = static_cast<int64_t>(i);
      call.members.push_back({lane.rank, lane.calls[i]});
      out.push_back(std::move(call));
    }
  }
  return out;
}

std::string_view DoubtOf(const JoinedCall& call) {
  const auto& first = call.members.front();
  for (const JoinedMember& m : call.members) {
    if (call.by == MatchedBy::kSequence &&
        SignatureOf(*m.rank, *m.call) != SignatureOf(*first.rank, *first.call))
      return "type or size differs";
  }
  return {};
}

bool HasPeers(const Call& call) {
  return call.kind == CollectiveKind::kSendRecv && call.source != kNoInt &&
         call.destination != kNoInt;
}

void FindLost(JoinedGroup& group, const std::vector<Lane>& lanes,
              size_t first_call) {
  const size_t count = group.calls.size() - first_call;
  if (lanes.size() < 2 || count == 0 ||
      group.calls[first_call].by == MatchedBy::kUnmatched)
    return;
  std::vector<std::vector<bool>> has(lanes.size(), std::vector<bool>(count));
  for (size_t c = 0; c < count; ++c) {
    size_t lane = 0;  // members and lanes are both by rank
    for (const JoinedMember& m : group.calls[first_call + c].members) {
      while (lanes[lane].rank != m.rank) ++lane;
      has[lane][c] = true;
    }
  }
  for (size_t l = 0; l < lanes.size(); ++l) {
    const auto first = std::find(has[l].begin(), has[l].end(), true);
    const auto last = std::find(has[l].rbegin(), has[l].rend(), true).base();
    for (auto it = has[l].begin(); it != has[l].end(); ++it) {
      const size_t c = first_call + static_cast<size_t>(it - has[l].begin());
      if (!*it)
        group.lost.push_back({c, lanes[l].rank->rank, first < it && it < last});
    }
  }
}

}  // namespace

std::string_view MatchedByName(MatchedBy by) {
  switch (by) {
    case MatchedBy::kSequence:
      return "sequence";
    case MatchedBy::kOrder:
      return "order";
    case MatchedBy::kPeer:
      return "peer";
    case MatchedBy::kUnmatched:
      break;
  }
  return "none";
}

std::string GroupKey(const RankSummary& rank, uint32_t group) {
  const GroupName& g = rank.groups[group];
  std::string key(rank.Text(g.name));
  key += '\0';
  key += rank.Text(g.ranks);
  return key;
}

std::vector<GroupPart> PartsOf(const RankSummary& rank) {
  std::vector<GroupPart> parts;
  for (uint32_t group = 0; group < rank.groups.size(); ++group)
    parts.push_back({&rank, group, {}});
  for (const Call& call : rank.calls) parts[call.group].calls.push_back(&call);
  return parts;
}

JoinedGroup JoinGroup(const std::vector<GroupPart>& parts) {
  JoinedGroup group;
  std::vector<Lane> all;
  std::map<std::pair<int64_t, int64_t>, std::vector<Lane>> peers;
  bool sequences = true;
  for (const GroupPart& part : parts) {
    const GroupName& g = part.rank->groups[part.group];
    group.present.push_back(part.rank->rank);
    if (group.present.size() == 1) {
      group.key = GroupKey(*part.rank, part.group);
      group.name = part.rank->Text(g.name);
      group.ranks = part.rank->Text(g.ranks);
      group.description = part.rank->Text(g.description);
      group.size = g.size;
    }
    Lane lane{part.rank, {}};
    std::map<std::pair<int64_t, int64_t>, Lane> own;
    for (const Call* const call : part.calls) {
      if (HasPeers(*call)) {
        own[{call->source, call->destination}].calls.push_back(call);
      } else {
        lane.calls.push_back(call);
        sequences = sequences && call->sequence != kNoInt;
      }
    }
    for (auto& [pair, list] : own) {
      list.rank = part.rank;
      peers[pair].push_back(std::move(list));
    }
    // A rank whose calls all went to peers has none to lose here.
    if (!lane.calls.empty()) all.push_back(std::move(lane));
  }
  const bool unknown = group.name.empty() && group.ranks.empty();
  const auto add = [&](std::vector<JoinedCall> calls,
                       const std::vector<Lane>& lanes) {
    const size_t first = group.calls.size();
    for (JoinedCall& call : calls) {
      call.doubt = DoubtOf(call);
      group.calls.push_back(std::move(call));
    }
    FindLost(group, lanes, first);
  };
  if (!all.empty()) {
    const bool equal_lists =
        all.size() == parts.size() &&
        std::all_of(all.begin() + 1, all.end(), [&](const Lane& lane) {
          return SameList(all.front(), lane);
        });
    if (sequences) {
      add(JoinBySequence(all), all);
    } else if (!unknown) {
      add(JoinByOrder(all, MatchedBy::kOrder), all);
    } else if (equal_lists) {
      // Nothing says that these are the same group; order is the rule, and
      // time may object.
      std::vector<JoinedCall> calls(all.front().calls.size());
      for (size_t i = 0; i < calls.size(); ++i) {
        calls[i].by = MatchedBy::kOrder;
        calls[i].sequence = static_cast<int64_t>(i);
        for (const Lane& lane : all)
          calls[i].members.push_back({lane.rank, lane.calls[i]});
      }
      add(std::move(calls), all);
    } else {
      add(LeaveApart(all), all);
    }
  }
  for (auto& [pair, lanes] : peers)
    add(JoinByOrder(lanes, MatchedBy::kPeer), lanes);
  if (unknown) group.name = "unknown";
  return group;
}

}  // namespace lamina::dist
