// SPDX-License-Identifier: Apache-2.0

#include "compare/cudagraph/align.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <limits>
#include <map>

namespace lamina::cudagraph {

namespace {

class Lcs {
 public:
  Lcs(std::span<const uint32_t> a, std::span<const uint32_t> b)
      : a_(a), b_(b), width_(b.size() + 1) {}

  void Run(std::vector<Match>& matches) {
    CountLengths();
    FindPartners(matches);
    CountRuns();
    FollowRuns(matches);
    // On some optimal alignment, but not on the one followed.
    for (Match& match : matches) {
      if (match.partner == Match::kNoPartner) match = Match();
    }
  }

 private:
  // The longest common subsequence of the parts before and behind each pair.
  void CountLengths() {
    const size_t n = a_.size();
    const size_t m = b_.size();
    forward_.assign((n + 1) * width_, 0);
    backward_.assign((n + 1) * width_, 0);
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = 1; j <= m; ++j) {
        At(forward_, i, j) =
            a_[i - 1] == b_[j - 1]
                ? static_cast<uint16_t>(At(forward_, i - 1, j - 1) + 1)
                : std::max(At(forward_, i - 1, j), At(forward_, i, j - 1));
      }
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        At(backward_, i, j) =
            a_[i] == b_[j]
                ? static_cast<uint16_t>(At(backward_, i + 1, j + 1) + 1)
                : std::max(At(backward_, i + 1, j), At(backward_, i, j + 1));
      }
    }
  }

  // Which elements have one partner, or several, on optimal alignments.
  void FindPartners(std::vector<Match>& matches) {
    const size_t n = a_.size();
    const size_t m = b_.size();
    const uint16_t length = At(forward_, n, m);
    // Whether an element is unmatched on some optimal alignment, too, does not
    // matter: the question is which launch it comes from.
    for (size_t j = 0; j < m; ++j) {
      uint32_t partners = 0;
      uint32_t first = Match::kNoPartner;
      for (size_t i = 0; i < n; ++i) {
        if (a_[i] != b_[j] ||
            At(forward_, i, j) + 1 + At(backward_, i + 1, j + 1) != length)
          continue;
        if (partners++ == 0) first = static_cast<uint32_t>(i);
      }
      if (partners == 0) continue;
      matches[j].alternatives = partners;
      if (partners == 1) {
        matches[j].partner = first;
        matches[j].level = Level::kSure;
      } else {
        matches[j].level = Level::kLcs;
      }
    }
  }

  // Ties are decided by the alignment with the longest runs, since work is
  // missing in stretches rather than here and there; then by the earliest.
  void FollowRuns(std::vector<Match>& matches) {
    const size_t n = a_.size();
    const size_t m = b_.size();
    size_t i = 0;
    size_t j = 0;
    while (i < n && j < m) {
      const uint16_t best = At(runs_, i, j);
      if (Optimal(i, j) && At(paired_, i, j) == best) {
        // A run goes on as long as it is as good.
        do {
          if (matches[j].partner == Match::kNoPartner)
            matches[j].partner = static_cast<uint32_t>(i);
          ++i;
          ++j;
        } while (i < n && j < m && Optimal(i, j) &&
                 At(paired_, i - 1, j - 1) == At(paired_, i, j) + 1);
      } else if (At(backward_, i, j) == At(backward_, i + 1, j) &&
                 At(runs_, i + 1, j) == best) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  // Whether a pair begins some optimal alignment of what follows it.
  bool Optimal(size_t i, size_t j) {
    return a_[i] == b_[j] &&
           At(backward_, i, j) == At(backward_, i + 1, j + 1) + 1;
  }

  // The most pairs that directly follow another, over the optimal alignments
  // of what begins at (i, j): `paired_` of those that begin with this pair.
  void CountRuns() {
    const size_t n = a_.size();
    const size_t m = b_.size();
    runs_.assign((n + 1) * width_, 0);
    paired_.assign((n + 1) * width_, 0);
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        const uint16_t length = At(backward_, i, j);
        uint16_t best = 0;
        if (At(backward_, i + 1, j) == length) best = At(runs_, i + 1, j);
        if (At(backward_, i, j + 1) == length)
          best = std::max(best, At(runs_, i, j + 1));
        if (Optimal(i, j)) {
          uint16_t own = At(runs_, i + 1, j + 1);
          if (i + 1 < n && j + 1 < m && Optimal(i + 1, j + 1)) {
            own = std::max(
                own, static_cast<uint16_t>(At(paired_, i + 1, j + 1) + 1));
          }
          At(paired_, i, j) = own;
          best = std::max(best, own);
        }
        At(runs_, i, j) = best;
      }
    }
  }

  uint16_t& At(std::vector<uint16_t>& table, size_t i, size_t j) const {
    return table[i * width_ + j];
  }

  std::span<const uint32_t> a_;
  std::span<const uint32_t> b_;
  size_t width_;
  std::vector<uint16_t> forward_;
  std::vector<uint16_t> backward_;
  std::vector<uint16_t> runs_;
  std::vector<uint16_t> paired_;
};

}  // namespace

