// SPDX-License-Identifier: Apache-2.0
//
// One pass per kind of record. In one file, because what each writes goes
// through the same few members.
#include "emit/chrome/trace_writer.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/escape.h"
#include "emit/common/brackets.h"
#include "emit/common/slice_args.h"
#include "trace/module_frames.h"

namespace lamina::emit {

using trace::FlowKind;
using trace::FlowPhase;
using trace::kNoInt;
using trace::SliceId;
using trace::TrackId;

namespace {

class Writer {
 public:
  Writer(const trace::Trace& trace, ByteSink& sink)
      : trace_(trace), sink_(sink) {
    int64_t first_ns = 0;
    const auto see = [&](int64_t ns) { first_ns = std::min(first_ns, ns); };
    for (const int64_t ns : trace.slices.start_ns) see(ns);
    for (const int64_t ns : trace.instants.time_ns) see(ns);
    for (const int64_t ns : trace.counters.time_ns) see(ns);
    for (const int64_t ns : trace.flows.time_ns) see(ns);
    shift_ns_ = -first_ns;
  }

  WrittenJson Run() {
    FindLanes();
    out_ = "{\n\"displayTimeUnit\":\"ms\"";
    Member("deviceProperties", DevicePropertiesJson(trace_.info));
    Member("distributedInfo", DistributedJson(trace_.info));
    if (trace_.info.base_time_ns)
      Member("baseTimeNanoseconds", std::to_string(*trace_.info.base_time_ns));
    out_ += ",\n\"traceEvents\":[";
    Tracks();
    const uint32_t recorded = trace::RecordedSlices(trace_);
    for (uint32_t i = 0; i < recorded; ++i) Slice(SliceId(i));
    Instants();
    Counters();
    Flows();
    out_ += "\n]}\n";
    sink_.Write(out_);
    return {overlaps_, shift_ns_};
  }

 private:
  void Member(std::string_view key, const std::string& json) {
    if (json.empty()) return;
    out_ += ",\n";
    AppendJsonQuoted(out_, key);
    out_ += ':';
    out_ += json;
  }

  // Begins a record: {"ph":"X","name":...
  void Open(std::string_view phase, std::string_view name) {
    out_ += any_ ? ",\n" : "\n";
    any_ = true;
    out_ += "{\"ph\":\"";
    out_ += phase;
    out_ += "\",\"name\":";
    AppendJsonQuoted(out_, name);
  }
  void Close() {
    out_ += '}';
    if (out_.size() < kFlush) return;
    sink_.Write(out_);
    out_.clear();
  }
  void Category(std::string_view category) {
    if (category.empty()) return;
    out_ += ",\"cat\":";
    AppendJsonQuoted(out_, category);
  }
  // `number` is that of the lane beside the track; 0: the track itself.
  void Place(TrackId track, int64_t lane = 0) {
    out_ += ",\"pid\":";
    Number(trace_.Text(trace_.tracks[track.value].pid));
    out_ += ",\"tid\":";
    if (lane == 0) {
      Number(trace_.Text(trace_.tracks[track.value].tid));
    } else {
      AppendInt(out_, lane);
    }
  }

  // A reader loses what overlaps on a track without nesting: it goes to a
  // thread of its own beside the track.
  void FindLanes() {
    const trace::Slices& s = trace_.slices;
    // Numbers that no thread of any process has.
    int64_t last = 0;
    for (const trace::Track& track : trace_.tracks) {
      const auto tid = ParseInt(trace_.Text(track.tid));
      if (tid && *tid < kMostTid) last = std::max(last, *tid);
    }
    std::vector<uint32_t> order(trace::RecordedSlices(trace_));
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](uint32_t i) {
      return std::tuple(s.track[i].value, s.start_ns[i], -s.dur_ns[i], s.uid[i],
                        i);
    };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    std::vector<Span> spans;
    for (size_t at = 0; at < order.size();) {
      const TrackId track = s.track[order[at]];
      spans.clear();
      for (; at < order.size() && s.track[order[at]] == track; ++at) {
        const uint32_t i = order[at];
        spans.push_back({s.start_ns[i], s.start_ns[i] + s.dur_ns[i], i});
      }
      overlaps_ += PairBrackets(
          spans, 0,
          [&](size_t number) {
            lanes_.push_back({track, number, ++last});
            return static_cast<uint32_t>(lanes_.size());
          },
          [&](uint32_t index, uint32_t lane, int64_t) {
            if (lane == 0) return;
            lane_of_[index] = lane;
            lane_at_[{track.value, s.start_ns[index]}] = SliceId(index);
          },
          [](uint32_t, uint32_t, int64_t) {});
    }
  }

