// SPDX-License-Identifier: Apache-2.0

#include "page/host.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <tuple>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "trace/module_frames.h"

namespace lamina::page {

namespace {

using analysis::Context;
using trace::Kind;
using trace::SliceId;
using trace::Trace;
using tree::NodeId;

// More Python functions than these take longer to open than they tell.
constexpr uint64_t kMostPython = 200'000;

// Modules and Python functions are drawn apart from the ops of their thread.
enum class HostTrack : uint8_t { kRanges, kModules, kCalls, kPython };
constexpr const char* kTrackNames[] = {"ranges", "modules", "calls", "python"};

// What is wanted of a trace, in the order of the page.
class HostOrder {
 public:
  struct Item {
    HostTrack track;
    uint32_t thread;
    SliceId slice;
  };

  HostOrder(const Context& context, HostDetail detail, const HostMask& mask,
            int64_t python_ns)
      : context_(context),
        trace_(context.trace),
        detail_(detail),
        python_ns_(python_ns) {
    if (detail == HostDetail::kNone) return;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (!mask.empty() && !mask[i]) continue;
      if (const auto track = Wanted(SliceId(i)))
        items_.push_back({*track, trace_.slices.track[i].value, SliceId(i)});
    }
    const auto key = [&](const Item& item) {
      return std::tuple(item.thread, item.track, trace_.Start(item.slice),
                        -trace_.Duration(item.slice), item.slice.value);
    };
    std::sort(items_.begin(), items_.end(),
              [&](const Item& a, const Item& b) { return key(a) < key(b); });
  }

  const std::vector<Item>& items() const { return items_; }

 private:
  std::optional<HostTrack> Wanted(SliceId s) const {
    switch (trace_.KindOf(s)) {
      case Kind::kAnnotation:
        return HostTrack::kRanges;
      case Kind::kPython:
        if (detail_ >= HostDetail::kRanges) return std::nullopt;
        if (trace_.Name(s).starts_with(tree::kModulePrefix))
          return HostTrack::kModules;
        if (trace_.Duration(s) < python_ns_) return std::nullopt;
        return HostTrack::kPython;
      case Kind::kOp:
      case Kind::kRuntime:
      case Kind::kDriver: {
        if (detail_ >= HostDetail::kRanges) return std::nullopt;
        const NodeId node = context_.tree.node(s);
        if (!node.valid()) return std::nullopt;
        if (detail_ == HostDetail::kWithDeviceWork &&
            (!context_.tree.HasDeviceWork(node) || !context_.tree.IsOp(node)))
          return std::nullopt;
        if (detail_ == HostDetail::kNoDeepCalls &&
            !context_.tree.HasDeviceWork(node))
          return std::nullopt;
        return HostTrack::kCalls;
      }
      default:
        return std::nullopt;
    }
  }

  const Context& context_;
  const Trace& trace_;
  HostDetail detail_;
  int64_t python_ns_;
  std::vector<Item> items_;
};

// The trace of a lane or track; a page of one trace does not say it.
std::string TraceJson(uint32_t trace) {
  return trace > 0 ? fmt::format("\"trace\":{},", trace) : std::string();
}

}  // namespace

void CountHost(const Trace& trace, const HostMask& of, HostCounts& counts) {
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (!of.empty() && !of[i]) continue;
    const Kind kind = trace.slices.kind[i];
    counts.calls += kind == Kind::kOp || trace::IsApiCall(kind);
    counts.ranges += kind == Kind::kAnnotation;
  }
}

HostDetail ChooseDetail(const HostCounts& host, uint64_t device,
                        uint64_t max_bytes) {
  const auto fits = [&](uint64_t events) {
    return FitsPage(device, events, 0, max_bytes);
  };
  if (fits(host.total())) return HostDetail::kAll;
  // An op and a call for each piece of device work.
  if (fits(host.ranges + 3 * device)) return HostDetail::kNoDeepCalls;
  if (fits(host.ranges + 2 * device)) return HostDetail::kWithDeviceWork;
  if (fits(host.ranges)) return HostDetail::kRanges;
  return HostDetail::kNone;
}

bool FitsPage(uint64_t device_events, uint64_t host_events, uint64_t more,
              uint64_t max_bytes) {
  return device_events * kDeviceEventBytes + host_events * kHostEventBytes +
             more <=
         max_bytes;
}

int64_t ChoosePython(const Trace& trace, uint64_t bytes, uint64_t max_bytes) {
  std::vector<int64_t> lengths;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    if (trace.KindOf(s) == Kind::kPython &&
        !trace.Name(s).starts_with(tree::kModulePrefix))
      lengths.push_back(trace.Duration(s));
  }
  const uint64_t room = max_bytes > bytes ? max_bytes - bytes : 0;
  const uint64_t most = std::min(kMostPython, room / kHostEventBytes);
  if (lengths.empty() || most == 0) return kNoPython;
  if (lengths.size() <= most) return 0;
  const auto at = lengths.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(lengths.begin(), at, lengths.end(), std::greater<>());
  return *at + 1;
}

