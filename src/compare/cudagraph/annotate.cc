// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/annotate.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>
#include <tuple>

#include "base/string_pool.h"
#include "compare/cudagraph/align.h"
#include "compare/cudagraph/names.h"
#include "compare/cudagraph/node_chain.h"
#include "compare/cudagraph/stretches.h"

namespace lamina::cudagraph {
namespace {

using analysis::Context;
using trace::SliceId;

// At least one kernel in this many must have a partner by name.
constexpr size_t kLeastExplained = 4;

// The kernels of a replay as the alignment sees them.
struct Template {
  std::vector<uint32_t> tokens;
  std::vector<uint8_t> families;
  std::vector<uint32_t> streams;
  std::vector<uint32_t> sorted;  // tokens
  bool by_node = false;          // in the order of capture
  int64_t graph_id = trace::kNoInt;
  uint32_t replays = 0;  // that are like this
};

class Annotator {
 public:
  Annotator(const Context& context, std::vector<Segment> segments,
            const AnnotateOptions& options)
      : context_(context), trace_(context.trace), options_(options) {
    out_.segments = std::move(segments);
  }

  Annotation Run() {
    for (const Segment& segment : out_.segments) {
      std::vector<uint32_t> tokens;
      std::vector<uint8_t> families;
      for (const Tags& tags : segment.launches) {
        tokens.push_back(pool_.Intern(tags.name).value);
        families.push_back(FamilyOf(tags));
      }
      tokens_.push_back(std::move(tokens));
      families_.push_back(std::move(families));
    }
    out_.replays = FindReplays(context_, options_.batch);
    NodeChain chain(trace_);
    std::vector<uint32_t> open;  // replays that the chain does not explain
    template_of_.resize(out_.replays.size());
    for (Replay& replay : out_.replays) {
      std::vector<Match> matches;
      if (chain.Apply(replay, out_.segments, matches)) {
        Keep(replay, std::move(matches));
      } else {
        template_of_[replay.number] = TemplateOf(replay);
        ++templates_[template_of_[replay.number]].replays;
        open.push_back(replay.number);
      }
    }
    // Launches of one step and one batch share the segments among them.
    for (size_t i = 0; i < open.size();) {
      const Replay& first = out_.replays[open[i]];
      size_t end = i + 1;
      while (end < open.size() && out_.replays[open[end]].step == first.step &&
             out_.replays[open[end]].batch == first.batch)
        ++end;
      const std::span<const uint32_t> group(open.data() + i, end - i);
      Choose(group);
      ReadAlong(group);
      i = end;
    }
    if (options_.node_tags != nullptr) options_.node_tags->Apply(trace_, out_);
    DropBelow(options_.least);
    ListOps();
    return std::move(out_);
  }

 private:
  void DropBelow(Level least) {
    for (std::vector<Match>& matches : out_.alignments) {
      for (Match& match : matches) {
        if (match.level > least) match = Match();
      }
    }
  }

  // The ops of every name that is left ambiguous.
  void ListOps() {
    bool any = false;
    for (const std::vector<Match>& matches : out_.alignments) {
      for (const Match& match : matches)
        any = any || match.level == Level::kAmbiguous;
    }
    if (!any) return;
    for (const Segment& segment : out_.segments) {
      if (!segment.names) continue;
      for (const Tags& tags : segment.launches) {
        std::vector<std::string>& ops = out_.ops_by_name[tags.name];
        if (!tags.op.empty() && ops.size() < Annotation::kMaxListed &&
            std::find(ops.begin(), ops.end(), tags.op) == ops.end())
          ops.push_back(tags.op);
      }
    }
  }

  uint8_t FamilyOf(const Tags& tags) const {
    const std::string_view by_op = context_.catalog.OpFamily(tags.op);
    return static_cast<uint8_t>(context_.catalog.FamilyIndex(
        by_op.empty() ? context_.catalog.KernelFamily(tags.name) : by_op));
  }

