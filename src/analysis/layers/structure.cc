// SPDX-License-Identifier: Apache-2.0
//
// Units of a sequence, the sequence read as units, and which units are of one
// stack. A few hundred lines because the three need each other: what a reading
// leaves over is looked at for more units, and neighbours in a reading say
// which units belong together.
#include "analysis/layers/structure.h"

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/layers/norm_boundary.h"
#include "analysis/layers/reading.h"
#include "analysis/layers/roles.h"
#include "analysis/layers/units.h"

namespace lamina::analysis::layers {
namespace {

using Ids = std::span<const uint32_t>;

// More kernels than this are not searched for repeats: the parts between cuts
// that differ come first, and a trace has few kinds of those.
constexpr size_t kMaxSearch = 1 << 21;
// Readings: units found in what a reading leaves over are used in the next.
constexpr int kRounds = 3;
constexpr size_t kMaxUnits = 48;
constexpr double kSharedHalf = 0.4;
// A layer that differs by less from a known one is that one, damaged.
constexpr double kDamaged = 0.25;
// Kernels between the norm of an embedding and the first layer, at most.
constexpr uint32_t kNearNorm = 8;
// Layers of another kind at the end of a stack, at most: dense ones before
// experts, a full attention behind scans.
constexpr size_t kFewLayers = 3;

class Builder {
 public:
  Builder(const Sequence& in, const StackOptions& options)
      : in_(in), options_(options), n_(static_cast<uint32_t>(in.ids.size())) {}

  Structure Run() {
    FindSegments();
    Search();
    Read();
    if (Turn()) Read();
    for (int round = 0; round < kRounds; ++round) {
      if (!LookAtRest()) break;
      Read();
    }
    if (SplitBlocks()) Read();
    Families();
    return Result();
  }

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  Ids Of(Range r) const { return in_.ids.subspan(r.begin, r.end - r.begin); }
  Marks MarksOf(Range r) const {
    return in_.marks.empty() ? Marks()
                             : in_.marks.subspan(r.begin, r.end - r.begin);
  }
  bool Has(uint16_t mark, Range r) const {
    for (const uint16_t m : MarksOf(r)) {
      if ((m & mark) != 0) return true;
    }
    return false;
  }
  static absl::Span<const uint32_t> Key(Ids ids) {
    return {ids.data(), ids.size()};
  }

  // Parts between cuts; equal ones are looked at once.
  void FindSegments() {
    uint32_t begin = 0;
    absl::flat_hash_map<absl::Span<const uint32_t>, uint32_t> known;
    const auto add = [&](uint32_t end) {
      if (end == begin) return;
      const Range r{begin, end};
      const auto [it, is_new] = known.try_emplace(
          Key(Of(r)), static_cast<uint32_t>(contents_.size()));
      if (is_new) {
        contents_.push_back(r);
        times_.push_back(0);
      }
      ++times_[it->second];
      segments_.emplace_back(r, it->second);
      begin = end;
    };
    for (uint32_t i = 1; i < n_; ++i) {
      if (!in_.marks.empty() && (in_.marks[i] & kCutMark) != 0) add(i);
    }
    add(n_);
  }

  // Repeats in the parts that differ, set behind each other.
  void Search() {
    std::vector<uint32_t> ids;
    std::vector<uint32_t> place;
    uint32_t separator = UINT32_MAX;
    for (const Range& r : contents_) {
      if (!ids.empty() && ids.size() + (r.end - r.begin) > kMaxSearch) break;
      if (!ids.empty()) {
        ids.push_back(separator--);
        place.push_back(r.begin);
      }
      for (uint32_t i = r.begin; i < r.end; ++i) {
        ids.push_back(in_.ids[i]);
        place.push_back(i);
      }
    }
    std::vector<Region> regions = ChooseLevel(FindRegions(ids, options_.pairs));
    std::stable_sort(regions.begin(), regions.end(),
                     [](const Region& a, const Region& b) {
                       return a.length() > b.length();
                     });
    for (const Region& r : regions) {
      if (units_.size() >= kMaxUnits) break;
      // A region lies in one part, so its places follow each other.
      const Range range{place[r.begin], place[r.begin] + r.length()};
      Refine(range, r.period);
    }
    TurnByVotes();
  }

