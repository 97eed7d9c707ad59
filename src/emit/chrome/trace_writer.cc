// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/trace_writer.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "emit/common/recording.h"
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
      : trace_(trace), sink_(sink) {}

  void Run() {
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
  void Place(TrackId track) {
    out_ += ",\"pid\":";
    Number(trace_.Text(trace_.tracks[track.value].pid));
    out_ += ",\"tid\":";
    Number(trace_.Text(trace_.tracks[track.value].tid));
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
    Place(trace_.slices.track[s.value]);
    Time("ts", trace_.Start(s));
    Time("dur", trace_.Duration(s));
    args_.Clear();
    args_.Slice(trace_, s);
    Args();
    Close();
  }

  void Instants() {
    for (uint32_t i = 0; i < trace_.instants.size(); ++i) {
      Open("i", trace_.Text(trace_.instants.name[i]));
      Place(trace_.instants.track[i]);
      Time("ts", trace_.instants.time_ns[i]);
      out_ += ",\"s\":\"t\"";
      args_.Clear();
      const uint32_t row = trace_.instants.memory[i];
      if (row != trace::kNoRow) args_.Memory(trace_.memory[row]);
      Args();
      Close();
    }
  }

  void Counters() {
    for (uint32_t i = 0; i < trace_.counters.size(); ++i) {
      Open("C", trace_.Text(trace_.counters.name[i]));
      Place(trace_.counters.track[i]);
      Time("ts", trace_.counters.time_ns[i]);
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
            TrackId track, int64_t time_ns) {
    Open(phase, category);
    Category(category);
    out_ += ",\"id\":";
    AppendInt(out_, id);
    Place(track);
    Time("ts", time_ns);
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
           flows.id[f], flows.track[f], flows.time_ns[f]);
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
      Flow("s", "ac2g", it->first, trace_.slices.track[i], trace_.Start(s));
    }
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      const trace::DeviceArgs* device = trace_.Device(s);
      if (device == nullptr) continue;
      const auto it = launched.find(device->correlation);
      if (it != launched.end() && it->second)
        Flow("f", "ac2g", it->first, trace_.slices.track[i], trace_.Start(s));
    }
  }

  static constexpr size_t kFlush = size_t{1} << 18;
  const trace::Trace& trace_;
  ByteSink& sink_;
  std::string out_;
  bool any_ = false;
  SliceArgs args_;
};

}  // namespace

void WriteChromeTrace(const trace::Trace& trace, ByteSink& sink) {
  Writer(trace, sink).Run();
}

}  // namespace lamina::emit
