// SPDX-License-Identifier: Apache-2.0
//
// Which backward op belongs to which forward op: autograd writes the same
// "Sequence number" on both. Numbers are per forward thread, and a backward
// op names its forward thread by a number of the profiler's own ("Fwd thread
// id"), so for each such number the forward thread is the one that knows most
// of the sequence numbers.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>

#include "tree/tree.h"

namespace lamina::tree {

using trace::kNoInt;

namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

struct SequencedOp {
  int64_t sequence;
  int64_t fwd_thread;
  int64_t start_ns;
  uint32_t uid;
  uint32_t track;
  NodeId node;
  bool backward;
};

NodeId Partner(const std::vector<std::pair<NodeId, NodeId>>& pairs,
               NodeId node) {
  const auto it = std::lower_bound(
      pairs.begin(), pairs.end(), node,
      [](const auto& pair, NodeId key) { return pair.first < key; });
  return it != pairs.end() && it->first == node ? it->second : NodeId();
}

}  // namespace

void Tree::LinkAutograd() {
  std::vector<SequencedOp> ops;
  for (uint32_t n = 0; n < size(); ++n) {
    const SliceId s = slice(NodeId(n));
    if (kind(NodeId(n)) != trace::Kind::kOp) continue;
    const trace::OpArgs* op = trace_->Op(s);
    if (op == nullptr || op->sequence == kNoInt) continue;
    ops.push_back({op->sequence, op->fwd_thread, trace_->Start(s),
                   trace_->Uid(s), trace_->slices.track[s.value].value,
                   NodeId(n), trace_->Name(s).starts_with(kEvaluate)});
  }
  std::sort(ops.begin(), ops.end(),
            [](const SequencedOp& a, const SequencedOp& b) {
              if (a.sequence != b.sequence) return a.sequence < b.sequence;
              if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
              return a.uid < b.uid;
            });
  // Per sequence number: the first backward op of each forward thread, and
  // the latest forward op of each track. Both lists are short; a file that
  // repeats one number without end is cut off.
  constexpr size_t kMaxThreads = 64;
  const auto each_sequence = [&](const auto& visit) {
    std::vector<const SequencedOp*> backward;
    std::vector<const SequencedOp*> forward;
    for (size_t begin = 0; begin < ops.size();) {
      size_t end = begin;
      backward.clear();
      forward.clear();
      for (; end < ops.size() && ops[end].sequence == ops[begin].sequence;
           ++end) {
        const SequencedOp& op = ops[end];
        auto& list = op.backward ? backward : forward;
        const auto same = std::find_if(
            list.begin(), list.end(), [&](const SequencedOp* other) {
              return op.backward ? other->fwd_thread == op.fwd_thread
                                 : other->track == op.track;
            });
        if (same == list.end()) {
          if (list.size() < kMaxThreads) list.push_back(&op);
        } else if (!op.backward) {
          *same = &op;
        }
      }
      visit(backward, forward);
      begin = end;
    }
  };
  // votes[(fwd thread id)][track] = sequence numbers known on both.
  std::map<int64_t, std::map<uint32_t, size_t>> votes;
  each_sequence([&](const auto& backward, const auto& forward) {
    for (const SequencedOp* b : backward) {
      if (b->fwd_thread == kNoInt) continue;
      for (const SequencedOp* f : forward) {
        if (f->track != b->track) ++votes[b->fwd_thread][f->track];
      }
    }
  });
  absl::flat_hash_map<int64_t, uint32_t> forward_track;
  for (const auto& [fwd_thread, tracks] : votes) {
    const auto best = std::max_element(
        tracks.begin(), tracks.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    forward_track[fwd_thread] = best->first;
  }
  each_sequence([&](const auto& backward, const auto& forward) {
    for (const SequencedOp* b : backward) {
      const auto wanted = forward_track.find(b->fwd_thread);
      const SequencedOp* best = nullptr;
      for (const SequencedOp* f : forward) {
        if (f->track == b->track) continue;
        if (wanted != forward_track.end() && f->track != wanted->second)
          continue;
        if (best == nullptr || std::pair(f->start_ns, f->uid) >
                                   std::pair(best->start_ns, best->uid))
          best = f;
      }
      if (best == nullptr) continue;
      backward_of_.emplace_back(best->node, b->node);
      forward_of_.emplace_back(b->node, best->node);
    }
  });
  std::sort(backward_of_.begin(), backward_of_.end());
  std::sort(forward_of_.begin(), forward_of_.end());
}

NodeId Tree::forward(NodeId backward) const {
  return Partner(forward_of_, backward);
}

NodeId Tree::backward(NodeId forward) const {
  return Partner(backward_of_, forward);
}

}  // namespace lamina::tree
