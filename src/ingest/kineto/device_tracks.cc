// SPDX-License-Identifier: Apache-2.0
//
// Ascend (trace_view.json of torch_npu), rpd2tracing of ROCm, the trace.json of
// XLA, and IBM AIU. README.md lists their tracks.
//
// Ascend launches through a queue: an op of the main thread enqueues, a second
// thread dequeues and calls AscendCL, and a flow leads from that call to the
// device. The call to which work belongs is therefore "Enqueue", below its op:
//
//   device event <- flow HostToDevice <- AscendCL call within Dequeue@...
//                <- flow async_task_queue <- Enqueue
//
// Without the queue AscendCL is called by the thread of the op; its calls stand
// in a process of their own ("CANN") under the same thread id, and are moved to
// the thread of the op.

#include "ingest/kineto/device_tracks.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/text.h"
#include "ingest/kineto/reader.h"
#include "trace/categories.h"

namespace lamina::ingest::kineto {
namespace {

using trace::FlowKind;
using trace::FlowPhase;
using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using trace::SliceId;
using trace::Trace;
using trace::TrackId;

enum class Role : uint8_t {
  kNone,
  kDevice,      // work of a device, one stream per track
  kCollective,  // collectives of a device
  kTask,        // what collectives are made of
  kRange,       // ranges and steps over device work
  kCall,        // calls of the host
  kHost,        // threads of the host in the JSON of XLA
};

// An event that holds no work of the device, though it stands on its track.
bool IsAscendSync(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "NOTIFY_WAIT",    "NOTIFY_RECORD",  "EVENT_WAIT",
      "EVENT_RECORD",   "EVENT_RESET",    "WRITE_VALUE",
      "WAIT_VALUE",     "CAPTURE_WAIT",   "PROFILING_ENABLE",
      "MEM_WAIT_VALUE", "CAPTURE_RECORD", "PROFILING_DISABLE"};
  std::string words(name.substr(0, 32));
  std::replace(words.begin(), words.end(), ' ', '_');
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view one) {
    return EqualsIgnoringCase(words, one);
  });
}

Kind DeviceKind(std::string_view name) {
  if (Contains(name, "MEMSET") || Contains(name, "FillBuffer") ||
      name.starts_with("Memset"))
    return Kind::kMemset;
  const bool copy = Contains(name, "MEMCPY") || name == "SDMA" ||
                    name.starts_with("Memcpy") ||
                    (name.starts_with("Copy") && Contains(name, "To"));
  return copy ? Kind::kMemcpy : Kind::kKernel;
}

// Spans of a track by start.
struct Span {
  int64_t start_ns, end_ns;
  SliceId slice;
};
using Spans = std::vector<Span>;

// The innermost span that holds a time; invalid if none. Spans that nest deeper
// than this before a time are not searched.
SliceId SpanAt(const Spans& spans, int64_t time_ns) {
  constexpr int kDeepest = 256;
  auto it = std::upper_bound(
      spans.begin(), spans.end(), time_ns,
      [](int64_t time, const Span& span) { return time < span.start_ns; });
  for (int i = 0; i < kDeepest && it != spans.begin(); ++i) {
    --it;
    if (it->end_ns >= time_ns) return it->slice;
  }
  return {};
}

class DeviceTracks {
 public:
  explicit DeviceTracks(Trace& trace) : trace_(trace) {}

  void Run() {
    if (!FindRoles()) return;
    ReadSlices();
    SortSpans();
    MoveCalls();
    Link();
    Note();
  }

 private:
  using Place = std::pair<uint32_t, int64_t>;  // track, time

  bool FindRoles();
  Role RoleOf(const trace::Track& track);
  std::vector<StringId> Processes(Role role) const;
  void NumberAscend();
  void ReadSlices();
  void ReadAscend(uint32_t row, std::string_view name);
  void MakeDevice(uint32_t row, Kind kind);
  void MakeCall(uint32_t row);
  void ReadHost(uint32_t row, std::string_view name);
  void SortSpans();
  void MoveCalls();
  void Link();
  SliceId EnqueueOf(SliceId call, int64_t time_ns) const;
  void Join(SliceId call, SliceId work);
  void Note();
  uint8_t Category(std::string_view text);

  int64_t Row(SliceId s) const { return trace_.slices.detail[s.value]; }
  Place PlaceOf(SliceId s) const {
    return {trace_.slices.track[s.value].value, trace_.Start(s)};
  }

