// SPDX-License-Identifier: Apache-2.0
//
// GPU stages, and what waits for the end of the file.
#include <algorithm>
#include <array>
#include <tuple>

#include "base/decimal.h"
#include "ingest/pftrace/events.h"

namespace lamina::ingest::pftrace {

using protobuf::Field;
using protobuf::Walker;
using trace::Effect;
using trace::FlowKind;
using trace::FlowPhase;
using trace::Kind;
using trace::kNoInt;

void EventReader::Stage(const Field& event, int64_t time_ns,
                        const Sequence& sequence, uint64_t offset) {
  Stage_ stage{};
  stage.start_ns = time_ns;
  stage.offset = offset;
  stage.args.device = 0;
  uint64_t duration = 0;
  uint64_t queue = 0;
  StringId queue_name;
  StringId stage_name;
  const auto triple = [](const Field& field) {
    std::array<uint32_t, 3> out{};
    for (Walker walk(field); walk.Next();) {
      if (walk->number >= 1 && walk->number <= 3)
        out[walk->number - 1] = Small(walk->value);
    }
    return out;
  };
  for (Walker walk(event); walk.Next();) {
    switch (walk->number) {
      case 2:
        duration = walk->value;
        break;
      case 11:
        stage.args.device = walk->Int();
        break;
      case 13:
        queue = walk->value;
        if (const StringId* text = sequence.specifications.Find(walk->value))
          queue_name = *text;
        break;
      case 14:
        if (const StringId* text = sequence.specifications.Find(walk->value))
          stage_name = *text;
        break;
      case 17:
        if (walk->IsBytes()) stage.name = names_.Intern(walk->bytes);
        break;
      case 20:
        if (walk->IsBytes()) {
          stage.name = names_.Intern(walk->bytes);
        } else if (const StringId* text = sequence.names.Find(walk->value)) {
          stage.name = *text;
        }
        break;
      case 21:
        stage.configured = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) stage.grid = triple(inner.field());
          if (inner->number == 2) stage.block = triple(inner.field());
        }
        break;
      default:
        break;
    }
  }
  if (duration > static_cast<uint64_t>(trace::kMaxDurationNs) ||
      time_ns + static_cast<int64_t>(duration) > trace::kMaxTimeNs) {
    Lost("duration_out_of_range",
         "The duration of an event is no number, or longer than 7 days.",
         offset);
    return;
  }
  stage.dur_ns = static_cast<int64_t>(duration);
  if (!stage.name.valid())
    stage.name = stage_name.valid() ? stage_name : names_.Intern("GPU stage");
  // "stream 7"
  const std::string_view text = names_.Text(queue_name);
  const size_t space = text.rfind(' ');
  stage.args.stream =
      ParseInt(space == std::string_view::npos ? text : text.substr(space + 1))
          .value_or(static_cast<int64_t>(Small(queue)));
  std::string tid = "GPU stages ";
  AppendInt(tid, stage.args.stream);
  std::string pid = "GPU ";
  AppendInt(pid, stage.args.device);
  stage.track = names_.InternTrack(names_.Intern(pid), names_.Intern(tid));
  stages_.push_back(stage);
  Next();
}

void EventReader::Finish() {
  if (tracks_.undescribed() > 0) {
    segment_.diagnostics.Add(
        Effect::kInfo, "track_without_descriptor",
        "Tracks with events that nothing describes, or only later.",
        trace::Diagnostics::kNoOffset, tracks_.undescribed());
  }
  // Viewers are given kernels twice: as slices and as stages.
  if (kernels_ && !stages_.empty()) {
    segment_.diagnostics.Add(
        Effect::kInfo, "gpu_stages_not_read",
        "GPU stages repeat the kernels that stand as slices; they are in no "
        "number.",
        stages_[0].offset, stages_.size());
    stages_.clear();
  }
  AddStages();
  AddFlows();
  segment_.Seal();
  builder_.Append(segment_);
  segment_.Clear();
}

void EventReader::AddStages() {
  const uint8_t category = names_.InternCategory(names_.Intern("kernel"));
  for (Stage_& stage : stages_) {
    if (stage.configured) {
      trace::LaunchConfig config;
      config.grid = stage.grid;
      config.block = stage.block;
      stage.args.config = names_.InternConfig(config);
    }
    segment_.AddSlice(stage.start_ns, stage.dur_ns, stage.name, Kind::kKernel,
                      category, stage.track, stage.offset,
                      segment_.AddDevice(stage.args));
  }
}

void EventReader::AddFlows() {
  // Equal ids connect in the order of time.
  std::sort(flows_.begin(), flows_.end(),
            [](const FlowEnd& a, const FlowEnd& b) {
              return std::tuple(a.id, a.time_ns, a.uid) <
                     std::tuple(b.id, b.time_ns, b.uid);
            });
  for (size_t begin = 0; begin < flows_.size();) {
    size_t end = begin;
    while (end < flows_.size() && flows_[end].id == flows_[begin].id) ++end;
    if (end - begin > 1) AddFlow(begin, end);
    begin = end;
  }
}

// The events of one id, in order of time.
void EventReader::AddFlow(size_t begin, size_t end) {
  int64_t correlation = kNoInt;
  bool launch = false;
  for (size_t i = begin; i < end; ++i) {
    if (!trace::IsDevice(flows_[i].kind)) continue;
    launch = true;
    if (flows_[i].correlation != kNoInt) correlation = flows_[i].correlation;
  }
  trace::Flows& out = segment_.flows;
  for (size_t i = begin; i < end; ++i) {
    const FlowEnd& flow = flows_[i];
    out.time_ns.push_back(flow.time_ns);
    out.id.push_back(correlation != kNoInt
                         ? correlation
                         : static_cast<int64_t>(flow.id & INT64_MAX));
    out.track.push_back(flow.track);
    out.phase.push_back(i == begin               ? FlowPhase::kStart
                        : launch || i + 1 == end ? FlowPhase::kFinish
                                                 : FlowPhase::kStep);
    out.kind.push_back(launch                   ? FlowKind::kLaunch
                       : flow.kind == Kind::kOp ? FlowKind::kForwardBackward
                                                : FlowKind::kOther);
    // Numbers are those of the whole file, the segment counts its own.
    out.uid.push_back(flow.uid - static_cast<uint32_t>(events_));
  }
}

}  // namespace lamina::ingest::pftrace
