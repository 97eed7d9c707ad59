// SPDX-License-Identifier: Apache-2.0
//
// What captured or eager launches were called from.
#include <algorithm>
#include <map>
#include <re2/re2.h>

#include "analysis/common/replayed.h"
#include "base/text.h"
#include "compare/cudagraph/annotate.h"
#include "compare/cudagraph/names.h"
#include "compare/cudagraph/stretches.h"
#include "trace/categories.h"
#include "tree/modules.h"

namespace lamina::cudagraph {
namespace {

using analysis::Context;
using trace::SliceId;
using tree::NodeId;

class Collector {
 public:
  Collector(const Context& context, uint32_t file, const RE2& tags)
      : context_(context),
        trace_(context.trace),
        tree_(context.tree),
        file_(file),
        ranges_(context.trace, tags),
        layers_(context.trace, context.modules) {}

  std::vector<Segment> Run() {
    // Calls of each thread in order; nodes are in that order already.
    Segment* open = nullptr;
    uint32_t thread = UINT32_MAX;
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      if (!trace::IsApiCall(tree_.kind(node))) continue;
      const uint32_t own = trace_.slices.track[tree_.slice(node).value].value;
      if (own != thread) Close(open, node);
      thread = own;
      const std::string_view name = tree_.name(node);
      if (Contains(name, "StreamBeginCapture")) {
        Close(open, node);
        open = Add(node);
        open->begin = NodeId(n + 1);
      } else if (Contains(name, "StreamEndCapture")) {
        Close(open, node);
      } else if (open != nullptr && IsLaunch(name) && Outermost(node)) {
        open->launches.push_back(TagsOf(node, open->names));
        open->calls.push_back(node);
      }
    }
    Close(open, NodeId(static_cast<uint32_t>(tree_.size())));
    std::erase_if(segments_,
                  [](const Segment& s) { return s.launches.empty(); });
    if (segments_.empty()) Eager();
    for (uint32_t i = 0; i < segments_.size(); ++i) segments_[i].number = i;
    return std::move(segments_);
  }

 private:
  // A driver call inside a runtime call is the same launch.
  bool Outermost(NodeId node) const {
    const NodeId parent = tree_.parent(node);
    return !parent.valid() || !trace::IsApiCall(tree_.kind(parent)) ||
           !IsLaunch(tree_.name(parent));
  }

  static void Close(Segment*& open, NodeId end) {
    if (open != nullptr) open->end = end;
    open = nullptr;
  }

  Segment* Add(NodeId node) {
    Segment segment;
    segment.file = file_;
    segment.batch = BatchAround(node);
    segments_.push_back(std::move(segment));
    return &segments_.back();
  }

  int64_t BatchAround(NodeId node) const {
    int64_t batch = -1;
    for (const SliceId range : RangesOf(node)) {
      const int64_t own = BatchOf(trace_.Name(range));
      if (own >= 0) batch = own;
    }
    return batch;
  }

  // Ranges of the thread that hold the start of a node, outermost first.
  std::vector<SliceId> RangesOf(NodeId node) const {
    const SliceId slice = tree_.slice(node);
    return ranges_.At(trace_.slices.track[slice.value], trace_.Start(slice));
  }

  // Launches whose kernels are in the trace, step by step.
  void Eager() {
    std::map<uint32_t, std::vector<std::pair<int64_t, NodeId>>> steps;
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      if (tree_.OwnDeviceWork(node).empty() ||
          trace::IsGraphLaunch(tree_.name(node)))
        continue;
      const int64_t at = trace_.Start(tree_.slice(node));
      steps[context_.steps.StepAt(at)].emplace_back(at, node);
    }
    for (auto& [step, launches] : steps) {
      std::stable_sort(
          launches.begin(), launches.end(),
          [](const auto& a, const auto& b) { return a.first < b.first; });
      Segment* segment = Add(launches[0].second);
      if (step != tree::Steps::kOutside)
        segment->begin_ns = context_.steps.steps()[step].host.start_ns;
      for (const auto& [at, node] : launches) {
        for (const SliceId s : tree_.OwnDeviceWork(node)) {
          Tags tags = TagsOf(node, segment->names);
          tags.name = TokenOf(trace_.Name(s));
          segment->launches.push_back(std::move(tags));
          segment->calls.push_back(node);
        }
      }
      segment->names = true;
    }
  }

  Tags TagsOf(NodeId node, bool& names) const {
    Tags tags;
    const trace::ApiArgs* args = trace_.Api(tree_.slice(node));
    const std::string_view call = tree_.name(node);
    if (args != nullptr && args->kernel.valid()) {
      tags.name = TokenOf(trace_.strings[args->kernel]);
    } else if (Contains(call, "Memcpy") || Contains(call, "Memset")) {
      tags.name = TokenOf(call);
    } else {
      tags.name = "(kernel)";
      names = false;
    }
    for (NodeId up = tree_.parent(node); up.valid(); up = tree_.parent(up)) {
      const std::string_view name = tree_.name(up);
      if (tree_.IsOp(up)) {
        if (tags.op.empty()) {
          tags.op = name;
          tags.op_uid = trace_.Uid(tree_.slice(up));
          tags.op_path = name;
          if (const trace::OpArgs* op = trace_.Op(tree_.slice(up))) {
            if (op->dims.valid()) tags.dims = trace_.strings[op->dims];
            if (op->types.valid()) tags.types = trace_.strings[op->types];
          }
        } else {
          tags.op_path = std::string(name) + " > " + tags.op_path;
        }
      } else if (tree_.kind(up) == trace::Kind::kPython && tags.line.empty() &&
                 !IsFrameworkFrame(name)) {
        tags.line = name;
      }
    }
    const auto call_id = context_.modules.empty()
                             ? tree::ModuleCallId()
                             : context_.modules.Enclosing(node);
    if (call_id.valid()) {
      const tree::ModulePathId path = context_.modules.call(call_id).path;
      tags.module = context_.modules.PathText(path);
      tags.layer = layers_.Of(path);
    }
    for (const SliceId range : RangesOf(node)) {
      if (!ranges_.IsTag(range)) continue;
      if (!tags.ranges.empty()) tags.ranges += ", ";
      tags.ranges += trace_.Name(range);
    }
    return tags;
  }

  const Context& context_;
  const trace::Trace& trace_;
  const tree::Tree& tree_;
  uint32_t file_;
  Ranges ranges_;
  LayerNumbers layers_;
  std::vector<Segment> segments_;
};

}  // namespace

Result<std::vector<Segment>> CollectSegments(const Context& context,
                                             uint32_t file,
                                             const std::string& tags) {
  const RE2 pattern(tags, RE2::Quiet);
  if (!pattern.ok()) {
    return Fail(UsageError("⟨tags⟩: " + pattern.error(),
                           "expected a regular expression (RE2)"));
  }
  return Collector(context, file, pattern).Run();
}

}  // namespace lamina::cudagraph
