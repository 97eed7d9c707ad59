// SPDX-License-Identifier: Apache-2.0
//
// From device work to its launch. The key is the correlation id; files that
// have none use the External id, those without either the flows from calls to
// their work. One call may own many device slices: a graph launch replays
// hundreds of kernels under its own correlation.

#include "tree/linker.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "trace/categories.h"
#include "trace/order.h"
#include "tree/tree.h"

namespace lamina::tree {

using trace::DeviceArgs;
using trace::FlowKind;
using trace::FlowPhase;
using trace::kNoInt;
using trace::kNoRow;

void Linker::Run() {
  tree_.launch_of_.assign(trace_.device.size(), NodeId());
  tree_.unlinked_.assign(trace_.device.size(), Unlinked::kNoHost);
  if (tree_.size() > 0) {
    ChooseKey();
    if (tree_.options_.link == LinkMode::kFlow) {
      LinkByFlow();
    } else {
      LinkAuto();
    }
    LinkCaptured();
  }
  Arrange();
}

// The first launch of the file decides which id the file uses.
void Linker::ChooseKey() {
  uint32_t first_uid = kNoRow;
  std::vector<int8_t> is_launch(trace_.strings.size(), -1);
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    const SliceId s = tree_.slice(NodeId(n));
    const trace::ApiArgs* api = trace_.Api(s);
    if (api == nullptr || trace_.Uid(s) > first_uid) continue;
    int8_t& known = is_launch[trace_.slices.name[s.value].value];
    if (known < 0) known = ContainsIgnoringCase(trace_.Name(s), "launch");
    if (known == 0) continue;
    first_uid = trace_.Uid(s);
    by_correlation_ = api->correlation != kNoInt || api->external_id == kNoInt;
  }
}

void Linker::LinkAuto() {
  // The call of each key. Several calls with one key are rare: then the one
  // that the flow starts at, else the first.
  absl::flat_hash_map<int64_t, NodeId> calls;
  std::vector<int64_t> shared;
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    const NodeId node(n);
    const trace::ApiArgs* api = trace_.Api(tree_.slice(node));
    if (api == nullptr) continue;
    const int64_t key = KeyOf(*api);
    if (key == kNoInt || key == 0) continue;
    const auto [it, is_new] = calls.try_emplace(key, node);
    if (is_new) continue;
    shared.push_back(key);
    const SliceId known = tree_.slice(it->second);
    const SliceId other = tree_.slice(node);
    if (std::pair(trace_.Start(other), trace_.Uid(other)) <
        std::pair(trace_.Start(known), trace_.Uid(known)))
      it->second = node;
  }
  std::vector<NodeId> own;  // by device row, where processes share keys
  if (!shared.empty()) {
    std::sort(shared.begin(), shared.end());
    own = CallsOfOwnProcess(shared);
    const trace::Flows& flows = trace_.flows;
    absl::flat_hash_map<int64_t, size_t> starts;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (flows.kind[f] == FlowKind::kLaunch &&
          flows.phase[f] == FlowPhase::kStart &&
          std::binary_search(shared.begin(), shared.end(), flows.id[f]))
        starts[flows.id[f]] = f;
    }
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const SliceId s = tree_.slice(NodeId(n));
      const trace::ApiArgs* api = trace_.Api(s);
      if (api == nullptr) continue;
      const auto it = starts.find(KeyOf(*api));
      if (it != starts.end() &&
          flows.track[it->second] == trace_.slices.track[s.value] &&
          flows.time_ns[it->second] >= trace_.Start(s) &&
          flows.time_ns[it->second] <= trace_.End(s))
        calls[it->first] = NodeId(n);
    }
  }
  // Innermost op of each External id, for device work without a key.
  absl::flat_hash_map<int64_t, NodeId> ops;
  const auto op_of = [&](int64_t external_id) {
    if (ops.empty()) {
      for (uint32_t n = 0; n < tree_.size(); ++n) {
        const trace::OpArgs* op = trace_.Op(tree_.slice(NodeId(n)));
        // Preorder: a later node with the same id lies inside or behind.
        if (op != nullptr && op->external_id != kNoInt)
          ops[op->external_id] = NodeId(n);
      }
      ops.try_emplace(kNoInt, NodeId());
    }
    const auto it = ops.find(external_id);
    return it == ops.end() ? NodeId() : it->second;
  };
  const PairedByOrder paired = PairByOrder(shared);
  for (const SliceId s : trace_.device_slices()) {
    const uint32_t row = trace_.slices.detail[s.value];
    const DeviceArgs& device = trace_.device[row];
    const int64_t key = KeyOf(device);
    NodeId node;
    if (const auto it = paired.find(row); it != paired.end()) {
      ++tree_.ambiguous_;
      tree_.launch_of_[row] = it->second;
      tree_.unlinked_[row] =
          it->second.valid() ? Unlinked::kLinked : Unlinked::kAmbiguous;
      continue;
    }
    if (key != kNoInt && key != 0) {
      const auto it = calls.find(key);
      if (it != calls.end()) node = it->second;
      if (!own.empty() && own[row].valid()) node = own[row];
      tree_.unlinked_[row] = Unlinked::kLaunchNotInFile;
    } else {
      if (device.external_id != kNoInt && device.external_id != 0)
        node = op_of(device.external_id);
      tree_.unlinked_[row] = Unlinked::kNoKey;
    }
    if (node.valid()) {
      tree_.launch_of_[row] = node;
      tree_.unlinked_[row] = Unlinked::kLinked;
    }
  }
  if (calls.empty()) LinkByEndsOfFlows();
  SpreadOverLaunches();
}

