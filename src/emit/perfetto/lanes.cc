// SPDX-License-Identifier: Apache-2.0
#include "emit/perfetto/lanes.h"

#include <algorithm>
#include <utility>

#include "base/decimal.h"
#include "trace/module_frames.h"

namespace lamina::emit::perfetto {
namespace {

using trace::kNoInt;

constexpr uint32_t kNoLane = UINT32_MAX;
// Counters stand below all other tracks of their process.
constexpr int64_t kCounterRank = 100000;

bool IsProcessNumber(std::string_view pid, int64_t* number) {
  const auto value = ParseInt(pid);
  if (!value || *value <= 0 || *value > INT32_MAX) return false;
  *number = *value;
  return true;
}

}  // namespace

uint32_t Lanes::Keep(uint64_t uuid, std::string name) {
  lanes_.push_back({uuid, std::move(name)});
  return static_cast<uint32_t>(lanes_.size() - 1);
}

uint32_t Lanes::AddPlain(const Track& track) {
  packets_.AddTrack(track);
  return Keep(track.uuid, std::string(track.name));
}

void Lanes::CountContents() {
  contents_.assign(trace_.tracks.size(), Content());
  const uint32_t recorded = trace::RecordedSlices(trace_);
  for (uint32_t i = 0; i < recorded; ++i) {
    Content& content = contents_[trace_.slices.track[i].value];
    ++content.events;
    const trace::Kind kind = trace_.slices.kind[i];
    content.calls += trace::IsApiCall(kind) || kind == trace::Kind::kOp;
    if (!trace::IsDevice(kind) && kind != trace::Kind::kGpuAnnotation) continue;
    content.on_device = true;
    if (content.device == nullptr)
      content.device = trace_.Device(trace::SliceId(i));
  }
  for (const trace::TrackId track : trace_.instants.track)
    ++contents_[track.value].events;
  for (const trace::Track& track : trace_.tracks)
    first_of_pid_.try_emplace(track.pid, &track);
}

// The host process that works most stands for all devices.
StringId Lanes::MainProcess() const {
  absl::flat_hash_map<StringId, uint64_t> calls;
  for (size_t t = 0; t < contents_.size(); ++t) {
    if (!contents_[t].on_device)
      calls[trace_.tracks[t].pid] += contents_[t].calls;
  }
  StringId main;
  uint64_t most = 0;
  for (const trace::Track& track : trace_.tracks) {
    const auto it = calls.find(track.pid);
    if (it == calls.end() || it->second <= most) continue;
    most = it->second;
    main = track.pid;
  }
  return main;
}

// Host threads by their order in the viewer, then devices and streams.
std::tuple<bool, int64_t, int64_t, uint32_t> Lanes::SortKey(
    uint32_t track) const {
  const trace::Track& in = trace_.tracks[track];
  const Content& content = contents_[track];
  if (!content.on_device) {
    return {false, in.process_sort.value_or(0), in.thread_sort.value_or(0),
            track};
  }
  if (content.device != nullptr)
    return {true, content.device->device, content.device->stream, track};
  return {true, ParseInt(Text(in.pid)).value_or(0),
          ParseInt(Text(in.tid)).value_or(0), track};
}

void Lanes::AddTracks() {
  CountContents();
  const StringId main = MainProcess();
  of_track_.assign(contents_.size(), kNoLane);
  std::vector<uint32_t> order;
  for (uint32_t t = 0; t < contents_.size(); ++t) {
    if (contents_[t].events > 0) order.push_back(t);
  }
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return SortKey(a) < SortKey(b); });
  int64_t rank = 1;
  for (const uint32_t t : order) {
    const bool below_main = contents_[t].on_device && main.valid();
    const uint64_t group = Group(below_main ? main : trace_.tracks[t].pid);
    of_track_[t] = AddTrack(t, group, rank++);
  }
}

// The track of a process; made on first use.
uint64_t Lanes::Group(StringId pid) {
  const auto [it, is_new] = groups_.try_emplace(pid, 0);
  if (!is_new) return it->second;
  const std::string text(Text(pid));
  Track track;
  track.uuid = it->second = TrackUuid({"process", text});
  track.rank = static_cast<int64_t>(groups_.size());
  const auto known = first_of_pid_.find(pid);
  if (known != first_of_pid_.end()) {
    track.name = Text(known->second->process_name);
    track.label = Text(known->second->process_labels);
  }
  if (IsProcessNumber(text, &track.pid)) {
    packets_.AddProcess(track);
  } else {
    // "GPU 0" says more than "0".
    track.name = track.label.empty() ? std::string_view(text) : track.label;
    packets_.AddTrack(track);
  }
  return it->second;
}

std::string Lanes::DeviceName(uint32_t index) const {
  const trace::DeviceArgs& args = *contents_[index].device;
  std::string name = "GPU ";
  AppendInt(name, args.device == kNoInt ? 0 : args.device);
  name += " stream ";
  if (args.stream == kNoInt) {
    name += Text(trace_.tracks[index].tid);
  } else {
    AppendInt(name, args.stream);
  }
  return name;
}

uint32_t Lanes::AddTrack(uint32_t index, uint64_t group, int64_t rank) {
  const trace::Track& in = trace_.tracks[index];
  const std::string_view tid = Text(in.tid);
  std::string name(Text(in.thread_name));
  Track track;
  track.uuid = TrackUuid({"track", Text(in.pid), tid});
  track.parent = group;
  track.rank = rank;
  if (!contents_[index].on_device &&
      IsProcessNumber(Text(in.pid), &track.pid) &&
      IsProcessNumber(tid, &track.tid)) {
    track.name = name;
    packets_.AddThread(track);
    return Keep(track.uuid, name.empty() ? std::string(tid) : name);
  }
  track.pid = track.tid = -1;
  if (contents_[index].device != nullptr) {
    name = DeviceName(index);
  } else if (name.find(tid) == std::string::npos) {
    // Numbers tell namesakes apart.
    if (!name.empty()) name += ' ';
    name += tid;
  }
  track.name = name;
  return AddPlain(track);
}

uint32_t Lanes::AddOverlap(uint32_t lane, size_t number) {
  std::string name = lanes_[lane].name + " (overlap";
  if (number > 1) name += ' ' + std::to_string(number);
  name += ')';
  Track track;
  track.uuid = TrackUuid({"overlap", std::to_string(lanes_[lane].uuid), name});
  track.parent = lanes_[lane].uuid;
  track.name = name;
  track.rank = static_cast<int64_t>(number);
  return AddPlain(track);
}

uint32_t Lanes::OfCounter(StringId pid, StringId name, StringId series) {
  const auto [it, is_new] =
      counters_.try_emplace(std::tuple(pid, name, series), kNoLane);
  if (!is_new) return it->second;
  std::string title(Text(name));
  const std::string_view part = Text(series);
  if (!part.empty() && part != title && part != "value") {
    title += ": ";
    title += part;
  }
  Track track;
  track.parent = Group(pid);
  track.uuid = TrackUuid({"counter", Text(pid), title});
  track.name = title;
  track.rank = kCounterRank + static_cast<int64_t>(counters_.size());
  packets_.AddCounter(track, "");
  it->second = Keep(track.uuid, title);
  return it->second;
}

}  // namespace lamina::emit::perfetto
