// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/segment_owner.h"

#include <fmt/core.h>

#include "trace/categories.h"

namespace lamina::analysis::path {

Segment OwnSegment(const Graph& joined, uint32_t part, const Graph& own,
                   Segment s) {
  const uint32_t v = joined.OwnNode(part, s.node);
  const auto time = [&](int64_t shared) {
    if (v == kNoNode) return shared;
    // Clocks drift: where a node is known, its own time is exact.
    if (own.chain(v) != EdgeKind::kNone && shared == joined.time(s.node - 1))
      return own.time(v - 1);
    return own.time(v) - (joined.time(s.node) - shared);
  };
  const int64_t start = time(s.start_ns), end = time(s.end_ns);
  s.start_ns = start;
  s.end_ns = end;
  s.node = v;
  return s;
}

SegmentOwners::SegmentOwners(const Graph& graph, const host::WorkLayers* layers)
    : graph_(graph),
      model_(graph.model()),
      trace_(model_.trace()),
      layers_(layers),
      modules_(model_.context().modules.PathTexts()) {
  for (const trace::Stream& stream : trace_.streams) {
    std::string text;
    if (stream.device != trace::kNoInt)
      text = fmt::format("device {}", stream.device);
    if (stream.stream != trace::kNoInt) {
      text +=
          fmt::format("{}stream {}", text.empty() ? "" : " ", stream.stream);
    }
    tracks_.push_back(std::move(text));
  }
}

NodeId SegmentOwners::NodeOf(SliceId owner) const {
  if (!owner.valid()) return {};
  const trace::Kind kind = trace_.KindOf(owner);
  if (trace::IsDevice(kind)) return model_.context().device.launcher(owner);
  return trace::IsHostTree(kind) ? model_.context().tree.node(owner) : NodeId();
}

std::optional<std::string_view> SegmentOwners::Op(SliceId owner) const {
  NodeId node = NodeOf(owner);
  const tree::Tree& tree = model_.context().tree;
  if (owner.valid() && !trace::IsDevice(trace_.KindOf(owner)))
    node = tree.EnclosingOp(node);
  if (!node.valid()) return std::nullopt;
  return tree.name(node);
}

std::optional<std::string_view> SegmentOwners::Module(SliceId owner) const {
  const NodeId node = NodeOf(owner);
  if (!node.valid()) return std::nullopt;
  const auto found = model_.context().modules.OwnerOf(node);
  if (!found.path.valid()) return std::nullopt;
  return modules_[found.path.value];
}

OwnerFacts SegmentOwners::Of(const Segment& s) const {
  OwnerFacts out;
  const tree::Steps& steps = model_.context().steps;
  uint32_t step = tree::Steps::kOutside;
  if (s.owner.valid()) {
    out.uid = trace_.EventOf(s.owner);
    out.name = trace_.Name(s.owner);
    out.op = Op(s.owner);
    out.module = Module(s.owner);
  }
  if (s.owner.valid() && trace::IsDevice(trace_.KindOf(s.owner))) {
    const uint32_t own = model_.stream(s.owner);
    const trace::Stream& stream = trace_.streams[own];
    out.track = tracks_[own];
    if (stream.device != trace::kNoInt) out.device = stream.device;
    if (stream.stream != trace::kNoInt) out.stream = stream.stream;
    step = steps.StepOf(s.owner);
    if (layers_ != nullptr)
      out.layer = layers_->Of(trace_.slices.detail[s.owner.value]);
  } else if (s.node < graph_.thread_begin().back()) {
    const host::Thread& thread = model_.threads()[graph_.thread(s.node)];
    const trace::Track& track = trace_.tracks[thread.track.value];
    out.thread =
        trace_.Text(track.thread_name.valid() ? track.thread_name : track.tid);
    out.track = *out.thread;
    step = steps.StepAt(s.start_ns);
  }
  out.step = steps.NumberOf(step);
  return out;
}

}  // namespace lamina::analysis::path