  Trace& trace_;
  std::vector<Role> roles_;         // by track
  std::vector<int64_t> device_of_;  // by track
  std::vector<int64_t> stream_of_;  // by track; kNoInt: as the track says
  bool ascend_ = false;
  bool collectives_ = false;     // Ascend wrote its collectives
  StringId python_;              // process of the ops of Ascend
  std::vector<Spans> calls_;     // by track
  std::vector<Spans> dequeues_;  // by track
  std::vector<SliceId> enqueues_;
  std::vector<SliceId> work_;
  // Of a thread of the process python_, by the text of its id.
  absl::flat_hash_map<StringId, TrackId> threads_;
  std::map<std::string, uint8_t, std::less<>> categories_;
  int64_t next_correlation_ = 1;
  size_t waits_ = 0, copies_ = 0, kernels_ = 0, linked_ = 0;
  int64_t events_ns_ = 0;
};

// "GPU2" -> 2, "/device:TPU:0 (...)" -> 0.
std::optional<int64_t> DeviceNumber(std::string_view process) {
  if (process.starts_with("GPU")) return ParseInt(process.substr(3));
  if (!process.starts_with("/device:")) return std::nullopt;
  process.remove_prefix(8);
  const size_t colon = process.find(':');
  if (colon == process.npos) return std::nullopt;
  process.remove_prefix(colon + 1);
  return ParseInt(process.substr(0, process.find_first_not_of("0123456789")));
}

Role DeviceTracks::RoleOf(const trace::Track& track) {
  const std::string_view process = trace_.Text(track.process_name);
  const std::string_view thread = trace_.Text(track.thread_name);
  if (process == "Ascend Hardware") {
    ascend_ = true;
    return Role::kDevice;
  }
  if (process == "CANN") return Role::kCall;
  if (process == "HCCL" || process == "Communication")
    return thread.ends_with("Communication") ? Role::kCollective : Role::kTask;
  if (thread.starts_with("Hip ")) return Role::kCall;
  if (process.starts_with("GPU") && DeviceNumber(process)) return Role::kDevice;
  if (process.starts_with("/device:")) {
    // Lines beside the streams and the ops repeat their time.
    if (thread.starts_with("Stream #") || thread == "XLA Ops")
      return Role::kDevice;
    return thread == "Steps" || thread == "XLA Modules" ? Role::kRange
                                                        : Role::kNone;
  }
  if (process.starts_with("/host:")) return Role::kHost;
  return Role::kNone;
}

bool DeviceTracks::FindRoles() {
  const size_t tracks = trace_.tracks.size();
  roles_.resize(tracks);
  device_of_.assign(tracks, kNoInt);
  stream_of_.assign(tracks, kNoInt);
  bool device = false;
  for (size_t i = 0; i < tracks; ++i) {
    const trace::Track& track = trace_.tracks[i];
    roles_[i] = RoleOf(track);
    device |= roles_[i] == Role::kDevice || roles_[i] == Role::kHost;
    if (trace_.Text(track.process_name) == "Python") {
      python_ = track.pid;
      threads_.try_emplace(track.tid, TrackId(static_cast<uint32_t>(i)));
    }
  }
  if (!device) return false;
  for (size_t i = 0; i < tracks; ++i) {
    if (roles_[i] == Role::kDevice) {
      device_of_[i] = DeviceNumber(trace_.Text(trace_.tracks[i].process_name))
                          .value_or(kNoInt);
    }
  }
  if (ascend_) NumberAscend();
  calls_.resize(tracks);
  dequeues_.resize(tracks);
  return true;
}

// The processes of a role in the order of the viewer.
std::vector<StringId> DeviceTracks::Processes(Role role) const {
  std::vector<std::pair<int64_t, StringId>> order;
  for (size_t i = 0; i < roles_.size(); ++i) {
    const trace::Track& track = trace_.tracks[i];
    if (roles_[i] == role)
      order.emplace_back(track.process_sort.value_or(0), track.pid);
  }
  std::sort(order.begin(), order.end());
  std::vector<StringId> out;
  for (const auto& [sort, pid] : order) {
    if (out.empty() || out.back() != pid) out.push_back(pid);
  }
  return out;
}

// Devices of Ascend have no numbers, and the collectives of a device a process
// of their own: the first process of these belongs to the first device. They
// get streams behind those of the device.
void DeviceTracks::NumberAscend() {
  const std::vector<StringId> devices = Processes(Role::kDevice);
  const std::vector<StringId> groups = Processes(Role::kCollective);
  int64_t last_stream = 0;
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] != Role::kDevice) continue;
    const trace::Track& track = trace_.tracks[i];
    const int64_t stream = ParseInt(trace_.Text(track.tid)).value_or(0);
    last_stream = std::max(last_stream, std::min<int64_t>(stream, 1 << 30));
    device_of_[i] =
        std::find(devices.begin(), devices.end(), track.pid) - devices.begin();
  }
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (roles_[i] != Role::kCollective) continue;
    trace::Track& track = trace_.tracks[i];
    const size_t place =
        std::find(groups.begin(), groups.end(), track.pid) - groups.begin();
    const size_t device = place < devices.size() ? place : 0;
    collectives_ = true;
    device_of_[i] = static_cast<int64_t>(device);
    stream_of_[i] = ++last_stream;
    track.pid = devices[device];
  }
}