  // Repeats begin and end where layers do, unless damage is there: the most
  // frequent place of a unit without a norm at which they do is its beginning.
  void Vote(size_t unit, Range r, uint32_t p, uint32_t offset) {
    auto& votes = votes_[static_cast<uint32_t>(unit)];
    ++votes[offset % p];
    ++votes[(offset + (r.end - r.begin)) % p];
  }
  void TurnByVotes() {
    for (const auto& [u, votes] : votes_) {
      const auto best = std::ranges::max_element(
          votes, {}, [](const auto& vote) { return vote.second; });
      const auto now = votes.find(0);
      if (units_[u].at_norm || best->second < 2 ||
          (now != votes.end() && now->second == best->second))
        continue;
      const uint32_t phase = units_[u].phase;
      for (Unit& unit : units_) {
        if (unit.phase == phase && best->first < unit.ids.size())
          TurnUnit(unit, best->first);
      }
    }
    votes_.clear();
  }
  static void TurnUnit(Unit& unit, uint32_t turn) {
    const auto by = static_cast<ptrdiff_t>(turn);
    std::rotate(unit.ids.begin(), unit.ids.begin() + by, unit.ids.end());
    std::rotate(unit.like.begin(), unit.like.begin() + by, unit.like.end());
    std::rotate(unit.marks.begin(), unit.marks.begin() + by, unit.marks.end());
  }

  // The layers in the unit of a repeat.
  void Refine(Range r, uint32_t p) {
    const bool pass = Has(kEdgeMark, {r.begin, r.begin + p}) &&
                      Has(kAttentionMark, {r.begin, r.begin + p});
    if (pass) return;  // its layers are found by what they do
    if (OfPairs(r, p)) return;
    if (p > options_.max_layer) return;
    if (Known(r, p)) return;
    std::vector<Range> layers = EndsAtNorm(r, p);
    if (layers.empty()) layers = ByRoles(r, p);
    bool at_norm = !layers.empty();
    if (layers.empty()) {
      uint32_t begin = r.begin;
      if (!in_.marks.empty()) {
        // A backward layer begins where it computes the forward pass again.
        std::vector<uint16_t> marks(in_.marks.begin() + r.begin,
                                    in_.marks.begin() + r.begin + p);
        for (uint16_t& mark : marks) {
          if ((mark & kBackwardMark) != 0) mark = kBackwardMark;
        }
        const uint32_t offset = NormOffset(marks, 0, p);
        if (offset < p && r.begin + offset + p <= r.end) {
          begin += offset;
          at_norm = true;
        }
      }
      for (const uint32_t length : SplitUnit(Of({begin, begin + p}))) {
        layers.push_back({begin, begin + length});
        begin += length;
      }
    } else {
      std::vector<Range> finer;
      for (const Range& layer : layers) {
        uint32_t begin = layer.begin;
        for (const uint32_t length : SplitUnit(Of(layer))) {
          finer.push_back({begin, begin + length});
          begin += length;
        }
      }
      if (finer.size() % layers.size() == 0) layers = std::move(finer);
    }
    Trim(layers);
    const auto group = next_group_++;
    const size_t before = units_.size();
    for (const Range& layer : layers)
      AddUnit(layer, group, static_cast<uint32_t>(layers.size()), at_norm,
              false);
    if (!at_norm && layers.size() == 1 && units_.size() == before + 1 &&
        units_[before].of_period == p)
      Vote(before, r, p, 0);
  }

  // A repeat that is mostly pairs of equal units which hold mixers is a pass: a
  // pipeline of two layers forward and backward. Its layers are taken then.
  bool OfPairs(Range r, uint32_t p) {
    if (!Has(kBackwardMark, {r.begin, r.begin + p})) return false;
    const Range window{r.begin, std::min(r.end, r.begin + 2 * p)};
    std::vector<Region> pairs = FindRegions(Of(window), true);
    std::erase_if(pairs, [&](const Region& pair) {
      const uint32_t begin = window.begin + pair.begin;
      return 2 * pair.period >= p || pair.length() + 2 < 2 * pair.period ||
             !Has(kAttentionMark, {begin, begin + pair.period});
    });
    pairs = ChooseLevel(std::move(pairs));
    uint32_t covered = 0;
    for (const Region& pair : pairs) covered += pair.length();
    if (covered * 4 < 3 * (window.end - window.begin)) return false;
    for (const Region& pair : pairs) {
      Refine({window.begin + pair.begin, window.begin + pair.end}, pair.period);
    }
    return true;
  }

  // Kernels behind one of several equal layers stand between passes: a pipeline
  // receives its next batch there.
  void Trim(std::vector<Range>& layers) const {
    if (in_.marks.empty()) return;
    for (Range& layer : layers) {
      for (const Range& other : layers) {
        const uint32_t length = other.end - other.begin;
        if (length >= layer.end - layer.begin) continue;
        const Range tail{layer.begin + length, layer.end};
        if (std::ranges::equal(Of({layer.begin, tail.begin}), Of(other)) &&
            !Has(kAttentionMark | kGemmMark | kFeedMark | kNormMark |
                     kMaybeNormMark | kBackwardMark,
                 tail)) {
          layer.end = tail.begin;
          break;
        }
      }
    }
  }