// Some recorders give the kernels of several launches the id of the first of
// them, and the launches ids of their own. A plain launch owns one kernel:
// where as many launches without work follow as it has kernels too many, each
// gets its own in order.
void Linker::SpreadOverLaunches() {
  std::vector<uint32_t> count(tree_.size());
  for (const NodeId launch : tree_.launch_of_) {
    if (launch.valid()) ++count[launch.value];
  }
  std::vector<int8_t> is_plain(trace_.strings.size(), -1);
  const auto plain = [&](NodeId n) {
    if (!trace::IsApiCall(tree_.kind(n))) return false;
    int8_t& known = is_plain[trace_.slices.name[tree_.slice(n).value].value];
    if (known < 0)
      known = tree_.name(n).find("LaunchKernel") != std::string::npos;
    return known > 0;
  };
  // By the launch that has too many: those that it is spread over.
  absl::flat_hash_map<uint32_t, std::vector<NodeId>> spread;
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    if (count[n] < 2 || !plain(NodeId(n))) continue;
    std::vector<NodeId> owners = {NodeId(n)};
    for (uint32_t next = n + 1; next < tree_.size(); ++next) {
      const NodeId other(next);
      if (!tree_.SameThread(NodeId(n), other)) break;
      if (!plain(other)) continue;
      // The call of the driver inside is the same launch.
      if (next < tree_.end(owners.back()).value) continue;
      if (count[next] > 0 || owners.size() > count[n]) break;
      owners.push_back(other);
    }
    if (owners.size() == count[n]) spread.emplace(n, std::move(owners));
  }
  if (spread.empty()) return;
  absl::flat_hash_map<uint32_t, size_t> next;
  for (const SliceId s : trace_.device_slices()) {
    NodeId& launch = tree_.launch_of_[trace_.slices.detail[s.value]];
    if (!launch.valid()) continue;
    const auto it = spread.find(launch.value);
    if (it == spread.end()) continue;
    launch = it->second[next[launch.value]++];
    ++tree_.ambiguous_;
  }
}

// Recorders give one id to several launches now and then. A launch of a kernel
// owns one kernel, so that as many launches as kernels are joined in order; the
// kernels of other ids are nobody's for sure. Launches of graphs own many.
Linker::PairedByOrder Linker::PairByOrder(
    const std::vector<int64_t>& shared) const {
  PairedByOrder paired;
  if (shared.empty()) return paired;
  struct Group {
    std::vector<NodeId> calls;
    std::vector<SliceId> work;
    bool plain = true;  // launches of kernels in one process
  };
  absl::flat_hash_map<int64_t, Group> groups;
  for (const int64_t key : shared) groups.try_emplace(key);
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    const NodeId node(n);
    const trace::ApiArgs* api = trace_.Api(tree_.slice(node));
    if (api == nullptr) continue;
    const auto it = groups.find(KeyOf(*api));
    if (it == groups.end()) continue;
    Group& group = it->second;
    // A call of the driver in one of the runtime is the same launch.
    const NodeId up = tree_.parent(node);
    const trace::ApiArgs* around =
        up.valid() ? trace_.Api(tree_.slice(up)) : nullptr;
    if (around != nullptr && KeyOf(*around) == it->first) continue;
    group.plain &= ContainsIgnoringCase(tree_.name(node), "launch") &&
                   !trace::IsGraphLaunch(tree_.name(node));
    if (!group.calls.empty()) {
      group.plain &= trace_.TrackOf(tree_.slice(group.calls[0])).pid ==
                     trace_.TrackOf(tree_.slice(node)).pid;
    }
    group.calls.push_back(node);
  }
  for (const SliceId s : trace_.device_slices()) {
    const auto it = groups.find(KeyOf(*trace_.Device(s)));
    if (it != groups.end()) it->second.work.push_back(s);
  }
  for (auto& [key, group] : groups) {
    if (!group.plain || group.calls.size() < 2 || group.work.size() < 2)
      continue;
    std::sort(group.calls.begin(), group.calls.end(), [&](NodeId a, NodeId b) {
      const SliceId x = tree_.slice(a), y = tree_.slice(b);
      return std::pair(trace_.Start(x), trace_.Uid(x)) <
             std::pair(trace_.Start(y), trace_.Uid(y));
    });
    bool agree = group.calls.size() == group.work.size();
    // One stream keeps the order of its launches; of several only work that ran
    // before the next launch is told apart.
    const auto lane = [&](SliceId s) { return trace_.Device(s)->lane; };
    for (size_t i = 0; agree && i + 1 < group.work.size(); ++i) {
      agree = lane(group.work[i]) == lane(group.work[i + 1]) ||
              trace_.Start(group.work[i]) <
                  trace_.Start(tree_.slice(group.calls[i + 1]));
    }
    for (size_t i = 0; i < group.work.size(); ++i) {
      paired[trace_.slices.detail[group.work[i].value]] =
          agree ? group.calls[i] : NodeId();
    }
  }
  return paired;
}

