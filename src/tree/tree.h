// SPDX-License-Identifier: Apache-2.0
//
// The linked model of a trace: the host call tree of every thread, and under
// each API call the device work that it launched.
//
// Nodes are numbered in preorder, thread after thread, so that the subtree of
// a node is the range [node, end(node)) and everything below it, device work
// included, is one contiguous slice of an array: sums over a subtree are two
// look-ups in a prefix sum, lists of its kernels are spans.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/pod_vector.h"
#include "trace/trace.h"

namespace lamina::tree {

using trace::SliceId;
using trace::Trace;

struct NodeTag;
using NodeId = Id<NodeTag>;

// How launches are joined to device work.
enum class LinkMode : uint8_t {
  kAuto,  // by correlation, whatever else the file lacks
  kFlow,  // as TraceLens: only what an ac2g flow joins, and graph launches
};

struct Options {
  bool python_stacks = false;  // Python frames are nodes too
  LinkMode link = LinkMode::kAuto;
  int threads = 1;
};

// Why a device slice has no launch.
enum class Unlinked : uint8_t {
  kLinked,
  kNoKey,            // it carries neither correlation nor External id
  kLaunchNotInFile,  // launched before the recording began, or call not traced
  kNoFlow,           // flow mode: the flow is missing
  kNoHost,           // the file has no host events at all
  kAmbiguous,        // several launches carry its id, not as many as kernels
};
inline constexpr int kUnlinkedReasons = 6;
std::string_view UnlinkedName(Unlinked reason);

class Tree {
 public:
  // Near-linear in the number of slices.
  static Tree Build(const Trace& trace, const Options& options);

  const Trace& trace() const { return *trace_; }
  const Options& options() const { return options_; }
  size_t size() const { return slices_.size(); }

  // --- the host tree ---
  SliceId slice(NodeId n) const { return slices_[n.value]; }
  // Invalid for slices that are not in the tree.
  NodeId node(SliceId s) const { return node_of_[s.value]; }
  NodeId parent(NodeId n) const { return parents_[n.value]; }
  NodeId end(NodeId n) const { return ends_[n.value]; }
  bool leaf(NodeId n) const { return ends_[n.value].value == n.value + 1; }
  NodeId first_child(NodeId n) const {
    return leaf(n) ? NodeId() : NodeId(n.value + 1);
  }
  // The next child of the same parent (or the next root of the thread).
  NodeId next_sibling(NodeId n) const {
    const NodeId next = ends_[n.value];
    return next.value < size() && parents_[next.value] == parents_[n.value] &&
                   (parents_[n.value].valid() || SameThread(n, next))
               ? next
               : NodeId();
  }
  trace::Kind kind(NodeId n) const { return trace_->KindOf(slice(n)); }
  std::string_view name(NodeId n) const { return trace_->Name(slice(n)); }
  bool IsOp(NodeId n) const { return kind(n) == trace::Kind::kOp; }
  // The nearest op at or above `n`; invalid if none.
  NodeId EnclosingOp(NodeId n) const;
  // Roots of all threads.
  std::span<const NodeId> roots() const { return roots_; }

  // --- device work ---
  // Everything launched inside `n`, ordered by (launch, start).
  std::span<const SliceId> DeviceWork(NodeId n) const {
    return {launched_.data() + device_begin_[n.value],
            launched_.data() + device_begin_[ends_[n.value].value]};
  }
  // What the call `n` launched itself.
  std::span<const SliceId> OwnDeviceWork(NodeId n) const {
    return {launched_.data() + device_begin_[n.value],
            launched_.data() + device_begin_[n.value + 1]};
  }
  bool HasDeviceWork(NodeId n) const {
    return device_begin_[n.value] != device_begin_[ends_[n.value].value];
  }
  // Sum of the durations of DeviceWork(n).
  int64_t DeviceTime(NodeId n) const {
    return launched_time_[device_begin_[ends_[n.value].value]] -
           launched_time_[device_begin_[n.value]];
  }
  // The node that launched a device slice: an API call, or an op where the
  // file knows no call. Invalid if unlinked.
  NodeId launch(SliceId device) const {
    return launch_of_[trace_->slices.detail[device.value]];
  }
  Unlinked unlinked(SliceId device) const {
    return unlinked_[trace_->slices.detail[device.value]];
  }
  // Linked device slices, ordered by (launch node, start, uid).
  std::span<const SliceId> launched() const { return launched_; }

  // --- autograd ---
  // The forward op of a backward op and the other way round; invalid if none.
  NodeId forward(NodeId backward) const;
  NodeId backward(NodeId forward) const;

  // Events that end after the one in which they begin, by 1 us or more.
  size_t hanging() const { return hanging_; }
  // Of LinkMode::kFlow: those that were left out for it.
  size_t dropped_by_overlap() const { return dropped_; }
  // Device slices whose id stands on several launches, repaired by order or
  // left unlinked.
  size_t ambiguous() const { return ambiguous_; }
  // Events whose parent was closed a little early (under 1 us of overlap).
  size_t popped_by_overlap() const { return popped_; }

 private:
  friend class Linker;
  bool SameThread(NodeId a, NodeId b) const {
    return trace_->slices.track[slice(a).value] ==
           trace_->slices.track[slice(b).value];
  }
  void BuildHost();
  void LinkAutograd();

  const Trace* trace_ = nullptr;
  Options options_;
  PodVector<SliceId> slices_;
  PodVector<NodeId> node_of_;
  PodVector<NodeId> parents_;
  PodVector<NodeId> ends_;
  std::vector<NodeId> roots_;
  std::vector<SliceId> launched_;
  std::vector<int64_t> launched_time_;  // prefix sums over launched_
  PodVector<uint32_t> device_begin_;    // size() + 1 entries
  std::vector<NodeId> launch_of_;       // by device argument row
  std::vector<Unlinked> unlinked_;      // by device argument row
  std::vector<std::pair<NodeId, NodeId>> backward_of_;  // sorted by first
  std::vector<std::pair<NodeId, NodeId>> forward_of_;   // sorted by first
  size_t dropped_ = 0;
  size_t popped_ = 0;
  size_t hanging_ = 0;
  size_t ambiguous_ = 0;
};

}  // namespace lamina::tree