void MatchByLcs(std::span<const uint32_t> capture,
                std::span<const uint32_t> replay, std::vector<Match>& matches) {
  Lcs(capture, replay).Run(matches);
}

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

namespace {

// Tables above this size are not filled.
constexpr uint64_t kMaxPairs = uint64_t{16} << 20;

// The increasing choice with the smallest sum, for fewer launches than
// segments; the earliest of equal ones.
std::vector<uint32_t> Increasing(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  // Cheapest for the launches from l on with the segments from s on.
  const size_t width = size_t{segments} + 1;
  std::vector<uint64_t> rest((size_t{launches} + 1) * width, kNone);
  for (size_t s = 0; s < width; ++s) rest[launches * width + s] = 0;
  for (uint32_t l = launches; l-- > 0;) {
    for (uint32_t s = segments; s-- > 0;) {
      const uint64_t next = rest[(l + 1) * width + s + 1];
      const uint64_t taken = next == kNone ? kNone : next + cost(l, s);
      rest[l * width + s] = std::min(taken, rest[l * width + s + 1]);
    }
  }
  std::vector<uint32_t> chosen;
  uint32_t s = 0;
  for (uint32_t l = 0; l < launches; ++l) {
    const auto taken = [&] {
      const uint64_t next = rest[(l + 1) * width + s + 1];
      return next != kNone && rest[l * width + s] == next + cost(l, s);
    };
    while (!taken()) ++s;
    chosen.push_back(s++);
  }
  return chosen;
}

}  // namespace

uint32_t Distance(std::span<const uint32_t> segment,
                  std::span<const uint32_t> launch) {
  if (std::ranges::equal(segment, launch)) return 0;
  std::vector<uint32_t> a(segment.begin(), segment.end());
  std::vector<uint32_t> b(launch.begin(), launch.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return 1 + SortedDistance(a, b);
}

uint32_t SortedDistance(std::span<const uint32_t> a,
                        std::span<const uint32_t> b) {
  std::vector<uint32_t> odd;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::back_inserter(odd));
  return static_cast<uint32_t>(odd.size());
}

std::vector<uint32_t> Assign(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost) {
  std::vector<uint32_t> alone(launches, 0);
  uint64_t least = 0;
  for (uint32_t l = 0; l < launches; ++l) {
    uint32_t best = cost(l, 0);
    for (uint32_t s = 1; s < segments && best > 0; ++s) {
      const uint32_t own = cost(l, s);
      if (own >= best) continue;
      best = own;
      alone[l] = s;
    }
    least += best;
  }
  std::vector<uint32_t> ordered;
  if (launches >= segments) {
    for (uint32_t l = 0; l < launches; ++l) ordered.push_back(l % segments);
  } else if (uint64_t{launches} * segments <= kMaxPairs) {
    ordered = Increasing(launches, segments, cost);
  } else {
    return alone;
  }
  uint64_t sum = 0;
  for (uint32_t l = 0; l < launches; ++l) sum += cost(l, ordered[l]);
  return sum <= least + least / 4 ? ordered : alone;
}

}  // namespace lamina::cudagraph