  // Whether a repeat is one of known units in some rotation. One that differs
  // in some kernels and has three copies becomes a unit of the same phase.
  bool Known(Range r, uint32_t p) {
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].of_period != p) continue;
      uint32_t edits = 0;
      const uint32_t turn =
          TurnTo(Of({r.begin, r.begin + p}), units_[u].ids, edits);
      if (turn == p) continue;
      const uint32_t begin = r.begin + turn;
      if (edits == 0) Vote(u, r, p, p - turn);
      if (edits > 0 && r.end - r.begin >= 3 * p && begin + p <= r.end) {
        const size_t before = units_.size();
        AddUnit({begin, begin + p}, units_[u].group, 1, units_[u].at_norm,
                false);
        if (units_.size() > before) units_.back().phase = units_[u].phase;
      }
      return true;
    }
    return false;
  }

  // How far a repeat must be turned to be nearest to a unit; its length when it
  // is never near.
  static uint32_t TurnTo(Ids repeat, Ids unit, uint32_t& edits) {
    const auto p = static_cast<uint32_t>(repeat.size());
    const auto limit = static_cast<uint32_t>(kReadTolerance * p);
    std::vector<uint32_t> turned(repeat.begin(), repeat.end());
    uint32_t best = limit + 1;
    uint32_t best_turn = p;
    for (uint32_t turn = 0; turn < p && best > 0; ++turn) {
      if (turned[0] == unit[0] || turned[1] == unit[1]) {
        const uint32_t own = EditDistance(turned, unit, limit);
        if (own < best) {
          best = own;
          best_turn = turn;
        }
      }
      std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    }
    edits = best;
    return best_turn;
  }

  // The unit of a model whose layers end with a norm: whole copies stand from
  // the beginning of the repeat to its end, and the norm of what stands before
  // the layers is not next to the first. Empty for other models.
  std::vector<Range> EndsAtNorm(Range r, uint32_t p) const {
    const auto norm = [&](uint32_t i) {
      return (in_.marks[i] & (kNormMark | kMaybeNormMark)) != 0;
    };
    // What follows the last copy may begin like one.
    const uint32_t over = (r.end - r.begin) % p;
    const uint32_t last = r.end - over - 1;
    if (in_.marks.empty() || 4 * over > p || norm(r.begin) || !norm(last) ||
        Has(kBackwardMark | kScanMark, r) || !Has(kAttentionMark, r))
      return {};
    for (uint32_t away = 1; away <= kNearNorm && away <= r.begin; ++away) {
      const uint32_t i = r.begin - away;
      if ((in_.marks[i] & (kGemmMark | kAttentionMark | kFeedMark)) != 0)
        return {};
      if (!norm(i)) continue;
      // One stray kernel may be damage.
      if (away < 3 || in_.ids[i] != in_.ids[last]) return {};
      return {{r.begin, r.begin + p}};
    }
    return {};
  }

  // The unit cut by what its kernels do, where all of it is such layers.
  std::vector<Range> ByRoles(Range r, uint32_t p) const {
    const Range window{r.begin, std::min(r.end, r.begin + 3 * p)};
    if (in_.marks.empty() || !Has(kAttentionMark, window) ||
        Has(kBackwardMark, window))
      return {};
    std::vector<RoleLayer> layers = CutByRoles(Of(window), MarksOf(window));
    std::vector<Range> out;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (!layers[i].complete) continue;
      // From here one period must be whole layers.
      uint32_t at = layers[i].begin;
      for (size_t k = i; k < layers.size() && layers[k].complete &&
                         layers[k].begin == at && layers[k].end <= at + p;
           ++k) {
        out.push_back(
            {window.begin + layers[k].begin, window.begin + layers[k].end});
        at = layers[k].end;
        if (at == layers[i].begin + p) return out;
      }
      out.clear();
      if (layers[i].begin >= p) break;
    }
    return {};
  }

  void AddUnit(Range r, uint32_t group, uint32_t per_unit, bool at_norm,
               bool by_roles) {
    if (r.end - r.begin < 3) return;
    const Ids ids = Of(r);
    for (Unit& unit : units_) {
      if (!std::ranges::equal(unit.ids, ids)) continue;
      if (unit.group != group) Join(unit.group, group);
      return;
    }
    if (units_.size() >= kMaxUnits) return;
    Unit unit;
    unit.ids.assign(ids.begin(), ids.end());
    for (uint32_t i = r.begin; i < r.end; ++i) {
      unit.like.push_back(in_.like.empty() ? in_.ids[i] : in_.like[i]);
      unit.marks.push_back(in_.marks.empty() ? uint16_t{0} : in_.marks[i]);
    }
    unit.group = group;
    unit.per_unit = per_unit;
    unit.of_period = per_unit == 1 ? r.end - r.begin : 0;
    unit.at_norm = at_norm;
    unit.by_roles = by_roles;
    unit.phase = static_cast<uint32_t>(units_.size());
    units_.push_back(std::move(unit));
  }
  void Join(uint32_t a, uint32_t b) { joined_.emplace_back(a, b); }

  void Read() {
    Reader reader(in_, units_);
    readings_.clear();
    for (const Range& r : contents_)
      readings_.push_back(reader.Read(r.begin, r.end));
  }

  // Without a norm the phase of a unit is arbitrary, and a part of a layer may
  // be left over at both ends of its runs. Where the two parts make one layer,
  // the unit is turned. True when one was.
  bool Turn() {
    std::vector<std::map<uint32_t, size_t>> votes(units_.size());
    std::vector<size_t> runs(units_.size(), 0);
    for (size_t c = 0; c < contents_.size(); ++c) {
      const std::vector<Found>& reading = readings_[c];
      uint32_t before = contents_[c].begin;
      for (size_t i = 0; i < reading.size();) {
        size_t last = i;
        while (last + 1 < reading.size() &&
               units_[reading[last + 1].unit].phase ==
                   units_[reading[i].unit].phase &&
               3 * (reading[last + 1].begin - reading[last].end) <
                   reading[last].end - reading[last].begin)
          ++last;
        const uint32_t after = last + 1 < reading.size()
                                   ? reading[last + 1].begin
                                   : contents_[c].end;
        const Unit& unit = units_[reading[i].unit];
        if (!unit.at_norm && unit.of_period > 0 && last > i) {
          ++runs[unit.phase];
          const uint32_t left = LeftOver(unit, before, reading[i].begin,
                                         reading[last].end, after);
          if (left > 0) ++votes[unit.phase][left];
        }
        before = reading[last].end;
        i = last + 1;
      }
    }
    bool turned = false;
    for (size_t u = 0; u < units_.size(); ++u) {
      size_t all = 0;
      std::pair<uint32_t, size_t> most;
      const uint32_t phase = units_[u].phase;
      for (const auto& [left, count] : votes[phase]) {
        all += count;
        if (count > most.second) most = {left, count};
      }
      if (most.second == 0 || 2 * all < runs[phase]) continue;
      Unit& unit = units_[u];
      TurnUnit(unit, static_cast<uint32_t>(unit.ids.size()) - most.first);
      turned = true;
    }
    return turned;
  }

  // Kernels of a layer before a run of a unit, where what stands before and
  // behind the run makes one layer; 0 otherwise.
  uint32_t LeftOver(const Unit& unit, uint32_t before, uint32_t begin,
                    uint32_t end, uint32_t after) const {
    const auto p = static_cast<uint32_t>(unit.ids.size());
    const Ids ids(unit.ids);
    const auto limit = [](uint32_t length) {
      return static_cast<uint32_t>(kReadTolerance * length);
    };
    uint32_t left = 0;
    for (uint32_t l = std::min(p - 1, begin - before); l > 0 && left == 0;
         --l) {
      if (EditDistance(ids.subspan(p - l), in_.ids.subspan(begin - l, l),
                       limit(l)) <= limit(l))
        left = l;
    }
    uint32_t right = 0;
    for (uint32_t r = std::min(p - 1, after - end); r > 0 && right == 0; --r) {
      if (EditDistance(ids.subspan(0, r), in_.ids.subspan(end, r), limit(r)) <=
          limit(r))
        right = r;
    }
    const double share = static_cast<double>(left + right) / p;
    return share < 1 - kReadTolerance || share > 1 + kReadTolerance ? 0 : left;
  }

  // Calls `f` with every part of every content that no layer covers.
  template <class F>
  void Rest(F f) const {
    for (size_t c = 0; c < contents_.size(); ++c) {
      uint32_t at = contents_[c].begin;
      for (const Found& layer : readings_[c]) {
        if (layer.begin > at) f(Range{at, layer.begin}, times_[c]);
        at = layer.end;
      }
      if (at < contents_[c].end) f(Range{at, contents_[c].end}, times_[c]);
    }
  }

  // Units in what no layer covers: by what kernels do, else the repeats of two
  // copies that fill half of a part between cuts. True when there are new ones.
  bool LookAtRest() {
    struct Candidate {
      Range range;
      size_t count = 0;
      uint32_t order = 0;
    };
    std::map<std::vector<uint32_t>, Candidate> candidates;
    absl::flat_hash_map<absl::Span<const uint32_t>, std::vector<Range>> known;
    uint32_t order = 0;
    const auto look = [&](Range r, size_t times) {
      if (!Has(kAttentionMark, r)) return;
      const auto [it, is_new] = known.try_emplace(Key(Of(r)));
      if (is_new) {
        for (const RoleLayer& layer : CutByRoles(Of(r), MarksOf(r))) {
          const Range own{layer.begin, layer.end};
          if (layer.complete && layer.end - layer.begin <= options_.max_layer &&
              !Has(kBackwardMark, {r.begin + own.begin, r.begin + own.end}))
            it->second.push_back(own);
        }
      }
      for (const Range& own : it->second) {
        const Range place{r.begin + own.begin, r.begin + own.end};
        const Ids ids = Of(place);
        Candidate& candidate = candidates[{ids.begin(), ids.end()}];
        candidate.count += times;
        if (candidate.count == times) {
          candidate.range = place;
          candidate.order = order++;
        }
      }
    };
    if (!in_.marks.empty()) Rest(look);
    std::vector<Candidate> sorted;
    for (const auto& [ids, candidate] : candidates) sorted.push_back(candidate);
    std::ranges::sort(sorted, [](const Candidate& a, const Candidate& b) {
      return a.count != b.count ? a.count > b.count : a.order < b.order;
    });
    const size_t before = units_.size();
    for (const Candidate& candidate : sorted) {
      if (units_.size() >= kMaxUnits) break;
      // One copy that is nearly a known unit, or two, is a damaged one.
      const Ids ids = Of(candidate.range);
      const bool damaged =
          candidate.count < 3 &&
          std::ranges::any_of(units_, [&](const Unit& u) {
            const auto limit = static_cast<uint32_t>(
                kDamaged *
                static_cast<double>(std::max(u.ids.size(), ids.size())));
            std::vector<uint32_t> two = u.ids;
            two.insert(two.end(), u.ids.begin(), u.ids.end());
            const auto of_two = static_cast<uint32_t>(
                kReadTolerance * static_cast<double>(two.size()));
            return EditDistance(u.ids, ids, limit) <= limit ||
                   EditDistance(two, ids, of_two) <= of_two;
          });
      if (!damaged) AddUnit(candidate.range, next_group_++, 1, true, true);
    }
    if (units_.size() == before) LookForPairs();
    if (units_.size() == before) LookForRecomputed();
    if (units_.size() == before) LookForBackwardPairs();
    return units_.size() > before;
  }

  void LookForPairs() {
    for (size_t c = 0; c < contents_.size(); ++c) {
      if (!readings_[c].empty() || contents_.size() == segments_.size())
        continue;
      const Range r = contents_[c];
      if (r.end - r.begin > kMaxSearch / 64) continue;
      std::vector<Region> regions = ChooseLevel(FindRegions(Of(r), true));
      for (const Region& region : regions) {
        if (2 * region.length() < r.end - r.begin) continue;
        Refine({r.begin + region.begin, r.begin + region.end}, region.period);
      }
    }
  }

  // Backward layers that no run of three shows: pairs in what is left, of the
  // period that covers most of it.
  void LookForBackwardPairs() {
    struct Period {
      Range longest;
      size_t covers = 0;
      size_t times = 0;
    };
    std::map<uint32_t, Period> periods;
    size_t searched = 0;
    size_t rest = 0;
    Rest([&](Range r, size_t times) {
      const uint32_t length = r.end - r.begin;
      searched += length;
      if (searched > kMaxSearch || !Has(kBackwardMark, r)) return;
      rest += length;
      for (const Region& region : ChooseLevel(FindRegions(Of(r), true))) {
        const Range own{r.begin + region.begin, r.begin + region.end};
        if (!Has(kAttentionMark, {own.begin, own.begin + region.period}))
          continue;
        Period& period = periods[region.period];
        period.covers += region.length();
        period.times += times;
        if (own.end - own.begin > period.longest.end - period.longest.begin)
          period.longest = own;
      }
    });
    const auto best = std::ranges::max_element(
        periods, {}, [](const auto& entry) { return entry.second.covers; });
    if (best == periods.end() || best->second.times < 2 ||
        3 * best->second.covers < rest)
      return;
    Refine(best->second.longest, best->first);
  }

  // What is left behind a layer again and again, and is backward work, is of
  // that layer: a backward layer that computes the forward pass again.
  void LookForRecomputed() {
    struct Tail {
      Range range;
      size_t times = 0;
      uint32_t order = 0;
    };
    std::map<std::vector<uint32_t>, Tail> tails;
    for (size_t c = 0; c < contents_.size(); ++c) {
      const std::vector<Found>& reading = readings_[c];
      for (size_t i = 0; i < reading.size(); ++i) {
        const Range r{reading[i].end, i + 1 < reading.size()
                                          ? reading[i + 1].begin
                                          : contents_[c].end};
        if (!reading[i].exact || r.end - r.begin < 4 ||
            r.end - reading[i].begin > options_.max_layer ||
            !Has(kBackwardMark, r) || !Has(kAttentionMark, r) ||
            Has(kEdgeMark, r))
          continue;
        const Ids ids = Of(r);
        Tail& tail = tails[{ids.begin(), ids.end()}];
        if (tail.times == 0)
          tail = {{reading[i].begin, r.end},
                  0,
                  static_cast<uint32_t>(tails.size())};
        tail.times += times_[c];
      }
    }
    const Tail* best = nullptr;
    for (const auto& [ids, tail] : tails) {
      if (tail.times >= 3 &&
          (best == nullptr || tail.times > best->times ||
           (tail.times == best->times && tail.order < best->order)))
        best = &tail;
    }
    if (best != nullptr) AddUnit(best->range, next_group_++, 1, true, false);
  }

  // Models whose layer is one block, a mixer or a feed-forward part
  // (Nemotron-H: "M-M-MM-M*-"): some scans stand alone, others before the same
  // feed-forward part. Where scans of both kinds are frequent, that part is a
  // layer of its own behind every mixer. Attention alone is no sign: models
  // that were pruned leave the feed-forward part of some layers out. True when
  // units were cut.
  bool SplitBlocks() {
    constexpr size_t kLeast = 3;  // layers with a scan alone
    const std::vector<uint32_t> part = FeedForwardPart(kLeast);
    if (part.empty()) return false;
    std::vector<Unit> whole = std::move(units_);
    units_.clear();
    const uint32_t group = next_group_++;
    // Attention before that part may have been read as a damaged scan.
    std::map<std::vector<uint32_t>, std::pair<Range, size_t>> others;
    for (size_t c = 0; c < contents_.size(); ++c) {
      for (const Found& layer : readings_[c]) {
        const Range front{layer.begin,
                          layer.end - static_cast<uint32_t>(part.size())};
        if (layer.exact || !EndsWith(Of({layer.begin, layer.end}), part) ||
            !Has(kAttentionMark, front))
          continue;
        const Ids ids = Of(front);
        auto& [range, count] = others[{ids.begin(), ids.end()}];
        range = front;
        count += times_[c];
      }
    }
    const auto add = [&](Unit unit) {
      if (std::ranges::any_of(units_,
                              [&](const Unit& u) { return u.ids == unit.ids; }))
        return;
      unit.group = group;
      unit.per_unit = 1;
      unit.of_period = static_cast<uint32_t>(unit.ids.size());
      unit.phase = static_cast<uint32_t>(units_.size());
      units_.push_back(std::move(unit));
    };
    for (Unit& unit : whole) {
      const size_t n = unit.ids.size();
      const size_t front = n > part.size() ? n - part.size() : n;
      if (front < n && EndsWith(unit.ids, part) &&
          std::ranges::any_of(
              std::span(unit.marks).subspan(0, front),
              [](uint16_t mark) { return (mark & kAttentionMark) != 0; })) {
        add(Piece(unit, front, n));
        add(Piece(unit, 0, front));
      } else {
        add(std::move(unit));
      }
    }
    for (const auto& [ids, place] : others) {
      if (place.second >= kLeast) AddUnit(place.first, group, 1, true, true);
    }
    return true;
  }
  static bool EndsWith(Ids ids, Ids end) {
    return ids.size() > end.size() &&
           std::ranges::equal(ids.subspan(ids.size() - end.size()), end);
  }
  static Unit Piece(const Unit& unit, size_t begin, size_t end) {
    Unit out = unit;
    const auto cut = [&](auto& all) {
      all.erase(all.begin() + static_cast<ptrdiff_t>(end), all.end());
      all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(begin));
    };
    cut(out.ids);
    cut(out.like);
    cut(out.marks);
    return out;
  }
  // What a unit with a scan has behind the kernels that stand alone elsewhere,
  // as a unit or between units; empty where no such pair is frequent.
  std::vector<uint32_t> FeedForwardPart(size_t least) const {
    std::vector<size_t> count(units_.size(), 0);
    for (size_t c = 0; c < contents_.size(); ++c) {
      for (const Found& layer : readings_[c]) count[layer.unit] += times_[c];
    }
    const auto all = [](std::span<const uint16_t> marks) {
      uint16_t out = 0;
      for (const uint16_t mark : marks) out |= mark;
      return out;
    };
    constexpr uint16_t kBlock = kScanMark | kFeedMark | kBackwardMark;
    for (size_t u = 0; u < units_.size(); ++u) {
      const Ids ids = units_[u].ids;
      const std::span<const uint16_t> marks = units_[u].marks;
      if (count[u] < least) continue;
      for (size_t n = 3; n + 3 <= ids.size(); ++n) {
        if (ids[n] != ids[0] ||
            (marks[n] & (kNormMark | kMaybeNormMark)) == 0 ||
            (all(marks.subspan(0, n)) & kBlock) != kScanMark)
          continue;
        const uint16_t rest = all(marks.subspan(n));
        if ((rest & (kAttentionMark | kBackwardMark)) != 0 ||
            (rest & kGemmMark) == 0 || Alone(ids.subspan(0, n), count) < least)
          continue;
        return {ids.begin() + static_cast<ptrdiff_t>(n), ids.end()};
      }
    }
    return {};
  }
  // How often kernels stand as a unit, or between units.
  size_t Alone(Ids ids, const std::vector<size_t>& count) const {
    size_t out = 0;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (std::ranges::equal(units_[u].ids, ids)) out += count[u];
    }
    Rest([&](Range r, size_t times) {
      while (r.end - r.begin >= ids.size() &&
             std::ranges::equal(Of(r).subspan(0, ids.size()), ids)) {
        out += times;
        r.begin += static_cast<uint32_t>(ids.size());
      }
    });
    return out;
  }

  // --- which units are of one stack ---

  bool Backward(const Unit& unit) const {
    return std::ranges::any_of(
        unit.marks, [](uint16_t m) { return (m & kBackwardMark) != 0; });
  }

  void Families() {
    family_.resize(units_.size());
    std::iota(family_.begin(), family_.end(), 0U);
    const auto unite = [&](size_t a, size_t b) {
      const uint32_t x = Root(static_cast<uint32_t>(a));
      const uint32_t y = Root(static_cast<uint32_t>(b));
      family_[std::max(x, y)] = std::min(x, y);
    };
    std::map<std::pair<uint32_t, uint32_t>, size_t> next_to;
    std::set<std::pair<uint32_t, uint32_t>> touches;
    for (const auto& reading : readings_) {
      for (size_t i = 0; i + 1 < reading.size(); ++i) {
        const uint32_t length = reading[i].end - reading[i].begin;
        // A stray kernel between them, no edge of a pass.
        if (8 * (reading[i + 1].begin - reading[i].end) <= length &&
            !Has(kEdgeMark, {reading[i].end, reading[i + 1].begin}))
          touches.insert({reading[i].unit, reading[i + 1].unit});
        if (4 * (reading[i + 1].begin - reading[i].end) <= length)
          ++next_to[{reading[i].unit, reading[i + 1].unit}];
      }
    }
    CountRuns();
    for (uint32_t a = 0; a < units_.size(); ++a) {
      for (uint32_t b = a + 1; b < units_.size(); ++b) {
        const Unit& x = units_[a];
        const Unit& y = units_[b];
        if (Backward(x) != Backward(y)) continue;
        const bool forth = next_to.contains({a, b});
        const bool back = next_to.contains({b, a});
        if (x.group == y.group || SameGroup(x.group, y.group) ||
            Similar(x, y) || (forth && back) ||
            ((touches.contains({a, b}) || touches.contains({b, a})) &&
             (ShareHalf(x, y) || (x.ids[0] == y.ids[0] &&
                                  (x.at_norm || y.at_norm) && FewOfOne(a, b)))))
          unite(a, b);
      }
    }
  }
  // The longest run of each unit, and of the others of its repeat with it.
  void CountRuns() {
    std::map<uint32_t, size_t> longest;  // by group
    for (const auto& reading : readings_) {
      for (size_t i = 0; i < reading.size();) {
        const uint32_t group = units_[reading[i].unit].group;
        size_t last = i;
        while (last + 1 < reading.size() &&
               units_[reading[last + 1].unit].group == group &&
               reading[last + 1].begin == reading[last].end)
          ++last;
        longest[group] = std::max(longest[group], last + 1 - i);
        i = last + 1;
      }
    }
    longest_.clear();
    for (const Unit& unit : units_) longest_.push_back(longest[unit.group]);
  }
  bool FewOfOne(uint32_t a, uint32_t b) const {
    const auto [few, many] = std::minmax(longest_[a], longest_[b]);
    return few <= kFewLayers && many >= kFewLayers && few < many;
  }
  bool SameGroup(uint32_t a, uint32_t b) const {
    return std::ranges::any_of(joined_, [&](const auto& pair) {
      return pair == std::pair(a, b) || pair == std::pair(b, a);
    });
  }
  uint32_t Root(uint32_t a) const {
    while (family_[a] != a) a = family_[a];
    return a;
  }
  static bool Similar(const Unit& a, const Unit& b) {
    const size_t longer = std::max(a.ids.size(), b.ids.size());
    const auto limit =
        static_cast<uint32_t>(kReadTolerance * static_cast<double>(longer));
    // Attention is attention: prefill and decode of one model differ in it.
    const auto flat = [](const Unit& unit) {
      std::vector<uint32_t> out;
      for (size_t i = 0; i < unit.like.size(); ++i) {
        out.push_back((unit.marks[i] & kAttentionMark) != 0
                          ? UINT32_MAX - ((unit.marks[i] & kScanMark) != 0)
                          : unit.like[i]);
      }
      return out;
    };
    return EditDistance(flat(a), flat(b), limit) <= limit;
  }
  // The same kernels up to the mixer, or from it on.
  static bool ShareHalf(const Unit& a, const Unit& b) {
    const size_t shorter = std::min(a.ids.size(), b.ids.size());
    size_t front = 0;
    bool mixer = false;
    while (front < shorter && a.ids[front] == b.ids[front]) {
      mixer = mixer || (a.marks[front] & kAttentionMark) != 0;
      ++front;
    }
    size_t back = 0;
    while (back < shorter &&
           a.ids[a.ids.size() - 1 - back] == b.ids[b.ids.size() - 1 - back])
      ++back;
    const double least = kSharedHalf * static_cast<double>(shorter);
    return (mixer && static_cast<double>(front) >= least) ||
           static_cast<double>(std::max(front, back)) >= 1.5 * least;
  }

  Structure Result() const {
    Structure out;
    std::map<uint32_t, uint32_t> number;
    std::vector<std::pair<size_t, uint32_t>> count(units_.size());
    for (const auto& [range, content] : segments_) {
      const uint32_t shift = range.begin - contents_[content].begin;
      for (Found layer : readings_[content]) {
        layer.begin += shift;
        layer.end += shift;
        const auto [it, is_new] = number.try_emplace(
            Root(layer.unit), static_cast<uint32_t>(number.size()));
        layer.family = it->second;
        ++count[layer.unit].first;
        out.layers.push_back(layer);
      }
    }
    out.families = static_cast<uint32_t>(number.size());
    out.of_family.resize(out.families);
    std::vector<size_t> most(out.families, 0);
    for (uint32_t u = 0; u < units_.size(); ++u) {
      if (count[u].first == 0) continue;
      const uint32_t f = number.at(Root(u));
      Structure::Family& family = out.of_family[f];
      if (count[u].first <= most[f]) continue;
      most[f] = count[u].first;
      family.period = static_cast<uint32_t>(units_[u].ids.size());
      if (units_[u].per_unit > 1) {
        family.period = 0;
        for (const Unit& other : units_) {
          if (other.group == units_[u].group)
            family.period += static_cast<uint32_t>(other.ids.size());
        }
      }
      family.per_unit = units_[u].per_unit;
      family.at_norm = units_[u].at_norm;
      family.by_roles = units_[u].by_roles;
    }
    return out;
  }

  const Sequence& in_;
  StackOptions options_;
  uint32_t n_;
  std::vector<size_t> times_;    // by content: segments that have it
  std::vector<Range> contents_;  // of parts that differ
  std::vector<std::pair<Range, uint32_t>> segments_;  // and their content
  std::vector<Unit> units_;
  std::vector<std::vector<Found>> readings_;  // by content
  std::vector<std::pair<uint32_t, uint32_t>> joined_;
  // By unit: how many repeats begin or end at a place of it.
  std::map<uint32_t, std::map<uint32_t, size_t>> votes_;
  std::vector<size_t> longest_;   // by unit: layers of its longest run
  std::vector<uint32_t> family_;  // by unit: one of its stack
  uint32_t next_group_ = 0;
};

}  // namespace

Structure FindStructure(const Sequence& sequence, const StackOptions& options) {
  return Builder(sequence, options).Run();
}

}  // namespace lamina::analysis::layers
