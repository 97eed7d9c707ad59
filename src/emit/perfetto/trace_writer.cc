// SPDX-License-Identifier: Apache-2.0
//
// Perfetto pairs begins and ends of a track like brackets, in the order of the
// file where that is the order of time. So every track is swept once with a
// stack, which gives its begins and ends in a valid order, and the sequences of
// all tracks are merged by time, stably.
#include "emit/perfetto/trace_writer.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <tuple>

#include "base/decimal.h"
#include "emit/common/recording.h"
#include "emit/common/slice_args.h"
#include "emit/perfetto/packets.h"
#include "trace/categories.h"

namespace lamina::emit::perfetto {

using trace::FlowKind;
using trace::FlowPhase;
using trace::Kind;
using trace::kNoInt;
using trace::SliceId;
using trace::TrackId;

namespace {

// Tracks beyond these for one track of the input are made without a search.
constexpr size_t kMaxSearched = 64;
constexpr uint32_t kNoLane = UINT32_MAX;

// A point of the output: the begin or end of a slice, an instant, a counter.
struct Point {
  enum class What : uint8_t {
    kBegin,
    kEnd,
    kSpanBegin,
    kSpanEnd,
    kInstant,
    kCounter,
    kRecording
  };
  int64_t time_ns;
  uint32_t index;
  uint32_t lane;
  What what;
};

class Writer {
 public:
  Writer(const trace::Trace& trace, const Extras& extras, ByteSink& sink)
      : trace_(trace), extras_(extras), sink_(sink) {}

  Written Run() {
    FindStart();
    PacketWriter packets(&sink_, first_ns_ + result_.shift_ns);
    packets_ = &packets;
    DescribeRecording();
    DescribeTracks();
    SweepSlices();
    SweepSpans();
    AddInstants();
    AddCounters();
    FindFlows();
    std::stable_sort(
        points_.begin(), points_.end(),
        [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
    for (const Point& point : points_) Emit(point);
    result_.packets = packets.packets();
    return result_;
  }

 private:
  // What stands on one track of the output.
  struct Lane {
    uint64_t uuid = 0;
  };

  void FindStart() {
    bool any = false;
    const auto see = [&](int64_t ns) {
      first_ns_ = any ? std::min(first_ns_, ns) : ns;
      any = true;
    };
    for (const int64_t ns : trace_.slices.start_ns) see(ns);
    for (const int64_t ns : trace_.instants.time_ns) see(ns);
    for (const int64_t ns : trace_.counters.time_ns) see(ns);
    for (const ExtraSpan& span : extras_.spans) see(span.start_ns);
    result_.shift_ns = first_ns_ < 0 ? -first_ns_ : 0;
  }

  // Facts about the recording, as arguments of one instant.
  void DescribeRecording() {
    devices_ = DevicePropertiesJson(trace_.info);
    distributed_ = DistributedJson(trace_.info);
    if (devices_.empty() && distributed_.empty() && !trace_.info.base_time_ns)
      return;
    Track track;
    track.uuid = TrackUuid("recording");
    track.name = "recording";
    track.rank = 1000000;
    packets_->AddTrack(track);
    lanes_.push_back({track.uuid});
    lane_names_.emplace_back(track.name);
    points_.push_back({first_ns_, 0, 0, Point::What::kRecording});
  }

  void EmitRecording(uint64_t uuid, int64_t time_ns) {
    args_.Clear();
    if (!devices_.empty()) args_.Text(trace::kDevicePropertiesArg, devices_);
    if (!distributed_.empty()) args_.Text(trace::kDistributedArg, distributed_);
    if (trace_.info.base_time_ns)
      args_.Int(trace::kBaseTimeArg, *trace_.info.base_time_ns);
    packets_->Instant(uuid, time_ns, trace::kRecordingName, "lamina",
                      args_.list());
  }

  static bool IsProcessNumber(std::string_view pid, int64_t* number) {
    const auto value = ParseInt(pid);
    if (!value || *value <= 0 || *value > INT32_MAX) return false;
    *number = *value;
    return true;
  }

  // Processes first, then their tracks. Tracks with device work stand below
  // the process that launched it.
  void DescribeTracks() {
    const size_t count = trace_.tracks.size();
    std::vector<uint64_t> slices(count, 0);
    std::vector<uint64_t> calls(count, 0);
    on_device_.assign(count, false);
    device_args_.resize(count, nullptr);
    for (size_t i = 0; i < trace_.slices.size(); ++i) {
      const uint32_t track = trace_.slices.track[i].value;
      ++slices[track];
      const Kind kind = trace_.slices.kind[i];
      if (trace::IsApiCall(kind) || kind == Kind::kOp) ++calls[track];
      if (trace::IsDevice(kind) || kind == Kind::kGpuAnnotation) {
        on_device_[track] = true;
        if (device_args_[track] == nullptr)
          device_args_[track] =
              trace_.Device(SliceId(static_cast<uint32_t>(i)));
      }
    }
    for (size_t i = 0; i < trace_.instants.size(); ++i)
      ++slices[trace_.instants.track[i].value];
    absl::flat_hash_map<StringId, uint64_t> calls_of;
    for (size_t t = 0; t < count; ++t) {
      if (!on_device_[t]) calls_of[trace_.tracks[t].pid] += calls[t];
    }
    // The host process that works most stands for all devices.
    StringId main;
    uint64_t most = 0;
    for (size_t t = 0; t < count; ++t) {
      const StringId pid = trace_.tracks[t].pid;
      const auto it = calls_of.find(pid);
      if (it != calls_of.end() && it->second > most) {
        most = it->second;
        main = pid;
      }
    }
    lane_of_.assign(count, kNoLane);
    std::vector<uint32_t> order;
    for (uint32_t t = 0; t < count; ++t) {
      if (slices[t] > 0) order.push_back(t);
    }
    // Host threads by their order in the viewer, then devices and streams.
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return SortKey(a) < SortKey(b);
    });
    int64_t rank = 1;
    for (const uint32_t t : order) {
      const StringId group =
          on_device_[t] && main.valid() ? main : trace_.tracks[t].pid;
      DescribeLane(t, Group(group), rank++);
    }
  }