  // Captured segments that may be this replay: those of the smallest captured
  // batch that holds it, all when no batch is known.
  std::vector<uint32_t> Eligible(const Replay& replay) const {
    int64_t batch = -1;
    // Those of node chains come behind and are no candidates.
    const auto captured = static_cast<uint32_t>(tokens_.size());
    for (uint32_t i = 0; i < captured; ++i) {
      const Segment& segment = out_.segments[i];
      if (replay.batch >= 0 && segment.batch >= replay.batch &&
          (batch < 0 || segment.batch < batch))
        batch = segment.batch;
    }
    std::vector<uint32_t> eligible;
    for (uint32_t i = 0; i < captured; ++i) {
      if (batch < 0 || out_.segments[i].batch == batch) eligible.push_back(i);
    }
    return eligible;
  }

  uint32_t TemplateOf(const Replay& replay) {
    Template own;
    for (const SliceId s : replay.work) {
      own.tokens.push_back(TokenId(s));
      const trace::DeviceArgs* args = trace_.Device(s);
      own.streams.push_back(args != nullptr ? args->lane.value : 0);
    }
    own.by_node = replay.by_node;
    own.graph_id = replay.graph_id;
    const auto [it, is_new] = template_ids_.try_emplace(
        std::tuple(own.tokens, own.streams, own.by_node, own.graph_id),
        static_cast<uint32_t>(templates_.size()));
    if (is_new) {
      own.sorted = own.tokens;
      std::sort(own.sorted.begin(), own.sorted.end());
      for (const SliceId s : replay.work) {
        own.families.push_back(
            static_cast<uint8_t>(context_.catalog.FamilyIndex(
                context_.catalog.KernelFamily(trace_.Name(s)))));
      }
      templates_.push_back(std::move(own));
    }
    return it->second;
  }

  void Keep(Replay& replay, std::vector<Match> matches) {
    replay.alignment = static_cast<uint32_t>(out_.alignments.size());
    out_.alignments.push_back(std::move(matches));
  }

  // The segments of replays of one step and batch.
  void Choose(std::span<const uint32_t> replays) {
    const std::vector<uint32_t> eligible = Eligible(out_.replays[replays[0]]);
    if (eligible.empty()) {
      for (const uint32_t r : replays) {
        Replay& replay = out_.replays[r];
        Keep(replay, std::vector<Match>(replay.work.size()));
      }
      return;
    }
    const auto chosen =
        Assign(static_cast<uint32_t>(replays.size()),
               static_cast<uint32_t>(eligible.size()),
               [&](uint32_t launch, uint32_t segment) {
                 return Cost(template_of_[replays[launch]], eligible[segment]);
               });
    for (size_t i = 0; i < replays.size(); ++i) {
      MatchTo(out_.replays[replays[i]], template_of_[replays[i]],
              eligible[chosen[i]]);
    }
  }

  // The launches of eager traces, one behind the other; those of a segment that
  // another one equals are left out.
  struct Eager {
    std::vector<uint32_t> tokens;
    std::vector<uint8_t> families;
    std::vector<uint32_t> segment;   // of each
    std::vector<uint32_t> position;  // in it
  };

  const Eager& EagerLaunches() {
    if (eager_) return *eager_;
    eager_.emplace();
    std::map<std::vector<uint32_t>, std::vector<uint32_t>> known;
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      const Segment& segment = out_.segments[i];
      if (!segment.names || segment.begin.valid()) continue;
      std::vector<uint32_t>& equal = known[tokens_[i]];
      if (std::any_of(equal.begin(), equal.end(), [&](uint32_t other) {
            return std::equal(segment.launches.begin(), segment.launches.end(),
                              out_.segments[other].launches.begin(), SameTags);
          }))
        continue;
      equal.push_back(i);
      for (uint32_t k = 0; k < tokens_[i].size(); ++k) {
        eager_->tokens.push_back(tokens_[i][k]);
        eager_->families.push_back(families_[i][k]);
        eager_->segment.push_back(i);
        eager_->position.push_back(k);
      }
    }
    return *eager_;
  }