  int64_t LaneOf(SliceId s) const {
    const auto it = lane_of_.find(s.value);
    return it == lane_of_.end() ? 0 : lanes_[it->second - 1].tid;
  }

  // Of an arrow at the begin of a slice that went to a lane.
  int64_t LaneAt(TrackId track, int64_t time_ns) const {
    const auto it = lane_at_.find({track.value, time_ns});
    return it == lane_at_.end() ? 0 : LaneOf(it->second);
  }

  void NameLanes() {
    for (const Lane& lane : lanes_) {
      const trace::Track& track = trace_.tracks[lane.track.value];
      std::string name(trace_.Text(track.thread_name));
      if (name.empty()) name = trace_.Text(track.tid);
      name += " (overlap";
      if (lane.number > 1) name += ' ' + std::to_string(lane.number);
      name += ')';
      Open("M", "thread_name");
      Place(lane.track, lane.tid);
      out_ += ",\"args\":{\"name\":";
      AppendJsonQuoted(out_, name);
      out_ += '}';
      Close();
      if (!track.thread_sort) continue;
      Open("M", "thread_sort_index");
      Place(lane.track, lane.tid);
      out_ += ",\"args\":{\"sort_index\":";
      AppendInt(out_, *track.thread_sort);
      out_ += '}';
      Close();
    }
  }
  // Numbers stay numbers, other ids are text.
  void Number(std::string_view text) {
    const auto value = ParseInt(text);
    std::string canonical;
    if (value) AppendInt(canonical, *value);
    if (value && canonical == text) {
      out_ += text;
    } else {
      AppendJsonQuoted(out_, text);
    }
  }
  void Time(std::string_view key, int64_t ns) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
    AppendMicroseconds(out_, ns);
  }
  void Start(int64_t ns) { Time("ts", ns + shift_ns_); }
  void Args() {
    if (args_.list().empty()) return;
    out_ += ",\"args\":{";
    bool first = true;
    for (const Arg& arg : args_.list()) {
      if (!first) out_ += ',';
      first = false;
      AppendJsonQuoted(out_, arg.name);
      out_ += ':';
      AppendJsonValue(out_, arg);
    }
    out_ += '}';
  }

  void Fact(std::string_view what, TrackId track, std::string_view key,
            std::string_view text) {
    if (text.empty()) return;
    Open("M", what);
    Place(track);
    out_ += ",\"args\":{\"";
    out_ += key;
    out_ += "\":";
    AppendJsonQuoted(out_, text);
    out_ += '}';
    Close();
  }

  void Tracks() {
    absl::flat_hash_map<StringId, bool> seen;
    for (uint32_t t = 0; t < trace_.tracks.size(); ++t) {
      const trace::Track& track = trace_.tracks[t];
      if (seen.try_emplace(track.pid, true).second) {
        Fact("process_name", TrackId(t), "name",
             trace_.Text(track.process_name));
        Fact("process_labels", TrackId(t), "labels",
             trace_.Text(track.process_labels));
        Sort("process_sort_index", TrackId(t), track.process_sort);
      }
      Fact("thread_name", TrackId(t), "name", trace_.Text(track.thread_name));
      Sort("thread_sort_index", TrackId(t), track.thread_sort);
    }
    NameLanes();
  }

  void Sort(std::string_view what, TrackId track,
            const std::optional<int64_t>& index) {
    if (!index) return;
    Open("M", what);
    Place(track);
    out_ += ",\"args\":{\"sort_index\":";
    AppendInt(out_, *index);
    out_ += '}';
    Close();
  }

  void Slice(SliceId s) {
    Open("X", trace_.Name(s));
    Category(trace_.Category(s));
    Place(trace_.slices.track[s.value], LaneOf(s));
    Start(trace_.Start(s));
    Time("dur", trace_.Duration(s));
    args_.Clear();
    args_.Slice(trace_, s);
    Args();
    Close();
  }