  std::tuple<bool, int64_t, int64_t, uint32_t> SortKey(uint32_t t) const {
    const trace::Track& track = trace_.tracks[t];
    const trace::DeviceArgs* args = device_args_[t];
    if (on_device_[t]) {
      const int64_t device = args != nullptr
                                 ? args->device
                                 : ParseInt(Text(track.pid)).value_or(0);
      const int64_t stream = args != nullptr
                                 ? args->stream
                                 : ParseInt(Text(track.tid)).value_or(0);
      return {true, device, stream, t};
    }
    return {false, track.process_sort.value_or(0),
            track.thread_sort.value_or(0), t};
  }

  // The track of a process; made on first use.
  uint64_t Group(StringId pid) {
    const auto [it, is_new] = groups_.try_emplace(pid, 0);
    if (!is_new) return it->second;
    const std::string text(Text(pid));
    it->second = TrackUuid("process " + text);
    Track track;
    track.uuid = it->second;
    track.rank = static_cast<int64_t>(groups_.size());
    const trace::Track* known = nullptr;
    for (const trace::Track& candidate : trace_.tracks) {
      if (candidate.pid == pid) {
        known = &candidate;
        break;
      }
    }
    if (known != nullptr) {
      track.name = Text(known->process_name);
      track.label = Text(known->process_labels);
    }
    if (IsProcessNumber(text, &track.pid)) {
      packets_->AddProcess(track);
    } else {
      // "GPU 0" says more than "0".
      track.name = track.label.empty() ? std::string_view(text) : track.label;
      packets_->AddTrack(track);
    }
    return it->second;
  }

  void DescribeLane(uint32_t t, uint64_t group, int64_t rank) {
    const trace::Track& in = trace_.tracks[t];
    Track track;
    std::string key = "track ";
    key += Text(in.pid);
    key += ' ';
    key += Text(in.tid);
    track.uuid = TrackUuid(key);
    track.parent = group;
    track.rank = rank;
    std::string name(Text(in.thread_name));
    const trace::DeviceArgs* args = device_args_[t];
    const bool is_thread = !on_device_[t] &&
                           IsProcessNumber(Text(in.pid), &track.pid) &&
                           IsProcessNumber(Text(in.tid), &track.tid);
    if (on_device_[t] && args != nullptr) {
      name = "GPU ";
      AppendInt(name, args->device == kNoInt ? 0 : args->device);
      name += " stream ";
      if (args->stream == kNoInt) {
        name += Text(in.tid);
      } else {
        AppendInt(name, args->stream);
      }
    } else if (!is_thread) {
      // Numbers tell namesakes apart.
      const std::string_view tid = Text(in.tid);
      if (name.find(tid) == std::string::npos) {
        if (!name.empty()) name += ' ';
        name += tid;
      }
      track.pid = track.tid = -1;
    }
    track.name = name;
    if (is_thread) {
      packets_->AddThread(track);
    } else {
      packets_->AddTrack(track);
    }
    lane_of_[t] = static_cast<uint32_t>(lanes_.size());
    lanes_.push_back({track.uuid});
    lane_names_.push_back(name.empty() ? std::string(Text(in.tid)) : name);
  }

