// SPDX-License-Identifier: Apache-2.0

#include "emit/perfetto/lanes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/decimal.h"
#include "trace/module_frames.h"

namespace lamina::emit::perfetto {

namespace {

using trace::kNoInt;

constexpr uint32_t kNoLane = UINT32_MAX;
// Counters stand below all other tracks of their process.
constexpr int64_t kCounterRank = 100000;

// "RANK 3" of "RANK 3 - GPU 0", as lamina merge names processes; else empty.
std::string_view RankOfName(std::string_view process) {
  if (!process.starts_with("RANK ")) return {};
  const size_t end = process.find(" - ");
  return end == std::string_view::npos ? std::string_view()
                                       : process.substr(0, end);
}

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

// By the correlations of the work.
void Lanes::FindLaunchers() {
  const uint32_t recorded = trace::RecordedSlices(trace_);
  absl::flat_hash_map<int64_t, StringId> calls;
  for (uint32_t i = 0; i < recorded; ++i) {
    const trace::ApiArgs* api = trace_.Api(trace::SliceId(i));
    if (api != nullptr && api->correlation > 0)
      calls.try_emplace(api->correlation,
                        trace_.tracks[trace_.slices.track[i].value].pid);
  }
  // Calls by (track or process of the device, process that launches).
  absl::flat_hash_map<std::pair<uint32_t, StringId>, uint64_t> of_track;
  absl::flat_hash_map<std::pair<StringId, StringId>, uint64_t> of_pid;
  for (uint32_t i = 0; i < recorded; ++i) {
    const trace::DeviceArgs* device = trace_.Device(trace::SliceId(i));
    if (device == nullptr) continue;
    const auto call = calls.find(device->correlation);
    if (call == calls.end()) continue;
    const uint32_t track = trace_.slices.track[i].value;
    const StringId pid = trace_.tracks[track].pid;
    // A process without number is a part of a recording, such as a plane.
    int64_t number = 0;
    if (!IsProcessNumber(Text(call->second), &number)) continue;
    ++of_track[{track, call->second}];
    ++of_pid[{pid, call->second}];
  }
  // Of equal counts that of the first process, whatever the order of the maps.
  absl::flat_hash_map<StringId, uint32_t> first;
  for (uint32_t t = 0; t < trace_.tracks.size(); ++t)
    first.try_emplace(trace_.tracks[t].pid, t);
  const auto keep = [&](auto& best, auto key, uint64_t count, StringId pid) {
    const auto [it, is_new] = best.try_emplace(key, count, pid);
    if (is_new) return;
    auto& [most, known] = it->second;
    if (count > most || (count == most && first[pid] < first[known])) {
      most = count;
      known = pid;
    }
  };
  using Best = std::pair<uint64_t, StringId>;
  absl::flat_hash_map<uint32_t, Best> track_best;
  absl::flat_hash_map<StringId, Best> pid_best;
  for (const auto& [key, count] : of_track)
    keep(track_best, key.first, count, key.second);
  for (const auto& [key, count] : of_pid)
    keep(pid_best, key.first, count, key.second);
  for (const auto& [track, best] : track_best)
    contents_[track].launcher = best.second;
  for (const auto& [pid, best] : pid_best) launcher_of_pid_[pid] = best.second;
}

std::string_view Lanes::RankOf(StringId pid) const {
  const auto it = first_of_pid_.find(pid);
  return it == first_of_pid_.end() ? std::string_view()
                                   : RankOfName(Text(it->second->process_name));
}

// The host process that works most stands for all devices of its rank.
void Lanes::FindMainProcesses() {
  absl::flat_hash_map<StringId, uint64_t> calls;
  for (size_t t = 0; t < contents_.size(); ++t) {
    if (!contents_[t].on_device)
      calls[trace_.tracks[t].pid] += contents_[t].calls;
  }
  absl::flat_hash_map<std::string_view, uint64_t> most;
  for (const trace::Track& track : trace_.tracks) {
    const auto it = calls.find(track.pid);
    if (it == calls.end()) continue;
    const std::string_view rank = RankOf(track.pid);
    if (it->second <= most[rank]) continue;
    most[rank] = it->second;
    main_of_rank_[rank] = track.pid;
  }
}

// The process that the track stands below.
StringId Lanes::ProcessOf(uint32_t track) const {
  const StringId own = trace_.tracks[track].pid;
  const Content& content = contents_[track];
  if (!content.on_device) return own;
  if (content.launcher.valid()) return content.launcher;
  const auto it = launcher_of_pid_.find(own);
  if (it != launcher_of_pid_.end()) return it->second;
  // The number of a device is no process; a plane or a queue has a name.
  if (!ParseInt(Text(own))) return own;
  const auto main = main_of_rank_.find(RankOf(own));
  return main != main_of_rank_.end() ? main->second : own;
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
  FindLaunchers();
  FindMainProcesses();
  of_track_.assign(contents_.size(), kNoLane);
  std::vector<uint32_t> order;
  for (uint32_t t = 0; t < contents_.size(); ++t) {
    if (contents_[t].events > 0) order.push_back(t);
  }
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return SortKey(a) < SortKey(b); });
  int64_t rank = 1;
  for (const uint32_t t : order) {
    of_track_[t] = AddTrack(t, Group(ProcessOf(t)), rank++);
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
    // "GPU 0" says more than "0", but less than "/device:GPU:0".
    track.name = track.label.empty() || !ParseInt(text) ? std::string_view(text)
                                                        : track.label;
    packets_.AddTrack(track);
  }
  return it->second;
}