// Traces of several ranks in one file count their calls anew, and their devices
// have processes of their own: the first process launched on the first device.
// Empty where there are not as many devices as processes, or the work would
// begin before its call.
std::vector<NodeId> Linker::CallsOfOwnProcess(
    const std::vector<int64_t>& shared) const {
  const auto is_shared = [&](int64_t key) {
    return std::binary_search(shared.begin(), shared.end(), key);
  };
  std::vector<trace::Process> hosts, devices;
  const auto add = [](std::vector<trace::Process>& to,
                      const trace::Process& one) {
    if (to.empty() || to.back() != one) to.push_back(one);
  };
  absl::flat_hash_map<std::pair<StringId, int64_t>, NodeId> calls;
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    const SliceId s = tree_.slice(NodeId(n));
    const trace::ApiArgs* api = trace_.Api(s);
    if (api == nullptr || !is_shared(KeyOf(*api))) continue;
    add(hosts, ProcessOf(trace_, s));
    calls.try_emplace({trace_.TrackOf(s).pid, KeyOf(*api)}, NodeId(n));
  }
  std::vector<SliceId> work;
  for (const SliceId s : trace_.device_slices()) {
    if (!is_shared(KeyOf(*trace_.Device(s)))) continue;
    add(devices, ProcessOf(trace_, s));
    work.push_back(s);
  }
  for (auto* processes : {&hosts, &devices}) {
    std::sort(processes->begin(), processes->end());
    processes->erase(std::unique(processes->begin(), processes->end()),
                     processes->end());
  }
  if (hosts.size() < 2 || hosts.size() != devices.size()) return {};
  std::vector<NodeId> own(trace_.device.size());
  size_t early = 0;
  for (const SliceId s : work) {
    const auto device =
        std::lower_bound(devices.begin(), devices.end(), ProcessOf(trace_, s));
    const auto call = calls.find(
        {hosts[device - devices.begin()].pid, KeyOf(*trace_.Device(s))});
    if (call == calls.end()) continue;
    own[trace_.slices.detail[s.value]] = call->second;
    early += trace_.Start(s) < trace_.Start(tree_.slice(call->second));
  }
  // Clocks of host and device may differ by a little.
  if (20 * early > work.size()) return {};
  return own;
}

// A flow starts with its call and ends with the start of its work.
void Linker::LinkByEndsOfFlows() {
  using Place = std::pair<uint32_t, int64_t>;  // track, time
  const trace::Flows& flows = trace_.flows;
  absl::flat_hash_map<int64_t, Place> starts;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.kind[f] == FlowKind::kLaunch &&
        flows.phase[f] == FlowPhase::kStart)
      starts[flows.id[f]] = {flows.track[f].value, flows.time_ns[f]};
  }
  if (starts.empty()) return;
  const auto place_of = [&](SliceId s) {
    return Place(trace_.slices.track[s.value].value, trace_.Start(s));
  };
  absl::flat_hash_map<Place, NodeId> calls;
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    if (trace::IsApiCall(tree_.kind(NodeId(n))))
      calls[place_of(tree_.slice(NodeId(n)))] = NodeId(n);
  }
  absl::flat_hash_map<Place, NodeId> ends;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.kind[f] != FlowKind::kLaunch ||
        flows.phase[f] != FlowPhase::kFinish)
      continue;
    const auto start = starts.find(flows.id[f]);
    if (start == starts.end()) continue;
    const auto call = calls.find(start->second);
    if (call != calls.end())
      ends[{flows.track[f].value, flows.time_ns[f]}] = call->second;
  }
  for (const SliceId s : trace_.device_slices()) {
    const auto end = ends.find(place_of(s));
    if (end == ends.end()) continue;
    const uint32_t row = trace_.slices.detail[s.value];
    tree_.launch_of_[row] = end->second;
    tree_.unlinked_[row] = Unlinked::kLinked;
  }
}

