// SPDX-License-Identifier: Apache-2.0
#include "page/stacks.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <tuple>

#include "trace/module_frames.h"

namespace lamina::page {
namespace {

using analysis::Context;
using trace::Kind;
using trace::SliceId;
using trace::Trace;
using tree::NodeId;

constexpr uint64_t kFrameBytes = 12;  // with its share of the names
constexpr uint64_t kStackBytes = 2;   // of a device event

// The call of the recording that launched a device slice; invalid for none.
SliceId LaunchOf(const Context& context, SliceId device) {
  const NodeId node = context.tree.launch(device);
  if (!node.valid()) return SliceId();
  SliceId call = context.tree.slice(node);
  const Trace& trace = context.trace;
  while (trace.captured.Has(call)) call = trace.captured.Parent(call);
  return call;
}

// The host of a trace thread by thread, callers before callees, with the
// launches of some device events.
class HostSweep {
 public:
  HostSweep(const Context& context, std::span<const SliceId> devices)
      : trace_(context.trace), is_launch_(trace_.slices.size()) {
    for (const SliceId s : devices) {
      const SliceId call = LaunchOf(context, s);
      if (call.valid()) is_launch_[call.value] = true;
    }
  }

  bool IsLaunch(SliceId s) const { return is_launch_[s.value]; }

  // `enter(slice, above)` gives the number of the slice, which is `above` for
  // what it calls; 0 stands above the outermost.
  template <typename Enter>
  void Run(const Enter& enter) const {
    std::vector<std::pair<int64_t, uint32_t>> open;  // end, number
    SliceId before;
    for (const SliceId s : Ordered()) {
      if (!before.valid() ||
          trace_.slices.track[s.value] != trace_.slices.track[before.value])
        open.clear();
      before = s;
      while (!open.empty() && open.back().first <= trace_.Start(s))
        open.pop_back();
      const uint32_t own = enter(s, open.empty() ? 0 : open.back().second);
      if (!trace::IsApiCall(trace_.KindOf(s)))
        open.emplace_back(trace_.End(s), own);
    }
  }

 private:
  std::vector<SliceId> Ordered() const {
    std::vector<SliceId> order;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      // Module frames of ranges: the ranges are there.
      if (trace_.captured.Has(s) || trace::IsRangeFrame(trace_, s)) continue;
      const Kind kind = trace_.KindOf(s);
      if (kind == Kind::kPython || kind == Kind::kOp ||
          kind == Kind::kAnnotation || is_launch_[i])
        order.push_back(s);
    }
    const auto key = [&](SliceId s) {
      return std::tuple(trace_.slices.track[s.value].value, trace_.Start(s),
                        -trace_.Duration(s), s.value);
    };
    std::sort(order.begin(), order.end(),
              [&](SliceId a, SliceId b) { return key(a) < key(b); });
    return order;
  }

  const Trace& trace_;
  std::vector<bool> is_launch_;  // by slice
};

class StackBuilder {
 public:
  StackBuilder(const Context& context, std::span<const SliceId> devices)
      : context_(context), trace_(context.trace), devices_(devices) {
    stack_of_.resize(trace_.slices.size());
  }

  CallStacks Build() {
    const HostSweep sweep(context_, devices_);
    sweep.Run([&](SliceId s, uint32_t above) {
      const bool is_call = trace::IsApiCall(trace_.KindOf(s));
      const uint32_t own = is_call ? above : Frame(above, s);
      if (sweep.IsLaunch(s)) stack_of_[s.value] = own;
      return own;
    });
    KeepUsed();
    result_.of_device.assign(trace_.device.size(), 0);
    for (const SliceId s : devices_) {
      const SliceId call = LaunchOf(context_, s);
      if (call.valid()) {
        result_.of_device[trace_.slices.detail[s.value]] =
            stack_of_[call.value];
      }
    }
    return std::move(result_);
  }

