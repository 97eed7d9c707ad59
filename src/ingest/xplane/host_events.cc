// SPDX-License-Identifier: Apache-2.0
//
// Events of threads: API calls, Python frames, ranges, steps, allocations.
#include <algorithm>

#include "base/decimal.h"
#include "ingest/xplane/events.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using Role = NameFacts::Role;

void EventParser::HostEvent(const Event& event) {
  const Role role = event.facts == nullptr ? Role::kRange : event.facts->role;
  if (role == Role::kAllocation || role == Role::kDeallocation) {
    MemoryEvent(event);
    return;
  }
  const int64_t correlation = stats_.Int(StatKey::kCorrelationId);
  if (correlation != kNoInt && correlation != 0) {
    pending_.calls.push_back(
        {correlation, event.start_ns, event.end_ns, event.offset,
         event.shared_name(), line_->track, kNoRow,
         event.facts == nullptr ? Kind::kRuntime : event.facts->api});
    return;
  }
  Handovers(event);
  const Execution execution{line_->track, event.start_ns, event.end_ns};
  if (role == Role::kThunks) pending_.thunks.push_back(execution);
  if (role == Role::kModule) pending_.modules.push_back(execution);
  if (role == Role::kPython) {
    AddSlice(event, Kind::kPython, categories_.python, segment_->AddPython({}));
    return;
  }
  trace::OpArgs args;
  args.sequence = stats_.Int(StatKey::kStepNum);
  if (args.sequence == kNoInt) {
    AddSlice(event, Kind::kAnnotation, categories_.annotation);
  } else {
    AddSlice(event, Kind::kAnnotation, categories_.step, segment_->AddOp(args));
  }
}

void EventParser::MemoryEvent(const Event& event) {
  trace::MemoryArgs memory;
  memory.bytes = stats_.Int(StatKey::kAllocationBytes);
  if (memory.bytes == kNoInt)
    memory.bytes = stats_.Int(StatKey::kRequestedBytes);
  if (memory.bytes > 0 && event.facts->role == Role::kDeallocation)
    memory.bytes = -memory.bytes;
  memory.total_allocated = stats_.Int(StatKey::kBytesAllocated);
  memory.total_reserved = stats_.Int(StatKey::kBytesReserved);
  memory.address = stats_.Int(StatKey::kAddress);
  // "GPU_0_bfc", "gpu_host_bfc", "cpu".
  const std::string_view allocator = stats_.Text(StatKey::kAllocatorName);
  memory.device_type = 0;
  memory.device_id = 0;
  if (allocator.starts_with("GPU_")) {
    memory.device_type = 1;
    const std::string_view number = allocator.substr(4);
    const int64_t device =
        ParseInt(number.substr(0, number.find('_'))).value_or(0);
    memory.device_id =
        static_cast<int32_t>(std::max<int64_t>(device, 0) & 0xFFFF);
  }
  trace::Instants& instants = segment_->instants;
  instants.time_ns.push_back(event.start_ns);
  instants.name.push_back(event.name);
  instants.track.push_back(track_);
  instants.uid.push_back(segment_->next_uid++);
  instants.memory.push_back(segment_->AddMemory(memory));
}

// Work that one thread hands to another: producer and consumer carry equal
// (type, id).
void EventParser::Handovers(const Event& event) {
  const auto add = [&](StatKey type, StatKey id, trace::FlowPhase phase) {
    if (!stats_.Has(id)) return;
    trace::Flows& flows = segment_->flows;
    flows.time_ns.push_back(event.start_ns);
    uint64_t mixed = static_cast<uint64_t>(stats_.Int(id)) * 31;
    if (stats_.Has(type)) mixed += static_cast<uint64_t>(stats_.Int(type));
    flows.id.push_back(static_cast<int64_t>(mixed >> 2));
    flows.track.push_back(track_);
    flows.phase.push_back(phase);
    flows.kind.push_back(trace::FlowKind::kOther);
    flows.uid.push_back(segment_->next_uid);
  };
  add(StatKey::kProducerType, StatKey::kProducerId, trace::FlowPhase::kStart);
  add(StatKey::kConsumerType, StatKey::kConsumerId, trace::FlowPhase::kFinish);
}

}  // namespace lamina::ingest::xplane