  // A further track beside `lane`.
  uint32_t OverlapLane(uint32_t lane, size_t number) {
    Track track;
    std::string name = lane_names_[lane] + " (overlap";
    if (number > 1) name += ' ' + std::to_string(number);
    name += ')';
    track.uuid = TrackUuid(std::to_string(lanes_[lane].uuid) + name);
    track.parent = lanes_[lane].uuid;
    track.name = name;
    track.rank = static_cast<int64_t>(number);
    packets_->AddTrack(track);
    lanes_.push_back({track.uuid});
    lane_names_.push_back(name);
    return static_cast<uint32_t>(lanes_.size() - 1);
  }

  // Begins and ends of spans of one track, given by start, then longest first.
  // `open(i)` and `close(i)` are called in a valid order of brackets with the
  // lane that the span stands on.
  template <class Spans, class Add>
  void Sweep(const Spans& spans, uint32_t lane, Add&& add) {
    struct Stack {
      uint32_t lane;
      std::vector<std::pair<int64_t, uint32_t>> open;  // end, index
    };
    std::vector<Stack> stacks(1);
    stacks[0].lane = lane;
    const auto close_until = [&](Stack& stack, int64_t time_ns) {
      while (!stack.open.empty() && stack.open.back().first <= time_ns) {
        add(stack.open.back().second, stack.lane, stack.open.back().first,
            false);
        stack.open.pop_back();
      }
    };
    for (const auto& [start_ns, end_ns, index] : spans) {
      Stack* found = nullptr;
      for (size_t s = 0; s < stacks.size() && s < kMaxSearched; ++s) {
        close_until(stacks[s], start_ns);
        if (stacks[s].open.empty() || stacks[s].open.back().first >= end_ns) {
          found = &stacks[s];
          break;
        }
      }
      if (found == nullptr) {
        stacks.push_back({OverlapLane(lane, stacks.size()), {}});
        found = &stacks.back();
      }
      if (found != &stacks[0]) ++result_.overlaps;
      add(index, found->lane, start_ns, true);
      found->open.emplace_back(end_ns, index);
    }
    for (Stack& stack : stacks) close_until(stack, INT64_MAX);
  }

  void SweepSlices() {
    const size_t count = trace_.slices.size();
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[i] = i;
    const trace::Slices& s = trace_.slices;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(s.track[a].value, s.start_ns[a], -s.dur_ns[a], s.uid[a],
                        a) < std::tuple(s.track[b].value, s.start_ns[b],
                                        -s.dur_ns[b], s.uid[b], b);
    });
    points_.reserve(2 * count);
    using Span = std::tuple<int64_t, int64_t, uint32_t>;
    std::vector<Span> spans;
    for (size_t begin = 0; begin < count;) {
      size_t end = begin;
      const uint32_t track = s.track[order[begin]].value;
      spans.clear();
      while (end < count && s.track[order[end]].value == track) {
        const uint32_t i = order[end++];
        spans.emplace_back(s.start_ns[i], s.start_ns[i] + s.dur_ns[i], i);
      }
      Sweep(
          spans, lane_of_[track],
          [&](uint32_t i, uint32_t lane, int64_t time_ns, bool open) {
            points_.push_back({time_ns, i, lane,
                               open ? Point::What::kBegin : Point::What::kEnd});
          });
      begin = end;
    }
  }

