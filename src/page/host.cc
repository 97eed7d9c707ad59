// SPDX-License-Identifier: Apache-2.0
#include "page/host.h"

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <tuple>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"

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

}  // namespace lamina::page
