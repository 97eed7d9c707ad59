// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/align.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>

#include "compare/cudagraph/lcs.h"

namespace lamina::cudagraph {
namespace {

using Tokens = std::span<const uint32_t>;

// Tables above this size (cells) are not filled; the order inside names is
// taken instead and called likely only.
constexpr uint64_t kMaxCells = uint64_t{100} << 20;
// How far from its expected place a launch may fill a gap.
constexpr int64_t kGapReach = 4;

bool SameMultiset(Tokens a, Tokens b) {
  if (a.size() != b.size()) return false;
  std::vector<uint32_t> x(a.begin(), a.end());
  std::vector<uint32_t> y(b.begin(), b.end());
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}

// i-th occurrence of a token to its i-th occurrence.
void ByOrder(const Sequence& capture, const Sequence& replay,
             std::vector<Match>& matches, Level level) {
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> places;
  for (uint32_t i = 0; i < capture.tokens.size(); ++i)
    places[capture.tokens[i]].push_back(i);
  absl::flat_hash_map<uint32_t, uint32_t> next;
  absl::flat_hash_map<uint32_t, uint32_t> stream_of;
  absl::flat_hash_map<uint32_t, bool> spread;  // runs on several streams
  for (uint32_t j = 0; j < replay.streams.size(); ++j) {
    const auto [it, is_new] =
        stream_of.try_emplace(replay.tokens[j], replay.streams[j]);
    if (!is_new && it->second != replay.streams[j])
      spread[replay.tokens[j]] = true;
  }
  for (uint32_t j = 0; j < replay.tokens.size(); ++j) {
    const uint32_t token = replay.tokens[j];
    const auto it = places.find(token);
    const uint32_t k = next[token]++;
    if (it == places.end() || k >= it->second.size()) continue;
    Match& match = matches[j];
    match.partner = it->second[k];
    // One launch of its name has no order that could be wrong.
    const bool single = it->second.size() == 1;
    match.level = spread.contains(token) && !single ? Level::kLcs : level;
    match.alternatives = match.level == Level::kLcs
                             ? static_cast<uint32_t>(it->second.size())
                             : 1;
  }
}

bool OnSeveralStreams(const Sequence& replay) {
  return std::any_of(replay.streams.begin(), replay.streams.end(),
                     [&](uint32_t s) { return s != replay.streams[0]; });
}

// Deals the capture out to the streams of the replay, each of which kept its
// order: a launch goes to the stream that waits for its name, of several to
// the one that goes on with it the longest. `step` 1 deals from the front, -1
// from the back. Returns the partner of every element and whether another
// stream waited, too; nothing when some launch finds no stream.
struct Dealt {
  std::vector<uint32_t> partners;
  std::vector<uint32_t> waiting;  // streams that could have taken it
};
std::optional<Dealt> Deal(const Sequence& capture, const Sequence& replay,
                          int step) {
  const auto n = static_cast<int64_t>(capture.tokens.size());
  std::map<uint32_t, std::vector<uint32_t>> queues;  // by stream
  for (int64_t k = 0; k < n; ++k) {
    const int64_t j = step > 0 ? k : n - 1 - k;
    queues[replay.streams[static_cast<size_t>(j)]].push_back(
        static_cast<uint32_t>(j));
  }
  std::map<uint32_t, size_t> heads;
  Dealt dealt{std::vector<uint32_t>(replay.tokens.size()),
              std::vector<uint32_t>(replay.tokens.size(), 0)};
  const auto token_at = [&](int64_t k) {
    return capture.tokens[static_cast<size_t>(step > 0 ? k : n - 1 - k)];
  };
  // A longer look ahead changes nothing that matters.
  constexpr int64_t kLookAhead = 64;
  for (int64_t k = 0; k < n; ++k) {
    const std::vector<uint32_t>* best = nullptr;
    uint32_t best_stream = 0;
    int64_t longest = 0;
    uint32_t waiting = 0;
    for (const auto& [stream, queue] : queues) {
      const size_t head = heads[stream];
      int64_t run = 0;
      while (run < kLookAhead && k + run < n &&
             head + static_cast<size_t>(run) < queue.size() &&
             replay.tokens[queue[head + static_cast<size_t>(run)]] ==
                 token_at(k + run))
        ++run;
      waiting += run > 0;
      if (run > longest) {
        longest = run;
        best = &queue;
        best_stream = stream;
      }
    }
    if (best == nullptr) return std::nullopt;
    const uint32_t j = (*best)[heads[best_stream]++];
    dealt.partners[j] = static_cast<uint32_t>(step > 0 ? k : n - 1 - k);
    dealt.waiting[j] = waiting;
  }
  return dealt;
}

// Several streams with the kernels of the capture. Dealing without a choice
// from either end is the only way; else a kernel is by position when neither
// end had a choice for it. False when the streams are no parts of the capture.
bool ByStreams(const Sequence& capture, const Sequence& replay,
               std::vector<Match>& matches) {
  const auto front = Deal(capture, replay, 1);
  const auto back = Deal(capture, replay, -1);
  if (!front || !back) return false;
  const auto free_choice = [](const Dealt& dealt) {
    return std::any_of(dealt.waiting.begin(), dealt.waiting.end(),
                       [](uint32_t count) { return count > 1; });
  };
  const bool only = !free_choice(*front) || !free_choice(*back);
  for (size_t j = 0; j < matches.size(); ++j) {
    const uint32_t waiting = std::max(front->waiting[j], back->waiting[j]);
    const bool agreed = front->partners[j] == back->partners[j];
    matches[j].partner = front->partners[j];
    if (only || (agreed && waiting == 1)) {
      matches[j].level = Level::kExact;
    } else {
      matches[j].level = Level::kLcs;
      matches[j].alternatives = std::max(2U, waiting);
    }
  }
  return true;
}

// A name that ran on several streams has no order: one partner on every
// alignment of the whole is no proof.
void DoubtSpreadNames(const Sequence& replay, std::vector<Match>& matches) {
  absl::flat_hash_map<uint32_t, uint32_t> stream_of;
  absl::flat_hash_map<uint32_t, uint32_t> spread;  // kernels of the name
  for (size_t j = 0; j < replay.tokens.size(); ++j) {
    const auto [it, is_new] =
        stream_of.try_emplace(replay.tokens[j], replay.streams[j]);
    if (it->second != replay.streams[j]) spread[replay.tokens[j]] = 0;
  }
  for (const uint32_t token : replay.tokens) {
    const auto it = spread.find(token);
    if (it != spread.end()) ++it->second;
  }
  for (size_t j = 0; j < matches.size(); ++j) {
    const auto it = spread.find(replay.tokens[j]);
    if (it == spread.end() || matches[j].level != Level::kSure) continue;
    matches[j].level = Level::kLcs;
    matches[j].alternatives = it->second;
  }
}

// Elements without a partner, between the partners of their neighbours.
void FillGaps(const Sequence& capture, const Sequence& replay,
              std::vector<Match>& matches) {
  const auto n = static_cast<int64_t>(capture.tokens.size());
  std::vector<bool> used(capture.tokens.size(), false);
  for (const Match& match : matches) {
    if (match.partner != Match::kNoPartner) used[match.partner] = true;
  }
  for (size_t j = 0; j < matches.size();) {
    if (matches[j].partner != Match::kNoPartner) {
      ++j;
      continue;
    }
    size_t end = j;
    while (end < matches.size() && matches[end].partner == Match::kNoPartner)
      ++end;
    const int64_t before =
        j > 0 ? static_cast<int64_t>(matches[j - 1].partner) : -1;
    const int64_t after =
        end < matches.size() ? static_cast<int64_t>(matches[end].partner) : n;
    for (size_t k = j; k < end; ++k) {
      const int64_t expected = before + 1 + static_cast<int64_t>(k - j);
      Match& match = matches[k];
      for (const bool by_name : {true, false}) {
        for (int64_t away = 0;
             away <= kGapReach && match.partner == Match::kNoPartner; ++away) {
          for (const int64_t i : {expected - away, expected + away}) {
            if (i < 0 || i >= n) continue;
            // The same name may have changed places with an anchor.
            if (!by_name && (i <= before || i >= after)) continue;
            const auto at = static_cast<size_t>(i);
            const bool fits =
                by_name ? capture.tokens[at] == replay.tokens[k]
                        : !capture.families.empty() &&
                              capture.families[at] == replay.families[k];
            if (used[at] || !fits) continue;
            match.partner = static_cast<uint32_t>(i);
            match.level = by_name ? Level::kGapFifo : Level::kFamily;
            used[at] = true;
            break;
          }
        }
      }
      if (match.partner != Match::kNoPartner) continue;
      if (before >= 0 && after < n) {
        match.level = Level::kScope;
        match.before = static_cast<uint32_t>(before);
        match.after = static_cast<uint32_t>(after);
      }
    }
    j = end;
  }
}

}  // namespace

std::string_view LevelName(Level level) {
  static constexpr std::string_view kNames[kLevels] = {
      "exact-id", "exact", "fifo",  "sure",      "gap-fifo",
      "family",   "lcs",   "scope", "ambiguous", "none"};
  return kNames[static_cast<size_t>(level)];
}

std::optional<Level> FindLevel(std::string_view name) {
  for (int level = 0; level < kLevels; ++level) {
    if (LevelName(static_cast<Level>(level)) == name)
      return static_cast<Level>(level);
  }
  return std::nullopt;
}

Confidence ConfidenceOf(Level level) {
  switch (level) {
    case Level::kExactId:
    case Level::kExact:
    case Level::kFifo:
    case Level::kSure:
      return Confidence::kFact;
    case Level::kGapFifo:
    case Level::kFamily:
    case Level::kLcs:
      return Confidence::kLikely;
    case Level::kScope:
      return Confidence::kPartial;
    case Level::kAmbiguous:
      return Confidence::kList;
    case Level::kNone:
      return Confidence::kNone;
  }
  return Confidence::kNone;
}

std::string_view ConfidenceName(Confidence confidence) {
  constexpr std::string_view kNames[] = {"fact", "likely", "partial", "list",
                                         "none"};
  return kNames[static_cast<size_t>(confidence)];
}

std::vector<Match> Align(const Sequence& capture, const Sequence& replay) {
  std::vector<Match> matches(replay.tokens.size());
  if (std::ranges::equal(capture.tokens, replay.tokens)) {
    for (uint32_t j = 0; j < matches.size(); ++j)
      matches[j] = {j, Level::kExact};
    return matches;
  }
  const bool several = OnSeveralStreams(replay);
  if (SameMultiset(capture.tokens, replay.tokens)) {
    if (several && ByStreams(capture, replay, matches)) return matches;
    ByOrder(capture, replay, matches, Level::kFifo);
    return matches;
  }
  const uint64_t cells = (uint64_t{capture.tokens.size()} + 1) *
                         (uint64_t{replay.tokens.size()} + 1);
  if (cells > kMaxCells || capture.tokens.size() > 65000 ||
      replay.tokens.size() > 65000) {
    ByOrder(capture, replay, matches, Level::kLcs);
  } else {
    MatchByLcs(capture.tokens, replay.tokens, matches);
    if (several) DoubtSpreadNames(replay, matches);
  }
  FillGaps(capture, replay, matches);
  return matches;
}

}  // namespace lamina::cudagraph