  void SweepSpans() {
    struct Key {
      std::string group, lane;
      auto operator<=>(const Key&) const = default;
    };
    std::vector<uint32_t> order(extras_.spans.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](uint32_t i) {
      const ExtraSpan& span = extras_.spans[i];
      return std::tuple(std::string_view(span.group),
                        std::string_view(span.lane), span.start_ns,
                        -span.dur_ns, i);
    };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    using Span = std::tuple<int64_t, int64_t, uint32_t>;
    std::vector<Span> spans;
    std::string_view group_name;
    uint64_t group = 0;
    int64_t rank = 0;
    for (size_t begin = 0; begin < order.size();) {
      const ExtraSpan& first = extras_.spans[order[begin]];
      if (group == 0 || first.group != group_name) {
        group_name = first.group;
        Track track;
        track.uuid = group = TrackUuid("group " + first.group);
        track.name = first.group;
        track.rank = -1;
        packets_->AddTrack(track);
      }
      Track track;
      track.uuid = TrackUuid("lane " + first.group + "/" + first.lane);
      track.parent = group;
      track.name = first.lane;
      track.rank = ++rank;
      packets_->AddTrack(track);
      lanes_.push_back({track.uuid});
      lane_names_.push_back(first.lane);
      const auto lane = static_cast<uint32_t>(lanes_.size() - 1);
      spans.clear();
      size_t end = begin;
      while (end < order.size() &&
             extras_.spans[order[end]].group == first.group &&
             extras_.spans[order[end]].lane == first.lane) {
        const ExtraSpan& span = extras_.spans[order[end]];
        spans.emplace_back(span.start_ns, span.start_ns + span.dur_ns,
                           order[end++]);
      }
      Sweep(spans, lane,
            [&](uint32_t i, uint32_t on, int64_t time_ns, bool open) {
              points_.push_back(
                  {time_ns, i, on,
                   open ? Point::What::kSpanBegin : Point::What::kSpanEnd});
            });
      begin = end;
    }
  }

  void AddInstants() {
    for (uint32_t i = 0; i < trace_.instants.size(); ++i) {
      points_.push_back({trace_.instants.time_ns[i], i,
                         lane_of_[trace_.instants.track[i].value],
                         Point::What::kInstant});
    }
  }

  void AddCounters() {
    using Key = std::tuple<StringId, StringId, StringId>;
    absl::flat_hash_map<Key, uint32_t> lanes;
    for (uint32_t i = 0; i < trace_.counters.size(); ++i) {
      const trace::Track& in = trace_.tracks[trace_.counters.track[i].value];
      const Key key(in.pid, trace_.counters.name[i], trace_.counters.series[i]);
      const auto [it, is_new] = lanes.try_emplace(key, 0);
      if (is_new) {
        std::string name(Text(std::get<1>(key)));
        const std::string_view series = Text(std::get<2>(key));
        if (!series.empty() && series != name && series != "value") {
          name += ": ";
          name += series;
        }
        Track track;
        track.parent = Group(in.pid);
        track.uuid = TrackUuid("counter " + std::string(Text(in.pid)) + name);
        track.name = name;
        track.rank = static_cast<int64_t>(100000 + lanes.size());
        packets_->AddCounter(track, "");
        it->second = static_cast<uint32_t>(lanes_.size());
        lanes_.push_back({track.uuid});
        lane_names_.push_back(name);
      }
      points_.push_back(
          {trace_.counters.time_ns[i], i, it->second, Point::What::kCounter});
    }
  }

