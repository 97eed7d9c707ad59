// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/pftrace/event_args.h"
#include "ingest/pftrace/sequences.h"
#include "trace/builder.h"
#include "trace/kinds.h"

namespace lamina::ingest::pftrace {

// What a category means: those of Kineto and of rocprofv3. kOther for others.
trace::Kind KindOfCategory(std::string_view category);

// What the arguments of an event without a known category show.
struct Hints {
  bool grid = false, stream = false, bytes = false, correlation = false;
  bool shapes = false, external_id = false, python = false;
};
trace::Kind KindOfEvent(std::string_view name, const Hints& hints);

// Track events and GPU stages as rows of the model.

class EventReader {
 public:
  EventReader(trace::TraceBuilder* builder, trace::LocalNames* names)
      : builder_(*builder), names_(*names), segment_(names) {}

  Tracks& tracks() { return tracks_; }
  // A TrackEvent at `time_ns`.
  void Event(const protobuf::Field& event, int64_t time_ns,
             const Sequence& sequence, uint64_t offset);
  // A GpuRenderStageEvent.
  void Stage(const protobuf::Field& event, int64_t time_ns,
             const Sequence& sequence, uint64_t offset);
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    segment_.diagnostics.Add(trace::Effect::kLost, reason, text, offset);
  }
  void Info(std::string_view reason, std::string_view text, uint64_t offset) {
    segment_.diagnostics.Add(trace::Effect::kInfo, reason, text, offset);
  }
  // What waits for the end of the file: stages, flows.
  void Finish();

 private:
  struct Raw {
    int type = 0;
    uint64_t track = 0;
    StringId name, category;
    bool has_counter = false;
    double counter = 0;
    int64_t correlation = trace::kNoInt;
  };
  // A flow id at an event.
  struct FlowEnd {
    uint64_t id;
    int64_t time_ns;
    int64_t correlation;
    trace::TrackId track;
    uint32_t uid;
    trace::Kind kind;
  };
  struct Stage_ {
    int64_t start_ns, dur_ns;
    uint64_t offset;
    StringId name;
    trace::TrackId track;
    trace::DeviceArgs args;
    std::array<uint32_t, 3> grid{}, block{};
    bool configured = false;
  };

  void ReadFields(const protobuf::Field& event, const Sequence& sequence);
  void ReadArg(const protobuf::Field& annotation, const Sequence& sequence);
  void AppendJson(const protobuf::Field& annotation, const Sequence& sequence,
                  int depth, std::string& out);
  trace::Kind KindOf(StringId category, StringId name);
  void CompleteArgs(trace::Kind kind, const Track& track);
  void AddBegin(const Track& track, int64_t time_ns, uint64_t offset);
  void AddEnd(const Track& track, int64_t time_ns, uint64_t offset);
  void AddInstant(const Track& track, int64_t time_ns);
  void AddCounter(Track& track, int64_t time_ns, double value);
  void Recording(const protobuf::Field& event, const Sequence& sequence);
  void Next();
  void AddStages();
  void AddFlows();
  void AddFlow(size_t begin, size_t end);

  trace::TraceBuilder& builder_;
  trace::LocalNames& names_;
  trace::Segment segment_;
  uint64_t events_ = 0;  // in segments before this one
  Tracks tracks_;
  EventArgs args_;
  // The current event.
  Raw raw_;
  std::vector<uint64_t> flow_ids_;
  std::vector<uint64_t> extra_tracks_;
  std::vector<double> extra_values_;
  std::vector<std::string> json_;  // texts of arrays
  std::vector<FlowEnd> flows_;
  std::vector<Stage_> stages_;
  bool kernels_ = false;
  // Per category text: kind, and its number.
  absl::flat_hash_map<StringId, trace::Kind> kinds_;
};

}  // namespace lamina::ingest::pftrace