  // Whether two launches are told apart by nothing but their time.
  static bool SameTags(const Tags& a, const Tags& b) {
    return std::tie(a.op, a.op_path, a.module, a.line, a.ranges, a.dims,
                    a.types, a.layer) == std::tie(b.op, b.op_path, b.module,
                                                  b.line, b.ranges, b.dims,
                                                  b.types, b.layer);
  }

  size_t Facts(const std::vector<Match>& matches) const {
    return static_cast<size_t>(
        std::count_if(matches.begin(), matches.end(), [](const Match& match) {
          return ConfidenceOf(match.level) == Confidence::kFact;
        }));
  }

  // Replays of one step read along an eager trace, which may hold what they
  // repeat once, several times, or among other work. Taken where it states more
  // as fact than the segments as wholes do.
  void ReadAlong(std::span<const uint32_t> replays) {
    const Eager& eager = EagerLaunches();
    if (eager.tokens.empty()) return;
    std::vector<uint32_t> templates;
    bool complete = true;
    for (const uint32_t r : replays) {
      const std::vector<Match>& matches = out_.MatchesOf(out_.replays[r]);
      complete = complete && Facts(matches) == matches.size();
      templates.push_back(template_of_[r]);
    }
    if (complete) return;
    size_t length = 0;
    for (const uint32_t t : templates) length += templates_[t].tokens.size();
    if (!FitsStretches(eager.tokens.size(), length)) {
      if (replays.size() == 1) return;
      for (size_t i = 0; i < replays.size(); ++i)
        ReadAlong(replays.subspan(i, 1));
      return;
    }
    const auto [it, is_new] = read_.try_emplace(templates);
    if (is_new) it->second = Read(eager, templates);
    for (size_t i = 0; i < replays.size(); ++i) {
      const auto& [segment, alignment] = it->second[i];
      Replay& replay = out_.replays[replays[i]];
      if (segment < 0 || Facts(out_.alignments[alignment]) <=
                             Facts(out_.alignments[replay.alignment]))
        continue;
      replay.segment = segment;
      replay.alignment = alignment;
    }
  }

