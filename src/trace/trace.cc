// SPDX-License-Identifier: Apache-2.0

#include "trace/trace.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/run_sort.h"
#include "trace/categories.h"
#include "trace/os_records.h"
#include "trace/sync_record.h"

namespace lamina::trace {

std::string Trace::DeviceName(const Stream& stream) const {
  std::string name =
      stream.device == kNoInt ? "?" : std::to_string(stream.device);
  const std::string_view pid = Text(stream.pid);
  if (pid != name) name.insert(0, std::string(pid) + ":");
  return name;
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kOp:
      return "op";
    case Kind::kRuntime:
      return "runtime";
    case Kind::kDriver:
      return "driver";
    case Kind::kKernel:
      return "kernel";
    case Kind::kMemcpy:
      return "memcpy";
    case Kind::kMemset:
      return "memset";
    case Kind::kGraph:
      return "graph";
    case Kind::kPython:
      return "python";
    case Kind::kAnnotation:
      return "annotation";
    case Kind::kGpuAnnotation:
      return "gpu_annotation";
    case Kind::kOverhead:
      return "overhead";
    case Kind::kProfiler:
      return "profiler";
    case Kind::kOther:
      return "other";
  }
  return "other";
}

namespace {

struct LaneKey {
  StringId pid;
  int64_t device = 0;
  int64_t stream = 0;

  bool operator==(const LaneKey&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const LaneKey& key) {
    return H::combine(std::move(h), key.pid, key.device, key.stream);
  }
};

std::vector<SliceId> DeviceOrder(const Trace& trace, int threads) {
  const Slices& slices = trace.slices;
  std::vector<SliceId> order;
  order.reserve(trace.device.size());
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (IsDevice(slices.kind[i])) order.push_back(SliceId(i));
  }
  RunSort(order, threads, [&](SliceId a, SliceId b) {
    if (slices.start_ns[a.value] != slices.start_ns[b.value])
      return slices.start_ns[a.value] < slices.start_ns[b.value];
    return slices.uid[a.value] < slices.uid[b.value];
  });
  return order;
}

void NameLane(DeviceArgs& args, const Track& track, const Trace& trace) {
  if (args.device == kNoInt) {
    const auto device = ParseInt(trace.strings[track.pid]);
    if (device) args.device = *device;
  }
  if (args.stream == kNoInt) {
    const auto stream = ParseInt(trace.strings[track.tid]);
    if (stream) args.stream = *stream;
  }
}

// Streams in the order of their first work.
void FillStreams(Trace& trace) {
  absl::flat_hash_map<LaneKey, uint32_t> ids;
  for (const SliceId s : trace.device_order) {
    DeviceArgs& args = trace.device[trace.slices.detail[s.value]];
    const Track& track = trace.TrackOf(s);
    NameLane(args, track, trace);
    const LaneKey key{track.pid, args.device, args.stream};
    const auto [it, is_new] =
        ids.try_emplace(key, static_cast<uint32_t>(trace.streams.size()));
    if (is_new) trace.streams.push_back({key.pid, key.device, key.stream, {}});
    args.lane = StreamId(it->second);
    trace.streams[it->second].slices.push_back(s);
  }
}

// The order people expect, whatever came first in the file.
void OrderStreams(Trace& trace) {
  const auto rank = [&](uint32_t index) {
    const Stream& stream = trace.streams[index];
    const std::string_view pid = trace.strings[stream.pid];
    return std::tuple(ParseInt(pid).value_or(kNoInt), pid, stream.device,
                      stream.stream);
  };
  std::vector<uint32_t> order(trace.streams.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  std::vector<uint32_t> place(order.size());
  std::vector<Stream> sorted;
  for (const uint32_t index : order) {
    place[index] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(std::move(trace.streams[index]));
  }
  trace.streams = std::move(sorted);
  for (DeviceArgs& args : trace.device) {
    if (args.lane.valid()) args.lane = StreamId(place[args.lane.value]);
  }
}

}  // namespace

void MakeStreams(Trace& trace, int threads) {
  trace.device_order = DeviceOrder(trace, threads);
  FillStreams(trace);
  OrderStreams(trace);
}

