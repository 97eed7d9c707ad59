// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/merge.h"

#include <algorithm>

#include "compare/cudagraph/calls.h"
#include "trace/graft.h"
#include "tree/modules.h"

namespace lamina::cudagraph {
namespace {

using trace::SliceId;
using tree::NodeId;

class Merger {
 public:
  Merger(trace::Trace& replay, const Annotation& annotation,
         std::span<const analysis::Context* const> captures, bool python_frames)
      : annotation_(annotation),
        captures_(captures),
        python_frames_(python_frames),
        grafter_(replay) {}

  void Run() {
    // File by file, since ids are mapped from one trace at a time.
    std::vector<const Replay*> order;
    for (const Replay& replay : annotation_.replays) {
      if (replay.segment >= 0 && SegmentOf(replay).file != Segment::kOwnTrace)
        order.push_back(&replay);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Replay* a, const Replay* b) {
                       return SegmentOf(*a).file < SegmentOf(*b).file;
                     });
    for (const Replay* replay : order) {
      const Segment& segment = SegmentOf(*replay);
      if (captures_[segment.file] != context_) {
        context_ = captures_[segment.file];
        grafter_.From(context_->trace);
      }
      Graft(*replay, segment);
    }
  }

 private:
  const Segment& SegmentOf(const Replay& replay) const {
    return annotation_.segments[static_cast<size_t>(replay.segment)];
  }

  static bool Joined(const Match& match) {
    const Confidence confidence = ConfidenceOf(match.level);
    return match.partner != Match::kNoPartner &&
           (confidence == Confidence::kFact ||
            confidence == Confidence::kLikely);
  }

  bool Kept(NodeId node) const {
    const tree::Tree& tree = context_->tree;
    const trace::Kind kind = tree.kind(node);
    if (kind == trace::Kind::kOp) return true;
    if (trace::IsApiCall(kind)) return IsLaunch(tree.name(node));
    return python_frames_ || tree.name(node).starts_with(tree::kModulePrefix);
  }

  // Nodes to copy, in preorder. Of a capture all that lies between its two
  // calls, also what launched nothing; of an eager trace what leads to the
  // launches that were replayed, since a graph may be a part of its step only.
  std::vector<NodeId> NodesOf(const Replay& replay,
                              const Segment& segment) const {
    const tree::Tree& tree = context_->tree;
    std::vector<NodeId> nodes;
    if (segment.begin.valid()) {
      for (NodeId n = segment.begin; n < segment.end; ++n.value) {
        if (tree.end(n) <= segment.end && Kept(n)) nodes.push_back(n);
      }
      return nodes;
    }
    for (const Match& match : annotation_.MatchesOf(replay)) {
      if (!Joined(match)) continue;
      for (NodeId n = segment.calls[match.partner]; n.valid();
           n = tree.parent(n)) {
        if (context_->trace.Start(tree.slice(n)) < segment.begin_ns) break;
        if (Kept(n)) nodes.push_back(n);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  void Graft(const Replay& replay, const Segment& segment) {
    const tree::Tree& tree = context_->tree;
    const std::vector<NodeId> nodes = NodesOf(replay, segment);
    if (!grafter_.HasRoom(nodes.size())) return;
    std::vector<SliceId> copies(nodes.size());
    // The copied nodes that are open, as positions in `nodes`.
    std::vector<size_t> open;
    for (size_t i = 0; i < nodes.size(); ++i) {
      while (!open.empty() && tree.end(nodes[open.back()]) <= nodes[i])
        open.pop_back();
      copies[i] = grafter_.Add(tree.slice(nodes[i]), replay.launch,
                               open.empty() ? SliceId() : copies[open.back()]);
      open.push_back(i);
    }
    const std::vector<Match>& matches = annotation_.MatchesOf(replay);
    for (size_t i = 0; i < matches.size(); ++i) {
      const Match& match = matches[i];
      if (!Joined(match)) continue;
      const NodeId call = segment.calls[match.partner];
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), call);
      if (at == nodes.end() || *at != call) continue;
      grafter_.Link(replay.work[i],
                    copies[static_cast<size_t>(at - nodes.begin())],
                    ConfidenceOf(match.level) == Confidence::kFact);
    }
  }

  const Annotation& annotation_;
  std::span<const analysis::Context* const> captures_;
  bool python_frames_;
  trace::Grafter grafter_;
  const analysis::Context* context_ = nullptr;
};

}  // namespace

void MergeCaptures(trace::Trace& replay, const Annotation& annotation,
                   std::span<const analysis::Context* const> captures,
                   bool python_frames) {
  Merger(replay, annotation, captures, python_frames).Run();
}

}  // namespace lamina::cudagraph