  // Segment (-1: none) and alignment of each.
  std::vector<std::pair<int32_t, uint32_t>> Read(
      const Eager& eager, const std::vector<uint32_t>& templates) {
    std::vector<uint32_t> tokens, begins, launch_of;
    for (uint32_t i = 0; i < templates.size(); ++i) {
      const auto& own = templates_[templates[i]].tokens;
      begins.push_back(static_cast<uint32_t>(tokens.size()));
      tokens.insert(tokens.end(), own.begin(), own.end());
      launch_of.insert(launch_of.end(), own.size(), i);
    }
    const std::vector<Stretch> stretches =
        FindStretches(eager.tokens, tokens, begins);
    // Stretches with the same contents: as many as there are places, in turn.
    std::map<uint32_t, std::vector<uint32_t>> places;  // by stretch
    std::map<std::vector<uint32_t>, uint32_t> equal;   // stretches by places
    for (uint32_t s = 0; s < stretches.size(); ++s) {
      const Piece& whole = stretches[s].whole;
      places[s] =
          Occurrences(eager.tokens, whole.capture_begin, whole.capture_end);
      ++equal[places[s]];
    }
    std::vector<std::vector<Match>> matches(templates.size());
    std::vector<std::map<uint32_t, size_t>> segments(templates.size());
    for (uint32_t i = 0; i < templates.size(); ++i)
      matches[i].resize(templates_[templates[i]].tokens.size());
    std::map<std::vector<uint32_t>, uint32_t> turn;
    for (uint32_t s = 0; s < stretches.size(); ++s) {
      const Stretch& stretch = stretches[s];
      const std::vector<uint32_t>& at = places[s];
      const bool alike = EqualTags(eager, stretch.whole, at);
      const bool in_turn = !alike && equal[at] % at.size() == 0;
      const uint32_t shift =
          in_turn ? at[turn[at]++ % at.size()] - stretch.whole.capture_begin
                  : 0;
      for (Piece piece : stretch.pieces) {
        piece.capture_begin += shift;
        piece.capture_end += shift;
        const uint32_t launch = launch_of[piece.replay_begin];
        const Template& own = templates_[templates[launch]];
        const uint32_t begin = piece.replay_begin - begins[launch];
        const uint32_t size = piece.replay_end - piece.replay_begin;
        const uint32_t width = piece.capture_end - piece.capture_begin;
        const std::vector<Match> found = Align(
            {std::span(eager.tokens).subspan(piece.capture_begin, width),
             std::span(eager.families).subspan(piece.capture_begin, width),
             {}},
            {std::span(own.tokens).subspan(begin, size),
             std::span(own.families).subspan(begin, size),
             std::span(own.streams).subspan(begin, size)});
        for (uint32_t k = 0; k < size; ++k) {
          Match match = found[k];
          for (uint32_t* place : {&match.partner, &match.before, &match.after})
            if (*place != Match::kNoPartner) *place += piece.capture_begin;
          if (match.partner != Match::kNoPartner)
            ++segments[launch][eager.segment[match.partner]];
          if (!alike && !in_turn &&
              ConfidenceOf(match.level) == Confidence::kFact) {
            match.level = Level::kLcs;
            match.alternatives = static_cast<uint32_t>(at.size());
          }
          matches[launch][begin + k] = match;
        }
      }
    }
    std::vector<std::pair<int32_t, uint32_t>> out;
    for (uint32_t i = 0; i < templates.size(); ++i) {
      out.emplace_back(-1, 0);
      if (segments[i].empty()) continue;
      // A replay belongs to one segment: the one with most of its kernels.
      const uint32_t segment =
          std::max_element(
              segments[i].begin(), segments[i].end(),
              [](const auto& a, const auto& b) { return a.second < b.second; })
              ->first;
      for (Match& match : matches[i]) {
        for (uint32_t* place : {&match.partner, &match.before, &match.after}) {
          if (*place == Match::kNoPartner) continue;
          if (eager.segment[*place] != segment) {
            match = Match();
            break;
          }
        }
        for (uint32_t* place : {&match.partner, &match.before, &match.after})
          if (*place != Match::kNoPartner) *place = eager.position[*place];
      }
      ListByName(templates_[templates[i]].tokens, matches[i]);
      out.back() = {static_cast<int32_t>(segment),
                    static_cast<uint32_t>(out_.alignments.size())};
      out_.alignments.push_back(std::move(matches[i]));
    }
    return out;
  }

  // Whether it is all the same which of the places a stretch repeats.
  bool EqualTags(const Eager& eager, const Piece& whole,
                 const std::vector<uint32_t>& places) const {
    const auto tags = [&](uint32_t place) -> const Tags& {
      return out_.segments[eager.segment[place]]
          .launches[eager.position[place]];
    };
    for (const uint32_t place : places) {
      for (uint32_t k = 0; k < whole.capture_end - whole.capture_begin; ++k) {
        if (!SameTags(tags(whole.capture_begin + k), tags(place + k)))
          return false;
      }
    }
    return true;
  }

  uint32_t Cost(uint32_t of_template, uint32_t segment) {
    const auto [it, is_new] =
        costs_.try_emplace(std::pair(of_template, segment));
    if (!is_new) return it->second;
    const std::vector<uint32_t>& tokens = templates_[of_template].tokens;
    const size_t launches = tokens_[segment].size();
    if (out_.segments[segment].names) {
      it->second = Distance(tokens_[segment], tokens);
    } else {
      it->second = static_cast<uint32_t>(std::max(launches, tokens.size()) -
                                         std::min(launches, tokens.size()));
    }
    return it->second;
  }

  void MatchTo(Replay& replay, uint32_t of_template, uint32_t segment) {
    const auto [it, is_new] =
        aligned_.try_emplace(std::pair(of_template, segment));
    if (is_new) {
      const Template& own = templates_[of_template];
      it->second = static_cast<uint32_t>(out_.alignments.size());
      auto matches = AlignTo(segment, own);
      if (!Explains(matches)) matches.assign(own.tokens.size(), {});
      ListByName(own.tokens, matches);
      out_.alignments.push_back(std::move(matches));
    }
    replay.alignment = it->second;
    const std::vector<Match>& matches = out_.alignments[it->second];
    if (std::any_of(matches.begin(), matches.end(), [](const Match& match) {
          return match.partner != Match::kNoPartner;
        }))
      replay.segment = static_cast<int32_t>(segment);
  }