Kind KindOfCategory(std::string_view category) {
  struct Row {
    std::string_view category;
    Kind kind;
  };
  static constexpr std::array<Row, 22> kRows = {{
      {"cpu_op", Kind::kOp},
      {"operator", Kind::kOp},
      {"runtime", Kind::kRuntime},
      {"hpu_op", Kind::kRuntime},  // calls of the host, by its name in Kineto
      {"driver", Kind::kDriver},
      {"kernel", Kind::kKernel},
      {"concurrent_kernel", Kind::kKernel},
      {"mtia_ccp_events", Kind::kKernel},  // and copies
      {"npu_kernel", Kind::kKernel},       // of Ascend's tables
      {"gpu_memcpy", Kind::kMemcpy},
      {"gcu_memcpy", Kind::kMemcpy},
      {"memcpy", Kind::kMemcpy},
      {"gpu_memset", Kind::kMemset},
      {"gcu_memset", Kind::kMemset},
      {"memset", Kind::kMemset},
      {"python_function", Kind::kPython},
      {"user_annotation", Kind::kAnnotation},
      {"step", Kind::kAnnotation},  // kStepCategory
      {"gpu_user_annotation", Kind::kGpuAnnotation},
      {"gcu_user_annotation", Kind::kGpuAnnotation},
      {"overhead", Kind::kOverhead},
      {"trace", Kind::kProfiler},
  }};
  // Profilers changed the case of categories over the years.
  if (category.size() > 32) return Kind::kOther;
  std::string lower(category);
  for (char& c : lower)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const Row& row : kRows) {
    if (row.category == lower) return row.kind;
  }
  // Kineto names the calls of a vendor's runtime and driver by the device.
  static constexpr std::array<std::string_view, 12> kDevices = {
      "cuda", "hip", "xpu",  "musa", "mlu",         "gcu",
      "npu",  "hpu", "mtia", "glow", "privateuse1", "rocm"};
  for (const std::string_view device : kDevices) {
    if (!lower.starts_with(device)) continue;
    const std::string_view rest = std::string_view(lower).substr(device.size());
    if (rest == "_runtime") return Kind::kRuntime;
    if (rest == "_driver") return Kind::kDriver;
  }
  return Kind::kOther;
}

bool IsGraphLaunch(std::string_view call) {
  return call.find("GraphLaunch") != std::string_view::npos;
}

std::string_view WhyUnused(std::string_view category) {
  if (category == "cuda_sync") {
    return "Waits of the host for the device; the calls that wait are in the "
           "tables of calls.";
  }
  if (category == kCounterRangeCategory) {
    return "Ranges of counters of the device: counter_kernels has their values "
           "by "
           "kernel.";
  }
  if (category == "npu_sync") {
    return "Waits, records and the moves within collectives of Ascend: no work "
           "of their own.";
  }
  if (category == "dequeue") {
    return "The thread that calls the device for the ops; the work belongs to "
           "Enqueue below the op.";
  }
  if (category == kOsCallCategory) {
    return "Calls of the operating system: the causes of idle time (host) say "
           "in "
           "which of them the launching thread was.";
  }
  if (category == kThreadStateCategory) {
    return "Whether threads were on a processor: the causes of idle time "
           "(host) "
           "say what the launching thread did.";
  }
  return {};
}

Kind KindOfEvent(Kind of_category, std::string_view name) {
  if (of_category != Kind::kOp) return of_category;
  return name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.") ||
                 name.starts_with("enumerate(DataLoader)")
             ? Kind::kAnnotation
             : of_category;
}

Kind ApiKindOf(std::string_view call) {
  const bool driver = (call.starts_with("cu") && call.size() > 2 &&
                       call[2] >= 'A' && call[2] <= 'Z') ||
                      call.starts_with("hsa");
  return driver ? Kind::kDriver : Kind::kRuntime;
}

std::string_view CategoryOf(Kind kind) {
  switch (kind) {
    case Kind::kOp:
      return "cpu_op";
    case Kind::kRuntime:
      return "cuda_runtime";
    case Kind::kDriver:
      return "cuda_driver";
    case Kind::kKernel:
    case Kind::kGraph:
      return "kernel";
    case Kind::kMemcpy:
      return "gpu_memcpy";
    case Kind::kMemset:
      return "gpu_memset";
    case Kind::kPython:
      return "python_function";
    case Kind::kAnnotation:
      return "user_annotation";
    case Kind::kGpuAnnotation:
      return "gpu_user_annotation";
    case Kind::kOverhead:
      return "overhead";
    case Kind::kProfiler:
      return "Trace";
    case Kind::kOther:
      break;
  }
  return "";
}

uint32_t AddSync(const SyncRecord& sync, Segment& segment) {
  ApiArgs row;
  row.correlation = sync.correlation;
  row.stream = sync.stream;
  row.external_id = sync.source_record;
  // The columns of a call have no place for two streams and a device.
  row.kernel = segment.names->Intern(std::to_string(sync.device) + "/" +
                                     std::to_string(sync.source_stream));
  return segment.AddApi(row);
}

std::optional<SyncRecord> SyncOf(const Trace& trace, SliceId s) {
  const uint32_t row = trace.slices.detail[s.value];
  if (trace.KindOf(s) != Kind::kOther || row == kNoRow) return std::nullopt;
  const ApiArgs& api = trace.api_calls[row];
  SyncRecord sync;
  sync.correlation = api.correlation;
  sync.stream = api.stream;
  sync.source_record = api.external_id;
  const std::string_view text = trace.Text(api.kernel);
  const size_t cut = text.find('/');
  if (cut == std::string_view::npos) return sync;
  sync.device = ParseInt(text.substr(0, cut)).value_or(kNoInt);
  sync.source_stream = ParseInt(text.substr(cut + 1)).value_or(kNoInt);
  return sync;
}

}  // namespace lamina::trace