std::string_view WhatIsLeftOut(HostDetail detail) {
  switch (detail) {
    case HostDetail::kAll:
      return "";
    case HostDetail::kNoStacks:
      return "call stacks";
    case HostDetail::kNoDeepCalls:
      return "host events without device work";
    case HostDetail::kWithDeviceWork:
      return "runtime calls and host ops without device work";
    case HostDetail::kRanges:
      return "host ops, runtime calls and modules";
    case HostDetail::kNone:
      return "all host events";
  }
  return "";
}

Note LeftOutNote(HostDetail detail, uint64_t max_bytes) {
  return MakeNote(
      Severity::kWarning, "page_left_out",
      fmt::format("This page leaves out {} to stay below {}; --html-max-mb "
                  "changes that.",
                  WhatIsLeftOut(detail),
                  HumanBytes(static_cast<double>(max_bytes))));
}

std::vector<uint32_t> HostEvents::Add(const Context& context, HostDetail detail,
                                      const HostMask& mask, const PageTrace& of,
                                      render::PageStrings& strings,
                                      int64_t python_ns) {
  const Trace& trace = context.trace;
  std::vector<uint32_t> rows(trace.slices.size());
  const HostOrder order(context, detail, mask, python_ns);
  const auto& items = order.items();
  for (size_t i = 0; i < items.size(); ++i) {
    const auto& [track, thread, s] = items[i];
    if (i == 0 || items[i - 1].track != track ||
        items[i - 1].thread != thread) {
      const trace::Track& info = trace.tracks[thread];
      if (!tracks_.empty())
        tracks_ += fmt::format("\"end\":{}}},", start_.size());
      tracks_ += fmt::format(
          "{{{}\"kind\":\"{}\",\"process\":{},\"thread\":{},\"name\":{},"
          "\"begin\":{},",
          TraceJson(of.index), kTrackNames[static_cast<size_t>(track)],
          JsonQuote(trace.Text(info.pid)), JsonQuote(trace.Text(info.tid)),
          JsonQuote(info.thread_name.valid()
                        ? Shorten(trace.Text(info.thread_name), 200)
                        : std::string()),
          start_.size());
    }
    start_.push_back(trace.Start(s) - trace.first_ns + of.shift_ns);
    dur_.push_back(trace.Duration(s));
    name_.push_back(strings.Id(trace.Name(s)));
    kind_.push_back(static_cast<int64_t>(trace.KindOf(s)));
    uid_.push_back(of.first_uid + trace.Uid(s));
    rows[s.value] = static_cast<uint32_t>(start_.size());
  }
  return rows;
}

void HostEvents::AddTo(render::Page& page) const {
  std::string tracks = "[" + tracks_;
  if (!start_.empty()) tracks += fmt::format("\"end\":{}}}", start_.size());
  page.facts.emplace_back("host_tracks", tracks + "]");
  render::Block block("host", start_.size());
  block.Add("start", start_, true);
  block.Add("dur", dur_);
  block.Add("name", name_);
  block.Add("kind", kind_);
  block.Add("uid", uid_, true);
  page.blocks.push_back(std::move(block));
}

int64_t EndOfUids(const Trace& trace) {
  int64_t end = 0;
  for (const uint32_t uid : trace.slices.uid)
    end = std::max(end, int64_t{uid} + 1);
  return end;
}

void AppendLane(const PageLane& lane, size_t begin, size_t end,
                std::string& json) {
  const auto number = [](int64_t value) {
    return value == trace::kNoInt ? std::string("null") : std::to_string(value);
  };
  if (json.size() > 1) json += ',';
  json += fmt::format(
      "{{{}\"process\":{},\"device\":{},\"stream\":{},\"begin\":{},"
      "\"end\":{}}}",
      TraceJson(lane.trace), JsonQuote(lane.process), number(lane.device),
      number(lane.stream), begin, end);
}

void AppendLanes(const Trace& trace, const PageTrace& of,
                 std::span<const size_t> events, size_t& row,
                 std::string& json) {
  for (size_t i = 0; i < trace.streams.size(); ++i) {
    const trace::Stream& lane = trace.streams[i];
    const size_t end = row + (events.empty() ? lane.slices.size() : events[i]);
    AppendLane({of.index, trace.Text(lane.pid), lane.device, lane.stream}, row,
               end, json);
    row = end;
  }
}

std::string FamiliesJson(const rules::Catalog& catalog) {
  std::string out;
  json::Writer w(out);
  w.Array();
  for (const rules::Family& family : catalog.families()) {
    w.Object();
    w.Text("name", family.name);
    w.Text("group", family.group);
    w.Text("title", family.title);
    w.Close();
  }
  w.Close();
  return out;
}

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
