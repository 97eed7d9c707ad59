// SPDX-License-Identifier: Apache-2.0

#include "compare/cudagraph/attribution.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <string>
#include <tuple>

#include "analysis/common/device_fold.h"
#include "compare/cudagraph/names.h"
#include "table/row_columns.h"
#include "trace/graft.h"
#include "tree/modules.h"

namespace lamina::cudagraph {

namespace {

using trace::SliceId;

struct AttributionRow {
  uint32_t replay;
  size_t position;
  std::string_view level, confidence;
  uint32_t alternatives;
  std::string other_ops;
  std::string_view op, module, line, capture;
  std::optional<uint32_t> segment, launch;
  int64_t kernels, kernel_time;
};

const RowColumns<AttributionRow>& AttributionColumns() {
  static const RowColumns<AttributionRow> columns{
      "graph_attribution",
      "Replayed kernels by what they were captured from; replays with the "
      "same kernels share a row.",
      {{"replay", ColumnType::kInt, "The first with these kernels.",
        &AttributionRow::replay},
       {"position", ColumnType::kInt, "In the replay.",
        &AttributionRow::position},
       {"level", ColumnType::kText, "Level of evidence.",
        &AttributionRow::level},
       {"confidence", ColumnType::kText, "fact, likely, partial, list or none.",
        &AttributionRow::confidence},
       {"alternatives", ColumnType::kInt,
        "Captured launches that fit equally well.",
        &AttributionRow::alternatives},
       {"other_ops", ColumnType::kText,
        "Ops of the captured launches of this name, where several fit.",
        &AttributionRow::other_ops},
       {"op", ColumnType::kText, "Innermost op of the launch.",
        &AttributionRow::op},
       {"module", ColumnType::kText, "Path of its module.",
        &AttributionRow::module},
       {"line", ColumnType::kText, "Its source line.", &AttributionRow::line,
        Shown::kHidden},
       {"capture", ColumnType::kText,
        "Trace of the capture; empty: this trace, or none fits.",
        &AttributionRow::capture},
       {"segment", ColumnType::kInt, "Captured graph in that trace.",
        &AttributionRow::segment},
       {"launch", ColumnType::kInt,
        "Position of the captured launch in its graph.",
        &AttributionRow::launch},
       {"kernels", ColumnType::kInt, "Device events.",
        &AttributionRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &AttributionRow::kernel_time}}};
  return columns;
}

// Distinct ops of the launches with this name, in their order.
std::vector<std::string> OpsOf(const Segment& segment,
                               const std::string& token) {
  std::vector<std::string> ops;
  for (const Tags& tags : segment.launches) {
    if (tags.name != token || tags.op.empty()) continue;
    if (std::find(ops.begin(), ops.end(), tags.op) == ops.end())
      ops.push_back(tags.op);
    if (ops.size() == Annotation::kMaxListed) break;
  }
  return ops;
}

std::vector<std::string> OtherOps(const trace::Trace& trace,
                                  const Annotation& annotation,
                                  const Replay& replay, size_t position) {
  const Match& match = annotation.MatchesOf(replay)[position];
  const SliceId kernel = replay.work[position];
  if (match.level == Level::kAmbiguous)
    return annotation.OpsByName(trace, kernel);
  if (match.alternatives <= 1 || replay.segment < 0) return {};
  return OpsOf(annotation.segments[static_cast<size_t>(replay.segment)],
               TokenOfWork(trace, kernel));
}

}  // namespace

Attribution AttributionOf(const trace::Trace& trace,
                          const Annotation& annotation,
                          const std::vector<std::string>& files) {
  // By alignment, segment and position.
  using Key = std::tuple<uint32_t, int32_t, size_t>;
  struct Place {
    const Replay* replay;
    size_t position;
  };
  analysis::DeviceFold<Key, Place> fold(trace);
  for (const Replay& replay : annotation.replays) {
    for (size_t i = 0; i < replay.work.size(); ++i) {
      fold.Add(replay.work[i], Key(replay.alignment, replay.segment, i),
               {&replay, i});
    }
  }
  Attribution result{Table(AttributionColumns().schema()), {}};
  for (const auto& [place, kernels, ns] : fold.rows()) {
    const auto& [replay, position] = place;
    const Match& match = annotation.MatchesOf(*replay)[position];
    const Tags tags = annotation.TagsOf(*replay, position);
    const Segment* segment =
        replay->segment >= 0
            ? &annotation.segments[static_cast<size_t>(replay->segment)]
            : nullptr;
    const bool elsewhere =
        segment != nullptr && segment->file != Segment::kOwnTrace;
    AttributionColumns().Add(
        result.table,
        {.replay = replay->number,
         .position = position,
         .level = LevelName(match.level),
         .confidence = ConfidenceName(ConfidenceOf(match.level)),
         .alternatives = match.alternatives,
         .other_ops = fmt::format(
             "{}",
             fmt::join(OtherOps(trace, annotation, *replay, position), ", ")),
         .op = tags.op,
         .module = tags.module,
         .line = tags.line,
         .capture = elsewhere ? std::string_view(files[segment->file])
                              : std::string_view(),
         .segment =
             segment != nullptr ? std::optional(segment->number) : std::nullopt,
         .launch = match.partner != Match::kNoPartner
                       ? std::optional(match.partner)
                       : std::nullopt,
         .kernels = kernels,
         .kernel_time = ns});
  }
  result.row_of = fold.TakeRowOf();
  return result;
}

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
