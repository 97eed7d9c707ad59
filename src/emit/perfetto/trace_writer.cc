// SPDX-License-Identifier: Apache-2.0
//
// Perfetto pairs begins and ends of a track like brackets, in the order of the
// file where that is the order of time. So every track is swept once with a
// stack (emit/common/brackets.h), which gives its begins and ends in a valid
// order, and the sequences of all tracks are merged by time, stably.
#include "emit/perfetto/trace_writer.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>
#include <tuple>

#include "emit/common/brackets.h"
#include "emit/common/slice_args.h"
#include "emit/perfetto/lanes.h"
#include "emit/perfetto/packets.h"
#include "trace/categories.h"
#include "trace/module_frames.h"

namespace lamina::emit::perfetto {

using trace::SliceId;

namespace {

// Below all other tracks.
constexpr int64_t kRecordingRank = 1000000;

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

// Of all that is written; 0 when that is nothing.
int64_t FirstTime(const trace::Trace& trace, const Extras& extras) {
  int64_t first_ns = INT64_MAX;
  const auto see = [&](int64_t ns) { first_ns = std::min(first_ns, ns); };
  for (const int64_t ns : trace.slices.start_ns) see(ns);
  for (const int64_t ns : trace.instants.time_ns) see(ns);
  for (const int64_t ns : trace.counters.time_ns) see(ns);
  for (const ExtraSpan& span : extras.spans) see(span.start_ns);
  return first_ns == INT64_MAX ? 0 : first_ns;
}

class Writer {
 public:
  Writer(const trace::Trace& trace, const Extras& extras, ByteSink& sink)
      : trace_(trace),
        extras_(extras),
        first_ns_(FirstTime(trace, extras)),
        shift_ns_(first_ns_ < 0 ? -first_ns_ : 0),
        packets_(&sink, first_ns_ + shift_ns_),
        lanes_(trace, &packets_),
        arrows_(trace) {
    for (const ExtraArrow& arrow : extras.arrows) {
      const uint64_t id = arrows_.Add(arrow.from);
      if (arrow.to.valid()) {
        arrows_.Add(arrow.to, id);
      } else {
        span_arrows_[arrow.span].push_back(id);
      }
    }
  }

  Written Run() {
    AddRecording();
    lanes_.AddTracks();
    AddSlices();
    AddSpans();
    AddInstants();
    AddCounters();
    std::stable_sort(
        points_.begin(), points_.end(),
        [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
    for (const Point& point : points_) Emit(point);
    return {packets_.packets(), overlaps_, shift_ns_};
  }

 private:
  // Facts about the recording, as arguments of one instant.
  void AddRecording() {
    devices_ = DevicePropertiesJson(trace_.info);
    distributed_ = DistributedJson(trace_.info);
    if (devices_.empty() && distributed_.empty() && !trace_.info.base_time_ns)
      return;
    Track track;
    track.uuid = TrackUuid({"recording"});
    track.name = "recording";
    track.rank = kRecordingRank;
    const uint32_t lane = lanes_.AddPlain(track);
    points_.push_back({first_ns_, 0, lane, Point::What::kRecording});
  }

  // Begins and ends of the spans of one track.
  void AddBrackets(std::span<const Span> spans, uint32_t lane,
                   Point::What begin, Point::What end) {
    const auto add = [&](Point::What what) {
      return [this, what](uint32_t index, uint32_t on, int64_t time_ns) {
        points_.push_back({time_ns, index, on, what});
      };
    };
    overlaps_ += PairBrackets(
        spans, lane,
        [&](size_t number) { return lanes_.AddOverlap(lane, number); },
        add(begin), add(end));
  }

  void AddSlices() {
    const trace::Slices& s = trace_.slices;
    std::vector<uint32_t> order(trace::RecordedSlices(trace_));
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](uint32_t i) {
      return std::tuple(s.track[i].value, s.start_ns[i], -s.dur_ns[i], s.uid[i],
                        i);
    };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    points_.reserve(2 * order.size());
    std::vector<Span> spans;
    for (size_t at = 0; at < order.size();) {
      const trace::TrackId track = s.track[order[at]];
      spans.clear();
      for (; at < order.size() && s.track[order[at]] == track; ++at) {
        const uint32_t i = order[at];
        spans.push_back({s.start_ns[i], s.start_ns[i] + s.dur_ns[i], i});
      }
      AddBrackets(spans, lanes_.Of(track), Point::What::kBegin,
                  Point::What::kEnd);
    }
  }

  // Extra spans: a track for each group, below it one for each lane.
  void AddSpans() {
    const std::vector<ExtraSpan>& all = extras_.spans;
    std::vector<uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](uint32_t i) {
      return std::tuple(std::string_view(all[i].group),
                        std::string_view(all[i].lane), all[i].start_ns,
                        -all[i].dur_ns, i);
    };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    std::vector<Span> spans;
    const ExtraSpan* group = nullptr;  // the first of it
    int64_t rank = 0;
    for (size_t at = 0; at < order.size();) {
      const ExtraSpan& first = all[order[at]];
      if (group == nullptr || first.group != group->group) {
        group = &first;
        AddGroup(first.group);
      }
      const uint32_t lane = AddSpanLane(first, ++rank);
      spans.clear();
      for (; at < order.size() && all[order[at]].group == first.group &&
             all[order[at]].lane == first.lane;
           ++at) {
        const ExtraSpan& span = all[order[at]];
        spans.push_back(
            {span.start_ns, span.start_ns + span.dur_ns, order[at]});
      }
      AddBrackets(spans, lane, Point::What::kSpanBegin, Point::What::kSpanEnd);
    }
  }

