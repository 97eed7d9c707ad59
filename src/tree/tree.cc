// SPDX-License-Identifier: Apache-2.0
//
// The host tree: events of a thread nest by time. A profiler's clocks and
// roundings let events "bleed" a little over the end of their parent: an
// overlap under 1 us closes the parent early; after a longer one the event
// stands below the other if most of it lies there, else beside it. None is left
// out, but in the trees of LinkMode::kFlow, where a longer overlap drops the
// event, as TraceLens does.
#include "tree/tree.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "base/parallel.h"
#include "base/run_sort.h"
#include "trace/module_frames.h"
#include "tree/linker.h"

namespace lamina::tree {
namespace {

constexpr int64_t kBleedNs = 1000;

struct HostEvent {
  int64_t start_ns;
  uint32_t uid;
  uint32_t slice;
};

// Module frames that stand for ranges, which other tools do not see.
bool IsOwnFrame(const Trace& trace, const Options& options, uint32_t slice) {
  return options.link == LinkMode::kFlow &&
         trace::IsRangeFrame(trace, SliceId(slice));
}

bool InTree(trace::Kind kind, bool python) {
  return kind == trace::Kind::kOp || trace::IsApiCall(kind) ||
         (python && kind == trace::Kind::kPython);
}

// The captured slices below one graph launch.
struct GraftRange {
  uint32_t begin;
  uint32_t end;
};
using Grafts = absl::flat_hash_map<uint32_t, GraftRange>;  // by launch

Grafts FindGrafts(const trace::Captured& captured) {
  Grafts grafts;
  uint32_t launch = 0;
  for (size_t i = 0; i < captured.parents.size(); ++i) {
    const auto slice = captured.first + static_cast<uint32_t>(i);
    if (!captured.Has(captured.parents[i])) {
      launch = captured.parents[i].value;
      grafts.try_emplace(launch, GraftRange{slice, slice});
    }
    grafts[launch].end = slice + 1;
  }
  return grafts;
}

// One thread's part of the tree; node numbers count from 0 within it.
struct ThreadTree {
  std::vector<HostEvent> events;  // by (start, uid)
  std::vector<uint32_t> slices;   // of nodes in preorder
  std::vector<uint32_t> parents;  // NodeId::kNone for roots
  std::vector<uint32_t> ends;
  size_t dropped = 0;
  size_t popped = 0;
  size_t hanging = 0;
};

// The captured slices of a launch as nodes below it. Those that are no nodes
// (Python frames, unless asked for) leave their children to their parents.
void NestCaptured(const Trace& trace, const GraftRange& range, bool python,
                  uint32_t launch_node, ThreadTree& thread) {
  const trace::Captured& captured = trace.captured;
  std::vector<uint32_t> nearest;  // by slice: its node, or the one above
  nearest.reserve(range.end - range.begin);
  const auto first = static_cast<uint32_t>(thread.slices.size());
  for (uint32_t slice = range.begin; slice < range.end; ++slice) {
    const SliceId up = captured.Parent(SliceId(slice));
    const uint32_t parent =
        captured.Has(up) ? nearest[up.value - range.begin] : launch_node;
    if (!InTree(trace.slices.kind[slice], python)) {
      nearest.push_back(parent);
      continue;
    }
    const auto node = static_cast<uint32_t>(thread.slices.size());
    thread.slices.push_back(slice);
    thread.parents.push_back(parent);
    thread.ends.push_back(node + 1);
    nearest.push_back(node);
  }
  for (auto node = static_cast<uint32_t>(thread.slices.size());
       node-- > first;) {
    const uint32_t parent = thread.parents[node];
    if (parent != launch_node)
      thread.ends[parent] = std::max(thread.ends[parent], thread.ends[node]);
  }
}

void Nest(const Trace& trace, const Grafts& grafts, bool python,
          bool drop_overlaps, ThreadTree& thread) {
  struct Open {
    uint32_t node;
    int64_t end_ns;
  };
  std::vector<Open> stack;
  std::vector<uint32_t> outside;  // API calls that do not nest
  const auto close = [&](size_t keep) {
    const auto end = static_cast<uint32_t>(thread.slices.size());
    while (stack.size() > keep) {
      thread.ends[stack.back().node] = end;
      stack.pop_back();
    }
  };
  const auto add = [&](uint32_t slice, uint32_t parent) {
    const auto node = static_cast<uint32_t>(thread.slices.size());
    thread.slices.push_back(slice);
    thread.parents.push_back(parent);
    thread.ends.push_back(node + 1);
    if (!grafts.empty()) {
      const auto graft = grafts.find(slice);
      if (graft != grafts.end()) {
        NestCaptured(trace, graft->second, python, node, thread);
        thread.ends[node] = static_cast<uint32_t>(thread.slices.size());
      }
    }
    return node;
  };
  for (const HostEvent& event : thread.events) {
    const int64_t start = event.start_ns;
    const int64_t end = start + trace.slices.dur_ns[event.slice];
    bool drop = false;
    while (!stack.empty() && start >= stack.back().end_ns)
      close(stack.size() - 1);
    while (!stack.empty() && end > stack.back().end_ns) {
      const int64_t overlap = stack.back().end_ns - start;
      if (overlap < kBleedNs && (stack.size() >= 2 || !drop_overlaps)) {
        ++thread.popped;
        close(stack.size() - 1);
        if (drop_overlaps) break;
        continue;
      }
      if (drop_overlaps) {
        ++thread.dropped;
        if (trace::IsApiCall(trace.slices.kind[event.slice]))
          outside.push_back(event.slice);
        drop = true;
        break;
      }
      // Where most of it lies it belongs: below, or beside.
      ++thread.hanging;
      if (2 * overlap >= end - start) break;
      close(stack.size() - 1);
    }
    if (drop) continue;
    const uint32_t node =
        add(event.slice, stack.empty() ? NodeId::kNone : stack.back().node);
    stack.push_back({node, end});
  }
  close(0);
  // A launch that does not nest still owns its kernels: a root of its own.
  for (const uint32_t slice : outside) add(slice, NodeId::kNone);
}

}  // namespace

std::string_view UnlinkedName(Unlinked reason) {
  switch (reason) {
    case Unlinked::kLinked:
      return "linked";
    case Unlinked::kNoKey:
      return "no_correlation";
    case Unlinked::kLaunchNotInFile:
      return "launch_not_in_trace";
    case Unlinked::kNoFlow:
      return "no_flow";
    case Unlinked::kNoHost:
      return "no_host_events";
    case Unlinked::kAmbiguous:
      return "ambiguous_id";
  }
  return "linked";
}

Tree Tree::Build(const Trace& trace, const Options& options) {
  Tree tree;
  tree.trace_ = &trace;
  tree.options_ = options;
  tree.BuildHost();
  Linker(tree).Run();
  tree.LinkAutograd();
  return tree;
}

void Tree::BuildHost() {
  const trace::Slices& slices = trace_->slices;
  const Grafts grafts = FindGrafts(trace_->captured);
  // Captured slices stand behind those of the input.
  const auto recorded =
      static_cast<uint32_t>(slices.size() - trace_->captured.parents.size());
  std::vector<ThreadTree> threads(trace_->tracks.size());
  const auto in_tree = [&](uint32_t i) {
    return InTree(slices.kind[i], options_.python_stacks) &&
           !IsOwnFrame(*trace_, options_, i);
  };
  {
    std::vector<size_t> counts(threads.size(), 0);
    for (uint32_t i = 0; i < recorded; ++i) {
      if (in_tree(i)) ++counts[slices.track[i].value];
    }
    for (size_t t = 0; t < threads.size(); ++t)
      threads[t].events.reserve(counts[t]);
    for (uint32_t i = 0; i < recorded; ++i) {
      if (in_tree(i)) {
        threads[slices.track[i].value].events.push_back(
            {slices.start_ns[i], slices.uid[i], i});
      }
    }
  }
  size_t total = 0;
  for (ThreadTree& thread : threads) {
    RunSort(
        thread.events, options_.threads,
        [&](const HostEvent& a, const HostEvent& b) {
          if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
          // Frames of ranges are around what begins with them; their uids
          // say nothing about that.
          const bool range_a = trace::IsRangeFrame(*trace_, SliceId(a.slice));
          const bool range_b = trace::IsRangeFrame(*trace_, SliceId(b.slice));
          return range_a != range_b ? range_a : a.uid < b.uid;
        });
    thread.slices.reserve(thread.events.size());
    thread.parents.reserve(thread.events.size());
    thread.ends.reserve(thread.events.size());
    total += thread.events.size();
  }
  ParallelFor(options_.threads, threads.size(), [&](size_t t) {
    Nest(*trace_, grafts, options_.python_stacks,
         options_.link == LinkMode::kFlow, threads[t]);
  });

  slices_.reserve(total);
  parents_.reserve(total);
  ends_.reserve(total);
  node_of_.resize(slices.size());
  for (ThreadTree& thread : threads) {
    const auto base = static_cast<uint32_t>(slices_.size());
    for (size_t n = 0; n < thread.slices.size(); ++n) {
      const NodeId node(base + static_cast<uint32_t>(n));
      slices_.push_back(SliceId(thread.slices[n]));
      const uint32_t parent = thread.parents[n];
      parents_.push_back(parent == NodeId::kNone ? NodeId()
                                                 : NodeId(base + parent));
      ends_.push_back(NodeId(base + thread.ends[n]));
      node_of_[thread.slices[n]] = node;
      if (parent == NodeId::kNone) roots_.push_back(node);
    }
    dropped_ += thread.dropped;
    popped_ += thread.popped;
    hanging_ += thread.hanging;
    thread = ThreadTree();
  }
}

NodeId Tree::EnclosingOp(NodeId n) const {
  while (n.valid() && !IsOp(n)) n = parent(n);
  return n;
}

}  // namespace lamina::tree