void Linker::LinkByFlow() {
  const trace::Flows& flows = trace_.flows;
  absl::flat_hash_map<int64_t, size_t> starts;
  absl::flat_hash_map<int64_t, size_t> finishes;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.kind[f] != FlowKind::kLaunch) continue;
    if (flows.phase[f] == FlowPhase::kStart) starts[flows.id[f]] = f;
    if (flows.phase[f] == FlowPhase::kFinish) finishes[flows.id[f]] = f;
  }
  absl::flat_hash_map<int64_t, std::vector<SliceId>> by_key;
  for (const SliceId s : trace_.device_slices()) {
    const int64_t key = KeyOf(*trace_.Device(s));
    const uint32_t row = trace_.slices.detail[s.value];
    tree_.unlinked_[row] = key == kNoInt ? Unlinked::kNoKey : Unlinked::kNoFlow;
    if (key != kNoInt) by_key[key].push_back(s);
  }
  std::vector<NodeId> calls;
  for (uint32_t n = 0; n < tree_.size(); ++n) {
    if (trace::IsApiCall(tree_.kind(NodeId(n)))) calls.push_back(NodeId(n));
  }
  std::sort(calls.begin(), calls.end(), [&](NodeId a, NodeId b) {
    return trace_.Uid(tree_.slice(a)) < trace_.Uid(tree_.slice(b));
  });
  const auto link = [&](SliceId s, NodeId call) {
    const uint32_t row = trace_.slices.detail[s.value];
    tree_.launch_of_[row] = call;
    tree_.unlinked_[row] = Unlinked::kLinked;
  };
  for (const NodeId call : calls) {
    const trace::ApiArgs* api = trace_.Api(tree_.slice(call));
    if (api == nullptr || KeyOf(*api) == kNoInt) continue;
    const auto work = by_key.find(KeyOf(*api));
    if (work == by_key.end()) continue;
    if (trace::IsGraphLaunch(tree_.name(call))) {
      for (const SliceId s : work->second) link(s, call);
      continue;
    }
    if (!starts.contains(KeyOf(*api))) continue;
    const auto finish = finishes.find(KeyOf(*api));
    if (finish == finishes.end()) continue;
    for (const SliceId s : work->second) {
      if (trace_.slices.track[s.value] == flows.track[finish->second]) {
        link(s, call);
        break;
      }
    }
  }
}

// Replayed work belongs to the captured call that it comes from, which stands
// below the graph launch.
void Linker::LinkCaptured() {
  const auto& calls = trace_.captured.calls;
  for (size_t row = 0; row < calls.size(); ++row) {
    if (!calls[row].valid()) continue;
    tree_.launch_of_[row] = tree_.node(calls[row]);
    tree_.unlinked_[row] = Unlinked::kLinked;
  }
}

// Sorts the linked work by launch and makes the ranges and prefix sums.
void Linker::Arrange() {
  const size_t nodes = tree_.size();
  tree_.device_begin_.resize(nodes + 1, 0);
  // Counting sort by node keeps the order of device_slices(): start, uid.
  for (const NodeId node : tree_.launch_of_) {
    if (node.valid()) ++tree_.device_begin_[node.value + 1];
  }
  for (size_t n = 0; n < nodes; ++n)
    tree_.device_begin_[n + 1] += tree_.device_begin_[n];
  std::vector<uint32_t> next(tree_.device_begin_.begin(),
                             tree_.device_begin_.end());
  tree_.launched_.resize(tree_.device_begin_[nodes]);
  for (const SliceId s : trace_.device_slices()) {
    const NodeId node = tree_.launch(s);
    if (node.valid()) tree_.launched_[next[node.value]++] = s;
  }
  tree_.launched_time_.resize(tree_.launched_.size() + 1);
  tree_.launched_time_[0] = 0;
  for (size_t i = 0; i < tree_.launched_.size(); ++i) {
    tree_.launched_time_[i + 1] =
        tree_.launched_time_[i] + trace_.Duration(tree_.launched_[i]);
  }
}

// Which backward op belongs to which forward op: autograd writes the same
// "Sequence number" on both. Numbers are per forward thread, and a backward
// op names its forward thread by a number of the profiler's own ("Fwd thread
// id"), so for each such number the forward thread is the one that knows most
// of the sequence numbers.

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