// "GPU 0 stream 7", with what else the recording says of the stream; other
// lines of a device keep their names.
std::string Lanes::DeviceName(uint32_t index) const {
  const trace::DeviceArgs& args = *contents_[index].device;
  const trace::Track& track = trace_.tracks[index];
  const std::string_view recorded = Text(track.thread_name);
  std::string stream = "stream ";
  if (args.stream == kNoInt) {
    stream += Text(track.tid);
  } else {
    AppendInt(stream, args.stream);
  }
  std::string_view more;
  const size_t at = recorded.find(stream);
  if (at != std::string_view::npos &&
      recorded.find_first_of("0123456789", at + stream.size()) !=
          at + stream.size()) {
    more = recorded.substr(at + stream.size());
    while (more.ends_with(' ')) more.remove_suffix(1);
  } else if (!recorded.empty() && !ParseInt(recorded)) {
    return std::string(recorded);
  }
  std::string name = "GPU ";
  AppendInt(name, args.device == kNoInt ? 0 : args.device);
  name += ' ';
  name += stream;
  return name + std::string(more);
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

namespace {

using trace::FlowKind;
using trace::FlowPhase;
using trace::kNoInt;
using trace::SliceId;

// Numbers of launches are those of slices; the others' are above, those of each
// kind in a range of their own.
constexpr uint64_t kOther = uint64_t{1} << 62;
constexpr int kKindShift = 60;
// Below those of all kinds and above those of launches.
constexpr uint64_t kAdded = uint64_t{1} << 40;
constexpr uint64_t kIds = (uint64_t{1} << kKindShift) - 1;

// Slices by track, then start, then longest first.
std::vector<SliceId> ByTrack(const trace::Trace& trace) {
  std::vector<SliceId> order;
  const uint32_t recorded = trace::RecordedSlices(trace);
  for (uint32_t i = 0; i < recorded; ++i) order.push_back(SliceId(i));
  const auto key = [&](SliceId s) {
    return std::tuple(trace.slices.track[s.value].value, trace.Start(s),
                      -trace.Duration(s));
  };
  std::sort(order.begin(), order.end(),
            [&](SliceId a, SliceId b) { return key(a) < key(b); });
  return order;
}

}  // namespace

Arrows::Arrows(const trace::Trace& trace) : trace_(trace) {
  is_launched_.resize(trace.slices.size());
  AddLaunches();
  AddOthers();
}

// The call of a correlation: the first, unless a flow begins at another.
void Arrows::AddLaunches() {
  const uint32_t recorded = trace::RecordedSlices(trace_);
  absl::flat_hash_map<int64_t, SliceId> calls;
  absl::flat_hash_map<int64_t, std::vector<SliceId>> shared;
  for (uint32_t i = 0; i < recorded; ++i) {
    const SliceId s(i);
    const trace::ApiArgs* api = trace_.Api(s);
    if (api == nullptr || api->correlation <= 0) continue;
    const auto [it, is_new] = calls.try_emplace(api->correlation, s);
    if (is_new) continue;
    std::vector<SliceId>& all = shared[api->correlation];
    if (all.empty()) all.push_back(it->second);
    all.push_back(s);
    if (trace_.Start(s) < trace_.Start(it->second)) it->second = s;
  }
  const trace::Flows& flows = trace_.flows;
  for (size_t f = 0; f < flows.size() && !shared.empty(); ++f) {
    if (flows.kind[f] != FlowKind::kLaunch ||
        flows.phase[f] != FlowPhase::kStart)
      continue;
    const auto it = shared.find(flows.id[f]);
    if (it == shared.end()) continue;
    for (const SliceId s : it->second) {
      if (trace_.slices.track[s.value] == flows.track[f] &&
          trace_.Start(s) <= flows.time_ns[f] &&
          trace_.End(s) >= flows.time_ns[f])
        calls[it->first] = s;
    }
  }
  for (uint32_t i = 0; i < recorded; ++i) {
    const trace::DeviceArgs* device = trace_.Device(SliceId(i));
    if (device == nullptr || device->correlation <= 0) continue;
    const auto call = calls.find(device->correlation);
    if (call == calls.end()) continue;
    launched_[call->second.value].push_back(i);
    is_launched_[i] = true;
  }
}

// An arrow stands at the innermost slice around its time on its track; where
// that leaves an arrow without an end, it is left out. Arrows of launches that
// end at joined work are there already.
void Arrows::AddOthers() {
  const trace::Flows& flows = trace_.flows;
  if (flows.size() == 0) return;
  const std::vector<SliceId> order = ByTrack(trace_);
  const auto slice_at = [&](size_t f) -> SliceId {
    const std::pair at(flows.track[f].value, flows.time_ns[f]);
    auto after = std::upper_bound(
        order.begin(), order.end(), at, [&](const auto& place, SliceId s) {
          return place <
                 std::pair(trace_.slices.track[s.value].value, trace_.Start(s));
        });
    // The last that has begun and not ended; what encloses it began earlier.
    for (int tries = 0; tries < 64 && after != order.begin(); ++tries) {
      const SliceId s = *--after;
      if (trace_.slices.track[s.value] != flows.track[f]) break;
      if (trace_.End(s) >= flows.time_ns[f]) return s;
    }
    return {};
  };
  struct Ends {
    std::vector<SliceId> slices;
    bool of_joined_work = false;
    bool of_host = false;
  };
  absl::flat_hash_map<std::pair<int, int64_t>, Ends> arrows;
  std::vector<std::pair<int, int64_t>> keys;  // in the order of the recording
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.id[f] == kNoInt) continue;
    const std::pair key(static_cast<int>(flows.kind[f]), flows.id[f]);
    const auto [it, is_new] = arrows.try_emplace(key);
    if (is_new) keys.push_back(key);
    const SliceId s = slice_at(f);
    if (!s.valid()) continue;
    Ends& ends = it->second;
    ends.of_joined_work = ends.of_joined_work || is_launched_[s.value];
    ends.of_host =
        ends.of_host || !trace::IsDevice(trace_.slices.kind[s.value]);
    ends.slices.push_back(s);
  }
  for (const auto& key : keys) {
    Ends& ends = arrows[key];
    std::sort(ends.slices.begin(), ends.slices.end());
    ends.slices.erase(std::unique(ends.slices.begin(), ends.slices.end()),
                      ends.slices.end());
    const bool launch = key.first == static_cast<int>(FlowKind::kLaunch);
    if (ends.slices.size() < 2) continue;
    // Work whose call the recording lacks is not launched by other work.
    if (launch && (ends.of_joined_work || !ends.of_host)) continue;
    const uint64_t id = kOther |
                        static_cast<uint64_t>(key.first) << kKindShift |
                        (static_cast<uint64_t>(key.second) & kIds);
    for (const SliceId s : ends.slices) others_[s.value].push_back(id);
  }
}

uint64_t Arrows::Add(SliceId from) {
  const uint64_t id = kAdded | ++added_;
  others_[from.value].push_back(id);
  return id;
}

void Arrows::Add(SliceId to, uint64_t id) { others_[to.value].push_back(id); }

const std::vector<uint64_t>& Arrows::Of(SliceId slice) {
  found_.clear();
  const auto call = launched_.find(slice.value);
  if (call != launched_.end()) {
    for (const uint32_t s : call->second) found_.push_back(uint64_t{s} + 1);
  }
  if (is_launched_[slice.value]) found_.push_back(uint64_t{slice.value} + 1);
  const auto it = others_.find(slice.value);
  if (it != others_.end())
    found_.insert(found_.end(), it->second.begin(), it->second.end());
  return found_;
}

}  // namespace lamina::emit::perfetto