  // A few names in common are no match: what stands between them would be
  // guessed from nothing. Nor are names that fit in many ways.
  static bool Explains(const std::vector<Match>& matches) {
    size_t anchors = 0;
    size_t facts = 0;
    for (const Match& match : matches) {
      anchors +=
          match.partner != Match::kNoPartner && match.level != Level::kFamily;
      facts += ConfidenceOf(match.level) == Confidence::kFact;
    }
    if (anchors * 2 < matches.size() && facts * 2 < anchors) return false;
    return anchors * kLeastExplained >= matches.size();
  }

  // What is left is listed by name, if any launch has it.
  void ListByName(const std::vector<uint32_t>& tokens,
                  std::vector<Match>& matches) {
    if (known_.empty()) {
      for (size_t i = 0; i < tokens_.size(); ++i) {
        if (out_.segments[i].names)
          known_.insert(tokens_[i].begin(), tokens_[i].end());
      }
      known_.insert(UINT32_MAX);  // not empty
    }
    for (size_t i = 0; i < matches.size(); ++i) {
      if (matches[i].level == Level::kNone && known_.contains(tokens[i]))
        matches[i].level = Level::kAmbiguous;
    }
  }

  std::vector<Match> AlignTo(uint32_t segment, const Template& own) {
    if (out_.segments[segment].names)
      return Align({tokens_[segment], families_[segment], {}},
                   {own.tokens, own.families, own.streams});
    const size_t launches = tokens_[segment].size();
    if (own.tokens.size() != launches) {
      // A replay that the recording cut, by way of a whole one of the same
      // graph, whose kernels have names.
      const Template* const whole = Whole(own, launches);
      return whole == nullptr ? std::vector<Match>(own.tokens.size())
                              : Through(segment, *whole, Between(*whole, own));
    }
    std::vector<Match> matches = ByPlace(segment, own);
    // As many kernels as launches, but one lost and another added: more replays
    // of the graph have them in another order. What is read by way of these is
    // no fact.
    const Template* const usual = own.by_node ? nullptr : Usual(own);
    if (usual == nullptr) return matches;
    std::vector<Match> to_usual = Between(*usual, own);
    if (!InOtherOrder(to_usual)) return matches;
    matches = Through(segment, *usual, std::move(to_usual));
    for (Match& match : matches) {
      if (match.partner != Match::kNoPartner)
        match.level = std::max(match.level, Level::kLcs);
    }
    return matches;
  }

  // The capture knows no names of kernels: its order is taken, where the kinds
  // of work agree.
  std::vector<Match> ByPlace(uint32_t segment, const Template& own) {
    std::vector<Match> matches(own.tokens.size());
    size_t odd = 0;
    for (size_t i = 0; i < own.tokens.size(); ++i) {
      const uint8_t expected = families_[segment][i];
      odd += Telling(expected) && Telling(own.families[i]) &&
             expected != own.families[i];
    }
    const bool several =
        std::any_of(own.streams.begin(), own.streams.end(),
                    [&](uint32_t s) { return s != own.streams[0]; });
    if (odd * 20 > own.tokens.size() && (own.by_node || !several))
      return matches;
    if (several && !own.by_node) return ByStream(segment, own);
    for (uint32_t i = 0; i < matches.size(); ++i)
      matches[i] = {i, Level::kExact};
    return matches;
  }

  // The replay with as many kernels as launches that has most of a cut one's.
  const Template* Whole(const Template& own, size_t launches) const {
    const Template* nearest = nullptr;
    uint32_t least = UINT32_MAX;
    for (const Template& other : templates_) {
      if (other.tokens.size() != launches) continue;
      const uint32_t distance = SortedDistance(other.sorted, own.sorted);
      if (distance < least) {
        least = distance;
        nearest = &other;
      }
    }
    return nearest;
  }