uint8_t DeviceTracks::Category(std::string_view text) {
  const auto known = categories_.find(text);
  if (known != categories_.end()) return known->second;
  const StringId id = trace_.strings.Intern(text);
  auto& all = trace_.categories;
  auto it = std::find(all.begin(), all.end(), id);
  // They are numbered in a byte.
  if (it == all.end() && all.size() >= 250) return 0;
  if (it == all.end()) it = all.insert(it, id);
  const auto index = static_cast<uint8_t>(it - all.begin());
  categories_.emplace(text, index);
  return index;
}

void DeviceTracks::MakeDevice(uint32_t row, Kind kind) {
  trace::Slices& slices = trace_.slices;
  trace::DeviceArgs args;
  args.device = device_of_[slices.track[row].value];
  args.stream = stream_of_[slices.track[row].value];
  const uint32_t had = slices.detail[row];
  if (had != kNoRow) {
    args.correlation = trace_.api_calls[had].correlation;
    args.config = trace_.api_calls[had].config;
  }
  slices.kind[row] = kind;
  slices.category[row] = Category(kind == Kind::kKernel   ? "kernel"
                                  : kind == Kind::kMemcpy ? "gpu_memcpy"
                                                          : "gpu_memset");
  slices.detail[row] = static_cast<uint32_t>(trace_.device.size());
  trace_.device.push_back(args);
  work_.push_back(SliceId(row));
  ++(kind == Kind::kKernel ? kernels_ : copies_);
  events_ns_ += slices.dur_ns[row];
}

void DeviceTracks::MakeCall(uint32_t row) {
  trace::Slices& slices = trace_.slices;
  slices.kind[row] = Kind::kRuntime;
  slices.category[row] = Category(ascend_ ? "npu_runtime" : "runtime");
  if (slices.detail[row] != kNoRow) return;
  slices.detail[row] = static_cast<uint32_t>(trace_.api_calls.size());
  trace_.api_calls.push_back({});
}

// What XLA's .xplane.pb has on its host lines, by the same signs: calls have a
// correlation, frames of Python begin with "$", the rest are ranges.
void DeviceTracks::ReadHost(uint32_t row, std::string_view name) {
  trace::Slices& slices = trace_.slices;
  if (slices.detail[row] != kNoRow) {
    slices.kind[row] = trace::ApiKindOf(name);
  } else if (name.starts_with('$')) {
    slices.kind[row] = Kind::kPython;
    slices.detail[row] = static_cast<uint32_t>(trace_.python.size());
    trace_.python.push_back({});
  } else {
    slices.kind[row] = Kind::kAnnotation;
    slices.detail[row] = static_cast<uint32_t>(trace_.ops.size());
    trace_.ops.push_back({});
  }
  slices.category[row] = Category(trace::CategoryOf(slices.kind[row]));
}

void DeviceTracks::ReadAscend(uint32_t row, std::string_view name) {
  // What moves the data of a collective is counted with the collective.
  if (IsAscendSync(name) || (collectives_ && name == "SDMA")) {
    trace_.slices.category[row] = Category("npu_sync");
    ++waits_;
    events_ns_ += trace_.slices.dur_ns[row];
    return;
  }
  MakeDevice(row, DeviceKind(name));
}

void DeviceTracks::ReadSlices() {
  trace::Slices& slices = trace_.slices;
  for (uint32_t row = 0; row < slices.size(); ++row) {
    if (slices.kind[row] != Kind::kOther) continue;
    const TrackId track = slices.track[row];
    const std::string_view category = trace_.Category(SliceId(row));
    // Views of texts may move when one is added.
    const std::string name(trace_.Name(SliceId(row)));
    const Span span{slices.start_ns[row],
                    slices.start_ns[row] + slices.dur_ns[row], SliceId(row)};
    if (ascend_ && category == "enqueue") {
      MakeCall(row);
      enqueues_.push_back(SliceId(row));
    } else if (ascend_ && category == "dequeue") {
      dequeues_[track.value].push_back(span);
    } else if (category.empty()) {
      switch (roles_[track.value]) {
        case Role::kDevice:
          if (ascend_) {
            ReadAscend(row, name);
          } else {
            MakeDevice(row, DeviceKind(name));
          }
          break;
        case Role::kCollective:
          MakeDevice(row, Kind::kKernel);
          break;
        case Role::kTask:
          slices.category[row] = Category("npu_sync");
          break;
        case Role::kRange:
          slices.kind[row] = Kind::kGpuAnnotation;
          slices.category[row] = Category("gpu_user_annotation");
          slices.detail[row] = static_cast<uint32_t>(trace_.ops.size());
          trace_.ops.push_back({});
          break;
        case Role::kCall: {
          MakeCall(row);
          calls_[track.value].push_back(span);
          constexpr std::string_view kPrefix = "AscendCL@";
          if (name.starts_with(kPrefix)) {
            slices.name[row] =
                trace_.strings.Intern(name.substr(kPrefix.size()));
          }
          break;
        }
        case Role::kHost:
          ReadHost(row, name);
          break;
        case Role::kNone:
          break;
      }
    }
  }
}

