// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/filler.h"

#include "base/escape.h"

namespace lamina::ingest {
namespace {

constexpr uint32_t kRecordsPerSegment = 1 << 16;

}  // namespace

Filler::Filler(trace::TraceBuilder* builder)
    : builder_(builder), segment_(&names_) {}
Filler::~Filler() = default;

StringId Filler::Intern(std::string_view text) {
  return IsValidUtf8(text) ? names_.Intern(text)
                           : names_.Intern(RepairUtf8(text));
}

bool Filler::Usable(int64_t start_ns, int64_t end_ns, uint64_t offset) {
  if (trace::IsUsableTime(start_ns) && trace::IsUsableTime(end_ns) &&
      end_ns >= start_ns && end_ns - start_ns <= trace::kMaxDurationNs)
    return true;
  segment_.diagnostics.Add(
      trace::Effect::kLost, "time_out_of_range",
      "A record ends before it begins, lasts longer than 7 days or has a "
      "time that no clock shows.",
      offset);
  return false;
}

void Filler::AddInstant(int64_t time_ns, StringId name, trace::TrackId track,
                        uint32_t memory) {
  if (!trace::IsUsableTime(time_ns)) return;
  trace::Instants& to = segment_.instants;
  to.time_ns.push_back(time_ns);
  to.name.push_back(name);
  to.track.push_back(track);
  to.uid.push_back(segment_.next_uid);
  to.memory.push_back(memory);
}

void Filler::AddCounter(int64_t time_ns, StringId name, StringId series,
                        trace::TrackId track, double value) {
  if (!trace::IsUsableTime(time_ns)) return;
  trace::Counters& to = segment_.counters;
  to.time_ns.push_back(time_ns);
  to.name.push_back(name);
  to.series.push_back(series);
  to.track.push_back(track);
  to.value.push_back(value);
  to.uid.push_back(segment_.next_uid);
}

void Filler::Next() {
  ++segment_.next_uid;
  if (builder_ != nullptr && segment_.next_uid == kRecordsPerSegment) Flush();
}

void Filler::Flush() {
  segment_.Seal();
  builder_->Append(segment_);
  segment_.Clear();
}

}  // namespace lamina::ingest