  void Instants() {
    for (uint32_t i = 0; i < trace_.instants.size(); ++i) {
      Open("i", trace_.Text(trace_.instants.name[i]));
      const uint32_t row = trace_.instants.memory[i];
      if (row != trace::kNoRow) Category(kMemoryCategory);
      Place(trace_.instants.track[i]);
      Start(trace_.instants.time_ns[i]);
      out_ += ",\"s\":\"t\"";
      args_.Clear();
      if (row != trace::kNoRow) args_.Memory(trace_.memory[row]);
      Args();
      Close();
    }
  }

  void Counters() {
    for (uint32_t i = 0; i < trace_.counters.size(); ++i) {
      Open("C", trace_.Text(trace_.counters.name[i]));
      Place(trace_.counters.track[i]);
      Start(trace_.counters.time_ns[i]);
      Arg value;
      value.type = Arg::Type::kReal;
      value.real = trace_.counters.value[i];
      out_ += ",\"args\":{";
      AppendJsonQuoted(out_, trace_.Text(trace_.counters.series[i]));
      out_ += ':';
      AppendJsonValue(out_, value);
      out_ += '}';
      Close();
    }
  }

  void Flow(std::string_view phase, std::string_view category, int64_t id,
            TrackId track, int64_t time_ns, int64_t lane = 0) {
    Open(phase, category);
    Category(category);
    out_ += ",\"id\":";
    AppendInt(out_, id);
    Place(track, lane);
    Start(time_ns);
    if (phase == "f") out_ += ",\"bp\":\"e\"";
    Close();
  }

  void Flows() {
    const trace::Flows& flows = trace_.flows;
    bool launches = false;
    for (size_t f = 0; f < flows.size(); ++f) {
      launches = launches || flows.kind[f] == FlowKind::kLaunch;
      Flow(flows.phase[f] == FlowPhase::kStart  ? "s"
           : flows.phase[f] == FlowPhase::kStep ? "t"
                                                : "f",
           flows.kind[f] == FlowKind::kLaunch            ? "ac2g"
           : flows.kind[f] == FlowKind::kForwardBackward ? "fwdbwd"
                                                         : "flow",
           flows.id[f], flows.track[f], flows.time_ns[f],
           LaneAt(flows.track[f], flows.time_ns[f]));
    }
    if (launches) return;
    // Formats without arrows have correlations.
    absl::flat_hash_map<int64_t, bool> launched;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const trace::DeviceArgs* device = trace_.Device(SliceId(i));
      if (device != nullptr && device->correlation != kNoInt)
        launched[device->correlation] = false;
    }
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      const trace::ApiArgs* api = trace_.Api(s);
      if (api == nullptr) continue;
      const auto it = launched.find(api->correlation);
      if (it == launched.end() || it->second) continue;
      it->second = true;
      Flow("s", "ac2g", it->first, trace_.slices.track[i], trace_.Start(s),
           LaneOf(s));
    }
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      const trace::DeviceArgs* device = trace_.Device(s);
      if (device == nullptr) continue;
      const auto it = launched.find(device->correlation);
      if (it != launched.end() && it->second)
        Flow("f", "ac2g", it->first, trace_.slices.track[i], trace_.Start(s),
             LaneOf(s));
    }
  }

  struct Lane {
    TrackId track;
    size_t number = 0;  // beside the track, from 1
    int64_t tid = 0;
  };

  static constexpr size_t kFlush = size_t{1} << 18;
  static constexpr int64_t kMostTid = int64_t{1} << 52;
  const trace::Trace& trace_;
  ByteSink& sink_;
  std::string out_;
  bool any_ = false;
  int64_t shift_ns_ = 0;  // added to every time, so that none is negative
  uint64_t overlaps_ = 0;
  std::vector<Lane> lanes_;
  absl::flat_hash_map<uint32_t, uint32_t> lane_of_;  // slice: 1 + lane
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, SliceId> lane_at_;
  SliceArgs args_;
};

}  // namespace

WrittenJson WriteChromeTrace(const trace::Trace& trace, ByteSink& sink) {
  return Writer(trace, sink).Run();
}

}  // namespace lamina::emit