  // What most replays of the same graph look like, nearly as this one does;
  // null where none is seen more often.
  const Template* Usual(const Template& own) const {
    const Template* usual = nullptr;
    const size_t most = std::max<size_t>(2, own.tokens.size() / 10);
    for (const Template& other : templates_) {
      if (other.replays <= own.replays || other.graph_id != own.graph_id ||
          other.tokens.size() != own.tokens.size() ||
          (usual != nullptr && other.replays <= usual->replays) ||
          other.tokens == own.tokens ||
          SortedDistance(other.sorted, own.sorted) > most)
        continue;
      usual = &other;
    }
    return usual;
  }

  // Whether names that are sure of their partners stand at other places.
  static bool InOtherOrder(const std::vector<Match>& matches) {
    for (uint32_t i = 0; i < matches.size(); ++i) {
      if (ConfidenceOf(matches[i].level) == Confidence::kFact &&
          matches[i].partner != i)
        return true;
    }
    return false;
  }

  static std::vector<Match> Between(const Template& whole,
                                    const Template& own) {
    return Align({whole.tokens, whole.families, {}},
                 {own.tokens, own.families, own.streams});
  }

  // What is matched to a whole replay, to the segment of that.
  std::vector<Match> Through(uint32_t segment, const Template& whole,
                             std::vector<Match> matches) {
    const std::vector<Match> to_segment = ByPlace(segment, whole);
    for (Match& match : matches) {
      const auto through = [&](uint32_t& place) {
        if (place == Match::kNoPartner) return true;
        const Match& next = to_segment[place];
        place = next.partner;
        match.level = std::max(match.level, next.level);
        return place != Match::kNoPartner;
      };
      if (!through(match.partner) || !through(match.before) ||
          !through(match.after))
        match = Match();
    }
    return matches;
  }

  // Families whose kernels do not serve each other's ops.
  bool Telling(uint8_t family) const {
    const std::string& name = context_.catalog.family(family).name;
    return name == "gemm" || name == "conv" || name == "attention" ||
           name == "norm" || name == "softmax";
  }

  // Without names and with several streams only the kinds of work can tell
  // which launch went where.
  std::vector<Match> ByStream(uint32_t segment, const Template& own) {
    std::vector<uint32_t> a(families_[segment].begin(),
                            families_[segment].end());
    std::vector<uint32_t> b(own.families.begin(), own.families.end());
    return Align({a, families_[segment], {}}, {b, own.families, own.streams});
  }

  uint32_t TokenId(SliceId s) {
    const StringId name = trace_.slices.name[s.value];
    const auto [it, is_new] = token_of_.try_emplace(name.value, 0);
    if (is_new) it->second = pool_.Intern(TokenOfWork(trace_, s)).value;
    return it->second;
  }

  const Context& context_;
  const trace::Trace& trace_;
  AnnotateOptions options_;
  Annotation out_;
  StringPool pool_;
  std::vector<std::vector<uint32_t>> tokens_;         // by segment
  std::vector<std::vector<uint8_t>> families_;        // by segment
  absl::flat_hash_map<uint32_t, uint32_t> token_of_;  // by name
  std::vector<Template> templates_;
  std::map<
      std::tuple<std::vector<uint32_t>, std::vector<uint32_t>, bool, int64_t>,
      uint32_t>
      template_ids_;                   // by all that tells templates apart
  std::vector<uint32_t> template_of_;  // by replay
  // By template and segment.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> costs_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> aligned_;
  absl::flat_hash_set<uint32_t> known_;  // tokens of all segments
  std::optional<Eager> eager_;
  // By templates of a step: what ReadAlong found.
  std::map<std::vector<uint32_t>, std::vector<std::pair<int32_t, uint32_t>>>
      read_;
};

}  // namespace

Annotation Annotate(const Context& replay, std::vector<Segment> segments,
                    const AnnotateOptions& options) {
  return Annotator(replay, std::move(segments), options).Run();
}

}  // namespace lamina::cudagraph