  static uint64_t GroupUuid(const std::string& group) {
    return TrackUuid({"group", group});
  }

  void AddGroup(const std::string& group) {
    Track track;
    track.uuid = GroupUuid(group);
    track.name = group;
    track.rank = -1;
    packets_.AddTrack(track);
  }

  uint32_t AddSpanLane(const ExtraSpan& span, int64_t rank) {
    Track track;
    track.uuid = TrackUuid({"lane", span.group, span.lane});
    track.parent = GroupUuid(span.group);
    track.name = span.lane;
    track.rank = rank;
    return lanes_.AddPlain(track);
  }

  void AddInstants() {
    const trace::Instants& instants = trace_.instants;
    for (uint32_t i = 0; i < instants.size(); ++i) {
      points_.push_back({instants.time_ns[i], i, lanes_.Of(instants.track[i]),
                         Point::What::kInstant});
    }
  }

  void AddCounters() {
    const trace::Counters& counters = trace_.counters;
    for (uint32_t i = 0; i < counters.size(); ++i) {
      const StringId pid = trace_.tracks[counters.track[i].value].pid;
      points_.push_back(
          {counters.time_ns[i], i,
           lanes_.OfCounter(pid, counters.name[i], counters.series[i]),
           Point::What::kCounter});
    }
  }

  void Emit(const Point& point) {
    const int64_t time_ns = point.time_ns + shift_ns_;
    const uint64_t track = lanes_.uuid(point.lane);
    switch (point.what) {
      case Point::What::kBegin:
        EmitSlice(SliceId(point.index), track, time_ns);
        break;
      case Point::What::kEnd:
      case Point::What::kSpanEnd:
        packets_.End(track, time_ns);
        break;
      case Point::What::kSpanBegin:
        packets_.Begin(track, time_ns, extras_.spans[point.index].name,
                       "lamina", {}, span_arrows_[point.index]);
        break;
      case Point::What::kInstant:
        EmitInstant(point.index, track, time_ns);
        break;
      case Point::What::kRecording:
        EmitRecording(track, time_ns);
        break;
      case Point::What::kCounter:
        packets_.Counter(track, time_ns, trace_.counters.value[point.index]);
        break;
    }
  }

  void EmitSlice(SliceId s, uint64_t track, int64_t time_ns) {
    args_.Clear();
    if (extras_.args_of_slices) args_.Slice(trace_, s);
    AddExtraArgs(s);
    packets_.Begin(track, time_ns, trace_.Name(s), trace_.Category(s),
                   args_.list(), arrows_.Of(s));
  }

  void AddExtraArgs(SliceId s) {
    auto it = std::lower_bound(
        extras_.args.begin(), extras_.args.end(), s,
        [](const ExtraArg& arg, SliceId slice) { return arg.slice < slice; });
    for (; it != extras_.args.end() && it->slice == s; ++it)
      args_.Text(it->name, it->text);
  }

  void EmitInstant(uint32_t index, uint64_t track, int64_t time_ns) {
    args_.Clear();
    const uint32_t row = trace_.instants.memory[index];
    const bool memory = row != trace::kNoRow;
    if (memory) args_.Memory(trace_.memory[row]);
    packets_.Instant(track, time_ns, trace_.Text(trace_.instants.name[index]),
                     memory ? kMemoryCategory : "", args_.list());
  }

  void EmitRecording(uint64_t track, int64_t time_ns) {
    args_.Clear();
    if (!devices_.empty()) args_.Text(trace::kDevicePropertiesArg, devices_);
    if (!distributed_.empty()) args_.Text(trace::kDistributedArg, distributed_);
    if (trace_.info.base_time_ns)
      args_.Int(trace::kBaseTimeArg, *trace_.info.base_time_ns);
    packets_.Instant(track, time_ns, trace::kRecordingName, "lamina",
                     args_.list());
  }

  const trace::Trace& trace_;
  const Extras& extras_;
  const int64_t first_ns_;
  const int64_t shift_ns_;  // added to every time
  PacketWriter packets_;
  Lanes lanes_;
  Arrows arrows_;
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> span_arrows_;
  uint64_t overlaps_ = 0;
  std::string devices_, distributed_;
  std::vector<Point> points_;
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