  // Autograd arrows, by the slice they begin or end at: the innermost op
  // around the flow's time on its track.
  void FindFlows() {
    const trace::Flows& flows = trace_.flows;
    std::vector<uint32_t> wanted;
    for (uint32_t f = 0; f < flows.size(); ++f) {
      if (flows.kind[f] == FlowKind::kForwardBackward && flows.id[f] != kNoInt)
        wanted.push_back(f);
    }
    if (wanted.empty()) return;
    std::vector<SliceId> ops;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (trace_.slices.kind[i] == Kind::kOp) ops.push_back(SliceId(i));
    }
    const auto key = [&](SliceId s) {
      return std::tuple(trace_.slices.track[s.value].value, trace_.Start(s),
                        -trace_.Duration(s));
    };
    std::sort(ops.begin(), ops.end(),
              [&](SliceId a, SliceId b) { return key(a) < key(b); });
    for (const uint32_t f : wanted) {
      const std::pair at(flows.track[f].value, flows.time_ns[f]);
      auto after = std::upper_bound(
          ops.begin(), ops.end(), at, [&](const auto& place, SliceId s) {
            return place < std::pair(trace_.slices.track[s.value].value,
                                     trace_.Start(s));
          });
      // Kineto's arrows begin with the op: the last one that has begun.
      if (after == ops.begin()) continue;
      const SliceId s = *--after;
      if (trace_.slices.track[s.value] != flows.track[f] ||
          trace_.End(s) < flows.time_ns[f])
        continue;
      arrows_[s.value].push_back(
          kAutogradFlow |
          (static_cast<uint64_t>(flows.id[f]) & (kAutogradFlow - 1)));
    }
  }

  void Emit(const Point& point) {
    const int64_t time_ns = point.time_ns + result_.shift_ns;
    const uint64_t uuid = lanes_[point.lane].uuid;
    switch (point.what) {
      case Point::What::kBegin:
        EmitSlice(SliceId(point.index), uuid, time_ns);
        break;
      case Point::What::kEnd:
      case Point::What::kSpanEnd:
        packets_->End(uuid, time_ns);
        break;
      case Point::What::kSpanBegin:
        packets_->Begin(uuid, time_ns, extras_.spans[point.index].name,
                        "lamina", {}, {});
        break;
      case Point::What::kInstant: {
        args_.Clear();
        const uint32_t row = trace_.instants.memory[point.index];
        if (row != trace::kNoRow) args_.Memory(trace_.memory[row]);
        packets_->Instant(
            uuid, time_ns, Text(trace_.instants.name[point.index]),
            row == trace::kNoRow ? "" : "cpu_instant_event", args_.list());
        break;
      }
      case Point::What::kRecording:
        EmitRecording(uuid, time_ns);
        break;
      case Point::What::kCounter:
        packets_->Counter(uuid, time_ns, trace_.counters.value[point.index]);
        break;
    }
  }

  void EmitSlice(SliceId s, uint64_t uuid, int64_t time_ns) {
    args_.Clear();
    if (extras_.args_of_slices) args_.Slice(trace_, s);
    AddExtras(s);
    flows_.clear();
    int64_t correlation = kNoInt;
    if (const trace::ApiArgs* api = trace_.Api(s)) {
      correlation = api->correlation;
    } else if (const trace::DeviceArgs* device = trace_.Device(s)) {
      correlation = device->correlation;
    }
    if (correlation > 0) {
      flows_.push_back(
          (static_cast<uint64_t>(trace_.info.rank.value_or(0)) << 32) ^
          static_cast<uint64_t>(correlation));
    }
    const auto it = arrows_.find(s.value);
    if (it != arrows_.end())
      flows_.insert(flows_.end(), it->second.begin(), it->second.end());
    packets_->Begin(uuid, time_ns, trace_.Name(s), trace_.Category(s),
                    args_.list(), flows_);
  }

  void AddExtras(SliceId s) {
    auto it = std::lower_bound(
        extras_.args.begin(), extras_.args.end(), s,
        [](const ExtraArg& arg, SliceId slice) { return arg.slice < slice; });
    for (; it != extras_.args.end() && it->slice == s; ++it)
      args_.Text(it->name, it->text);
  }

  std::string_view Text(StringId id) const { return trace_.Text(id); }

  static constexpr uint64_t kAutogradFlow = uint64_t{1} << 62;

  const trace::Trace& trace_;
  const Extras& extras_;
  ByteSink& sink_;
  PacketWriter* packets_ = nullptr;
  Written result_;
  int64_t first_ns_ = 0;
  std::vector<bool> on_device_;
  std::vector<const trace::DeviceArgs*> device_args_;  // first of each track
  std::vector<uint32_t> lane_of_;                      // by track
  std::vector<Lane> lanes_;
  std::vector<std::string> lane_names_;
  absl::flat_hash_map<StringId, uint64_t> groups_;
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> arrows_;
  std::string devices_, distributed_;
  std::vector<Point> points_;
  std::vector<uint64_t> flows_;
  SliceArgs args_;
};

}  // namespace

bool IsPerfettoName(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".pftrace") || path.ends_with(".perfetto-trace");
}

Written WriteTrace(const trace::Trace& trace, const Extras& extras,
                   ByteSink& sink) {
  return Writer(trace, extras, sink).Run();
}

}  // namespace lamina::emit::perfetto
