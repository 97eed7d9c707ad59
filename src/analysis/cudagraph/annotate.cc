// SPDX-License-Identifier: Apache-2.0
#include "analysis/cudagraph/annotate.h"

#include <algorithm>
#include <map>

#include "analysis/cudagraph/calls.h"
#include "analysis/cudagraph/node_chain.h"
#include "base/string_pool.h"

namespace lamina::cudagraph {
namespace {

using analysis::Context;
using trace::SliceId;
using tree::NodeId;

// The longest common start of two paths, cut at a separator.
std::string Common(const std::string& a, const std::string& b,
                   std::string_view separator) {
  size_t end = 0;
  for (size_t pos = 0;;) {
    const size_t x = std::min(a.find(separator, pos), a.size());
    const size_t y = std::min(b.find(separator, pos), b.size());
    if (x != y || a.compare(pos, x - pos, b, pos, y - pos) != 0) break;
    end = x;
    if (x == a.size() || y == b.size()) break;
    pos = x + separator.size();
  }
  return a.substr(0, end);
}

class Annotator {
 public:
  Annotator(const Context& context, std::vector<Segment> segments)
      : context_(context), trace_(context.trace) {
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
    Group();
    NodeChain chain(trace_);
    for (Replay& replay : out_.replays) {
      if (!chain.Apply(replay, out_.segments)) Choose(replay);
    }
    out_.templates = templates_.size();
    return std::move(out_);
  }

 private:
  uint8_t FamilyOf(const Tags& tags) const {
    const std::string_view by_op = context_.catalog.OpFamily(tags.op);
    return static_cast<uint8_t>(context_.catalog.FamilyIndex(
        by_op.empty() ? context_.catalog.KernelFamily(tags.name) : by_op));
  }

  // Device work by the graph launch that it belongs to.
  void Group() {
    std::map<uint32_t, uint32_t> by_launch;  // node -> replay
    for (const SliceId s : trace_.device_slices()) {
      const NodeId launch = context_.tree.launch(s);
      if (!launch.valid() || !IsGraphLaunch(context_.tree.name(launch)))
        continue;
      const auto [it, is_new] = by_launch.try_emplace(
          launch.value, static_cast<uint32_t>(out_.replays.size()));
      if (is_new) {
        Replay replay;
        replay.launch = context_.tree.slice(launch);
        replay.batch =
            BatchOf(trace_.strings[context_.steps.RequestsAt(launch)]);
        out_.replays.push_back(std::move(replay));
      }
      out_.replays[it->second].work.push_back(s);
    }
    for (Replay& replay : out_.replays) {
      std::stable_sort(replay.work.begin(), replay.work.end(),
                       [&](SliceId a, SliceId b) {
                         return trace_.Start(a) != trace_.Start(b)
                                    ? trace_.Start(a) < trace_.Start(b)
                                    : a < b;
                       });
      ByNode(replay.work);
    }
    std::stable_sort(out_.replays.begin(), out_.replays.end(),
                     [&](const Replay& a, const Replay& b) {
                       return trace_.Start(a.launch) < trace_.Start(b.launch);
                     });
    std::map<uint32_t, uint32_t> in_step;
    for (uint32_t i = 0; i < out_.replays.size(); ++i) {
      Replay& replay = out_.replays[i];
      replay.number = i;
      replay.in_step =
          in_step[context_.steps.StepAt(trace_.Start(replay.launch))]++;
    }
  }

  // Nodes are numbered in the order of capture, which parallel branches do not
  // keep when they run.
  void ByNode(std::vector<SliceId>& work) {
    std::vector<std::pair<int64_t, SliceId>> nodes;
    for (const SliceId s : work) {
      const trace::DeviceArgs* args = trace_.Device(s);
      if (args == nullptr || args->graph_node_id == trace::kNoInt) return;
      nodes.emplace_back(args->graph_node_id, s);
    }
    std::stable_sort(
        nodes.begin(), nodes.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].first == nodes[i - 1].first) return;
    }
    by_node_ = true;
    for (size_t i = 0; i < nodes.size(); ++i) work[i] = nodes[i].second;
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

  void Choose(Replay& replay) {
    std::vector<uint32_t> tokens;
    std::vector<uint8_t> families;
    std::vector<uint32_t> streams;
    for (const SliceId s : replay.work) {
      const trace::Kind kind = trace_.KindOf(s);
      tokens.push_back(pool_
                           .Intern(kind == trace::Kind::kMemcpy   ? "(copy)"
                                   : kind == trace::Kind::kMemset ? "(fill)"
                                                                  : Token(s))
                           .value);
      families.push_back(static_cast<uint8_t>(context_.catalog.FamilyIndex(
          context_.catalog.KernelFamily(trace_.Name(s)))));
      const trace::DeviceArgs* args = trace_.Device(s);
      streams.push_back(args != nullptr ? args->lane.value : 0);
    }
    replay.matches.assign(tokens.size(), Match());
    const std::vector<uint32_t> eligible = Eligible(replay);
    if (eligible.empty()) return;
    // The k-th launch of a step belongs to the k-th segment, when their
    // sequences agree; else the first that is equal, else the nearest.
    const uint32_t turn = eligible[replay.in_step % eligible.size()];
    uint32_t best = turn;
    if (!Equal(turn, tokens)) {
      const auto it =
          std::find_if(eligible.begin(), eligible.end(),
                       [&](uint32_t i) { return Equal(i, tokens); });
      if (it != eligible.end()) {
        best = *it;
      } else {
        best = Nearest(eligible, tokens);
      }
    }
    replay.segment = static_cast<int32_t>(best);
    const auto key = std::pair(best, tokens);
    const auto known = templates_.find(key);
    if (known != templates_.end()) {
      replay.matches = known->second;
      return;
    }
    replay.matches = AlignTo(best, tokens, families, streams);
    templates_.emplace(key, replay.matches);
  }

