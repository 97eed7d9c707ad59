// SPDX-License-Identifier: Apache-2.0

#include "ingest/common/rocm.h"

#include <algorithm>

#include "base/escape.h"
#include "base/text.h"

namespace lamina::ingest::rocm {

using trace::Kind;
using trace::kNoInt;
using trace::TrackId;

uint32_t Blocks(int64_t work_items, int64_t workgroup) {
  if (work_items <= 0 || workgroup <= 0) return 1;
  // Not (a + b - 1) / b, which may overflow.
  const int64_t blocks =
      work_items / workgroup + (work_items % workgroup != 0 ? 1 : 0);
  return static_cast<uint32_t>(std::min<int64_t>(blocks, 0xFFFFFFFF));
}

Kind KernelKind(std::string_view name) {
  if (name.starts_with("__amd_rocclr_")) {
    if (Contains(name, "copyBuffer")) return Kind::kMemcpy;
    if (Contains(name, "fillBuffer")) return Kind::kMemset;
  }
  return Kind::kKernel;
}

std::string_view PlainKernelName(std::string_view name) {
  if (name.ends_with(".kd")) name.remove_suffix(3);
  return name;
}

Kind CallKind(std::string_view api) {
  return api.starts_with("hsa") || api.starts_with("HSA") ? Kind::kDriver
                                                          : Kind::kRuntime;
}

int64_t Correlation(uint32_t process, std::optional<int64_t> id) {
  constexpr int64_t kMostIds = int64_t{1} << 40;
  constexpr uint32_t kMostProcesses = 1 << 20;
  if (!id || *id <= 0 || *id >= kMostIds || process >= kMostProcesses)
    return kNoInt;
  return static_cast<int64_t>(process) * kMostIds + *id;
}

void NoteMissing(trace::Trace& trace) {
  const auto note = [&](std::string_view reason, std::string_view text) {
    trace.diagnostics.Add(trace::Effect::kInfo, reason, text);
  };
  if (trace.device.empty()) {
    note("no_kernels",
         "The recording has no kernels and copies: record with "
         "--kernel-trace and --memory-copy-trace.");
    return;
  }
  if (trace.api_calls.empty()) {
    note("no_api_calls",
         "The recording has no API calls: no kernel can be linked to its "
         "launch. Record with --hip-trace (or --runtime-trace).");
  }
  const auto& kinds = trace.slices.kind;
  const bool ranges = std::any_of(kinds.begin(), kinds.end(), [](Kind kind) {
    return kind == Kind::kAnnotation || kind == Kind::kOp;
  });
  if (!ranges) {
    note("no_markers",
         "The recording has no roctx ranges, which ops, modules and steps "
         "come from: mark them and record with --marker-trace.");
  }
}

// --------------------------------------------------------------------------

StringId Writer::Intern(std::string_view text) {
  return IsValidUtf8(text) ? names_.Intern(text)
                           : names_.Intern(RepairUtf8(text));
}

bool Writer::Usable(const Span& span) {
  if (trace::IsUsableTime(span.start_ns) && trace::IsUsableTime(span.end_ns) &&
      span.end_ns >= span.start_ns &&
      span.end_ns - span.start_ns <= trace::kMaxDurationNs)
    return true;
  segment_->diagnostics.Add(
      trace::Effect::kLost, "time_out_of_range",
      "A record ends before it begins, lasts longer than 7 days or has a "
      "time that no clock shows.",
      span.offset);
  return false;
}

TrackId Writer::Lane(StringId pid, int64_t device, int64_t stream) {
  const LaneKey key(pid, device, stream);
  if (last_lane_track_.valid() && last_lane_ == key) return last_lane_track_;
  TrackId& track = lanes_[key];
  if (!track.valid()) {
    std::string name =
        device == kNoInt ? "GPU" : "GPU " + std::to_string(device);
    if (stream != kNoInt) name += " stream " + std::to_string(stream);
    track = names_.InternTrack(pid, names_.Intern(name));
  }
  last_lane_ = key;
  return last_lane_track_ = track;
}

TrackId Writer::Track(const Thread& thread) {
  if (last_thread_track_.valid() && last_thread_ == thread)
    return last_thread_track_;
  TrackId& track = threads_[std::pair(thread.pid, thread.tid)];
  if (!track.valid()) {
    track = names_.InternTrack(thread.pid,
                               names_.Intern(std::to_string(thread.tid)));
  }
  last_thread_ = thread;
  return last_thread_track_ = track;
}

void Writer::Add(const Dispatch& dispatch) {
  if (!Usable(dispatch.span)) return;
  trace::DeviceArgs args;
  args.device = dispatch.device;
  args.stream = dispatch.stream;
  args.queue = dispatch.queue;
  args.correlation = dispatch.correlation;
  const bool sized =
      std::any_of(dispatch.workgroup.begin(), dispatch.workgroup.end(),
                  [](int64_t n) { return n > 0; });
  if (sized) {
    trace::LaunchConfig config;
    for (size_t axis = 0; axis < 3; ++axis) {
      config.grid[axis] = Blocks(dispatch.grid[axis], dispatch.workgroup[axis]);
      config.block[axis] = static_cast<uint32_t>(
          std::clamp<int64_t>(dispatch.workgroup[axis], 1, 0xFFFFFFFF));
    }
    config.shared_memory_bytes = dispatch.group_bytes;
    config.registers_per_thread = dispatch.registers;
    args.config = names_.InternConfig(config);
  }
  const std::string_view category =
      !dispatch.category.empty()       ? dispatch.category
      : dispatch.kind == Kind::kMemcpy ? "gpu_memcpy"
      : dispatch.kind == Kind::kMemset ? "gpu_memset"
                                       : "kernel";
  segment_->AddSlice(
      dispatch.span.start_ns, dispatch.span.end_ns - dispatch.span.start_ns,
      dispatch.name, dispatch.kind, names_.InternCategory(category),
      Lane(dispatch.pid, dispatch.device, dispatch.stream),
      dispatch.span.offset, segment_->AddDevice(args));
}

void Writer::Add(const Copy& copy) {
  if (!Usable(copy.span)) return;
  trace::DeviceArgs args;
  args.device = copy.device;
  args.stream = copy.stream;
  args.queue = copy.queue;
  args.correlation = copy.correlation;
  args.bytes = copy.bytes;
  segment_->AddSlice(copy.span.start_ns, copy.span.end_ns - copy.span.start_ns,
                     copy.name, Kind::kMemcpy,
                     names_.InternCategory("gpu_memcpy"),
                     Lane(copy.pid, copy.device, copy.stream), copy.span.offset,
                     segment_->AddDevice(args));
}

void Writer::Add(const Call& call) {
  if (!Usable(call.span)) return;
  trace::ApiArgs args;
  args.correlation = call.correlation;
  segment_->AddSlice(call.span.start_ns, call.span.end_ns - call.span.start_ns,
                     call.name, call.kind, names_.InternCategory(call.category),
                     Track(call.thread), call.span.offset,
                     segment_->AddApi(args));
}

void Writer::Add(const Allocation& allocation) {
  if (!Usable(allocation.span)) return;
  trace::MemoryArgs args;
  args.bytes = allocation.bytes;
  args.address = allocation.address;
  args.device_type = allocation.device == kNoInt ? 0 : 1;
  args.device_id = allocation.device >= 0 && allocation.device < 1 << 20
                       ? static_cast<int32_t>(allocation.device)
                       : -1;
  trace::Instants& to = segment_->instants;
  to.time_ns.push_back(allocation.span.start_ns);
  to.name.push_back(allocation.level.empty()
                        ? names_.Intern("[driver memory]")
                        : names_.Intern("[driver memory, " +
                                        std::string(allocation.level) + "]"));
  to.track.push_back(Lane(allocation.pid, allocation.device, kNoInt));
  to.uid.push_back(segment_->next_uid);
  to.memory.push_back(segment_->AddMemory(args));
}

void Writer::AddMarker(const Span& span, const Thread& thread,
                       std::string_view text) {
  if (!Usable(span)) return;
  if (span.start_ns != span.end_ns) return AddRange(span, thread, Name(text));
  trace::Instants& to = segment_->instants;
  to.time_ns.push_back(span.start_ns);
  to.name.push_back(Intern(text));
  to.track.push_back(Track(thread));
  to.uid.push_back(segment_->next_uid);
  to.memory.push_back(trace::kNoRow);
}

void Writer::AddRange(const Span& span, const Thread& thread,
                      const RangeName& range) {
  if (!Usable(span)) return;
  ranges_.Add(*segment_, span.start_ns, span.end_ns, Track(thread), range,
              span.offset);
}

using trace::kNoInt;

std::optional<int64_t> IntAt(simdjson::dom::element object,
                             std::string_view key) {
  int64_t value = 0;
  if (object.at_key(key).get_int64().get(value) != simdjson::SUCCESS)
    return std::nullopt;
  return value;
}

std::string TextAt(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  if (object.at_key(key).get_string().get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

trace::DeviceInfo DeviceOf(simdjson::dom::element agent, int64_t number) {
  trace::DeviceInfo device;
  device.id = number == kNoInt ? 0 : number;
  device.name = TextAt(agent, "product_name");
  if (device.name.empty()) device.name = TextAt(agent, "name");
  device.sm_count = IntAt(agent, "cu_count").value_or(kNoInt);
  constexpr int64_t kMostMegahertz = 1'000'000;
  if (const auto clock = IntAt(agent, "max_engine_clk_fcompute");
      clock && *clock > 0 && *clock < kMostMegahertz)
    device.clock_khz = *clock * 1000;
  constexpr int64_t kMostBytes = int64_t{1} << 50;
  int64_t bytes = 0;
  simdjson::dom::array banks;
  if (agent.at_key("mem_banks").get_array().get(banks) == simdjson::SUCCESS) {
    for (const simdjson::dom::element bank : banks) {
      const int64_t size = IntAt(bank, "size_in_bytes").value_or(0);
      if (size > 0 && size < kMostBytes && bytes < kMostBytes) bytes += size;
    }
  }
  if (bytes > 0) device.memory_bytes = bytes;
  return device;
}

}  // namespace lamina::ingest::rocm