 private:
  uint32_t Frame(uint32_t parent, SliceId s) {
    const StringId name = trace_.slices.name[s.value];
    const auto [it, is_new] = found_.try_emplace(std::pair(parent, name), 0);
    if (is_new) {
      result_.frames.push_back({parent, name});
      it->second = static_cast<uint32_t>(result_.frames.size());
    }
    return it->second;
  }

  // Most frames launch nothing: only those above a launch stay.
  void KeepUsed() {
    const auto& all = result_.frames;
    std::vector<uint32_t> kept(all.size() + 1);
    for (const uint32_t frame : stack_of_) kept[frame] = 1;
    for (size_t i = all.size(); i > 0; --i) {
      if (kept[i] != 0) kept[all[i - 1].parent] = 1;
    }
    kept[0] = 0;
    std::vector<CallStacks::Frame> frames;
    for (size_t i = 1; i <= all.size(); ++i) {
      if (kept[i] == 0) continue;
      frames.push_back({kept[all[i - 1].parent], all[i - 1].name});
      kept[i] = static_cast<uint32_t>(frames.size());
    }
    result_.frames = std::move(frames);
    for (uint32_t& frame : stack_of_) frame = kept[frame];
  }

  const Context& context_;
  const Trace& trace_;
  std::span<const SliceId> devices_;
  CallStacks result_;
  std::vector<uint32_t> stack_of_;  // frame + 1 by slice
  absl::flat_hash_map<std::pair<uint32_t, StringId>, uint32_t> found_;
};

}  // namespace

uint64_t CallStacks::EstimatedBytes(size_t device_events) const {
  return frames.size() * kFrameBytes + device_events * kStackBytes;
}

CallStacks FindStacks(const Context& context,
                      std::span<const SliceId> devices) {
  return StackBuilder(context, devices).Build();
}

HostMask HostAbove(const Context& context, std::span<const SliceId> devices) {
  const Trace& trace = context.trace;
  HostMask mask(trace.slices.size());
  std::vector<uint32_t> above_of(trace.slices.size());  // slice + 1
  const HostSweep sweep(context, devices);
  sweep.Run([&](SliceId s, uint32_t above) {
    above_of[s.value] = above;
    // What stands above a marked slice is marked.
    for (uint32_t at = sweep.IsLaunch(s) ? s.value + 1 : 0;
         at > 0 && !mask[at - 1]; at = above_of[at - 1])
      mask[at - 1] = true;
    return s.value + 1;
  });
  for (uint32_t i = 0; i < mask.size(); ++i) {
    if (trace.KindOf(SliceId(i)) == Kind::kAnnotation) mask[i] = true;
  }
  return mask;
}

void AddFrames(const Trace& trace, const CallStacks& stacks,
               render::Page& page) {
  if (stacks.empty()) return;
  std::vector<int64_t> parent, name;
  for (const CallStacks::Frame& frame : stacks.frames) {
    parent.push_back(frame.parent);
    name.push_back(page.strings.Id(trace.Text(frame.name)));
  }
  render::Block block("frames", parent.size());
  block.Add("parent", parent, true);
  block.Add("name", name);
  page.blocks.push_back(std::move(block));
}

void AddAutograd(const Context& context, const std::vector<uint32_t>& host_rows,
                 render::Page& page) {
  const tree::Tree& tree = context.tree;
  std::vector<int64_t> forward, backward;
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const NodeId node(n);
    if (!tree.IsOp(node)) continue;
    const NodeId twin = tree.backward(node);
    if (!twin.valid()) continue;
    const uint32_t from = host_rows[tree.slice(node).value];
    const uint32_t to = host_rows[tree.slice(twin).value];
    if (from == 0 || to == 0) continue;
    forward.push_back(from);
    backward.push_back(to);
  }
  if (forward.empty()) return;
  render::Block block("autograd", forward.size());
  block.Add("forward", forward, true);
  block.Add("backward", backward, true);
  page.blocks.push_back(std::move(block));
}

}  // namespace lamina::page