  std::vector<Match> AlignTo(uint32_t segment,
                             const std::vector<uint32_t>& tokens,
                             const std::vector<uint8_t>& families,
                             const std::vector<uint32_t>& streams) {
    if (out_.segments[segment].names)
      return Align({tokens_[segment], families_[segment], {}},
                   {tokens, families, streams});
    // The capture knows no names of kernels: its order is taken when the
    // lengths agree and the kinds of work do, too.
    std::vector<Match> matches(tokens.size());
    if (tokens.size() != tokens_[segment].size()) return matches;
    size_t odd = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const uint8_t expected = families_[segment][i];
      odd +=
          Telling(expected) && Telling(families[i]) && expected != families[i];
    }
    const bool several =
        std::any_of(streams.begin(), streams.end(),
                    [&](uint32_t s) { return s != streams[0]; });
    if (odd * 20 > tokens.size() && (by_node_ || !several)) return matches;
    if (several && !by_node_)
      return ByStream(segment, tokens, families, streams);
    for (uint32_t i = 0; i < matches.size(); ++i)
      matches[i] = {i, Level::kExact};
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
  std::vector<Match> ByStream(uint32_t segment, const std::vector<uint32_t>&,
                              const std::vector<uint8_t>& families,
                              const std::vector<uint32_t>& streams) {
    std::vector<uint32_t> a(families_[segment].begin(),
                            families_[segment].end());
    std::vector<uint32_t> b(families.begin(), families.end());
    return Align({a, families_[segment], {}}, {b, families, streams});
  }

  std::string_view Token(SliceId s) {
    const StringId name = trace_.slices.name[s.value];
    auto [it, is_new] = names_.try_emplace(name.value);
    if (is_new) it->second = TokenOf(trace_.Name(s));
    return it->second;
  }

  bool Equal(uint32_t segment, const std::vector<uint32_t>& tokens) const {
    if (!out_.segments[segment].names)
      return tokens_[segment].size() == tokens.size();
    return tokens_[segment] == tokens;
  }

  // The segment that shares the most tokens.
  uint32_t Nearest(const std::vector<uint32_t>& eligible,
                   const std::vector<uint32_t>& tokens) const {
    std::vector<uint32_t> own = tokens;
    std::sort(own.begin(), own.end());
    uint32_t best = eligible[0];
    size_t most = 0;
    for (const uint32_t i : eligible) {
      std::vector<uint32_t> other = tokens_[i];
      std::sort(other.begin(), other.end());
      std::vector<uint32_t> both;
      std::set_intersection(own.begin(), own.end(), other.begin(), other.end(),
                            std::back_inserter(both));
      if (both.size() > most) {
        most = both.size();
        best = i;
      }
    }
    return best;
  }

  const Context& context_;
  const trace::Trace& trace_;
  Annotation out_;
  bool by_node_ = false;  // work is in the order of capture
  StringPool pool_;
  std::vector<std::vector<uint32_t>> tokens_;   // by segment
  std::vector<std::vector<uint8_t>> families_;  // by segment
  std::map<uint32_t, std::string> names_;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::vector<Match>>
      templates_;
};

}  // namespace

Annotation Annotate(const Context& replay, std::vector<Segment> segments) {
  return Annotator(replay, std::move(segments)).Run();
}

Tags Annotation::TagsOf(const Replay& replay, size_t position) const {
  const Match& match = replay.matches[position];
  if (replay.segment < 0) return {};
  const auto& launches = segments[static_cast<size_t>(replay.segment)].launches;
  if (match.partner != Match::kNoPartner) return launches[match.partner];
  if (match.level != Level::kScope) return {};
  const Tags& before = launches[match.before];
  const Tags& after = launches[match.after];
  Tags tags;
  tags.module = Common(before.module, after.module, "/");
  tags.layer = before.layer == after.layer ? before.layer : -1;
  return tags;
}

double Annotation::FactShare() const {
  size_t all = 0;
  size_t facts = 0;
  for (const Replay& replay : replays) {
    for (const Match& match : replay.matches) {
      ++all;
      facts += ConfidenceOf(match.level) == "fact";
    }
  }
  return all > 0 ? static_cast<double>(facts) / static_cast<double>(all) : 0;
}

}  // namespace lamina::cudagraph