void DeviceTracks::SortSpans() {
  for (auto* all : {&calls_, &dequeues_}) {
    for (Spans& spans : *all) {
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
        if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
        return a.slice < b.slice;
      });
    }
  }
}

// Calls in the process "CANN" are made by threads of the process of the ops.
void DeviceTracks::MoveCalls() {
  if (!ascend_ || !python_.valid()) return;
  for (size_t track = 0; track < calls_.size(); ++track) {
    const auto thread = threads_.find(trace_.tracks[track].tid);
    if (thread == threads_.end()) continue;
    for (const Span& span : calls_[track])
      trace_.slices.track[span.slice.value] = thread->second;
  }
}

void DeviceTracks::Join(SliceId call, SliceId work) {
  int64_t& id = trace_.api_calls[Row(call)].correlation;
  if (id == kNoInt) id = next_correlation_++;
  trace_.device[Row(work)].correlation = id;
  ++linked_;
}

void DeviceTracks::Link() {
  const trace::Flows& flows = trace_.flows;
  // Where flows to work begin, and where those between queues do.
  absl::flat_hash_map<int64_t, size_t> starts;
  absl::flat_hash_map<Place, SliceId> enqueue_at;
  for (const SliceId s : enqueues_) enqueue_at.emplace(PlaceOf(s), s);
  absl::flat_hash_map<int64_t, SliceId> enqueue_of;  // by id of the flow
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.phase[f] != FlowPhase::kStart) continue;
    if (flows.kind[f] == FlowKind::kLaunch) starts[flows.id[f]] = f;
    if (flows.kind[f] != FlowKind::kOther) continue;
    const auto it = enqueue_at.find({flows.track[f].value, flows.time_ns[f]});
    if (it != enqueue_at.end()) enqueue_of[flows.id[f]] = it->second;
  }
  absl::flat_hash_map<Place, SliceId> enqueued;  // by place of its Dequeue
  absl::flat_hash_map<Place, size_t> ends;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.phase[f] != FlowPhase::kFinish) continue;
    const Place place(flows.track[f].value, flows.time_ns[f]);
    if (flows.kind[f] == FlowKind::kLaunch) ends.emplace(place, f);
    if (flows.kind[f] != FlowKind::kOther) continue;
    const auto it = enqueue_of.find(flows.id[f]);
    if (it != enqueue_of.end()) enqueued.emplace(place, it->second);
  }
  for (const SliceId s : work_) {
    const auto end = ends.find(PlaceOf(s));
    if (end == ends.end()) continue;
    const auto start = starts.find(flows.id[end->second]);
    if (start == starts.end()) continue;
    const TrackId track = flows.track[start->second];
    const int64_t time_ns = flows.time_ns[start->second];
    SliceId call;
    const auto thread = threads_.find(trace_.tracks[track.value].tid);
    if (ascend_ && thread != threads_.end()) {
      const SliceId dequeue = SpanAt(dequeues_[thread->second.value], time_ns);
      if (dequeue.valid()) {
        const auto from = enqueued.find(PlaceOf(dequeue));
        if (from != enqueued.end()) call = from->second;
      }
    }
    if (!call.valid()) call = SpanAt(calls_[track.value], time_ns);
    if (call.valid()) Join(call, s);
  }
}

void DeviceTracks::Note() {
  if (!ascend_) return;
  trace_.diagnostics.Add(
      trace::Effect::kInfo, "ascend_events",
      fmt::format("Events of Ascend Hardware, {} in all: {} kernels, {} copies "
                  "and fills, {} that wait or record, which are no work.",
                  HumanTime(events_ns_), kernels_, copies_, waits_),
      trace::Diagnostics::kNoOffset, kernels_ + copies_ + waits_);
}

}  // namespace

void ReadDeviceTracks(Trace& trace) { DeviceTracks(trace).Run(); }

}  // namespace lamina::ingest::kineto
