// SPDX-License-Identifier: Apache-2.0
//
// Tables of the device (kernels, copies, fills, waits, graphs) and of the host
// (calls, ranges) as records, row by row.

#include <algorithm>

#include "base/text.h"
#include "ingest/nsys/export_facts.h"
#include "ingest/nsys/export_file.h"
#include "trace/sync_record.h"

namespace lamina::ingest::nsys {

// The tables of the device: kernels, copies, fills, graph launches, waits,
// sampled metrics.

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

namespace {

// The first columns of a pass over work of the device.
#define LAMINA_NSYS_WORK                                            \
  "start", "end", "globalPid", "deviceId", "contextId", "streamId", \
      "correlationId", "graphNodeId"
constexpr int kOwn = 8;  // the first column of the table's own

uint32_t Extent(std::optional<int64_t> value) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(value.value_or(1), 0, 0xFFFFFFFF));
}

}  // namespace

bool ExportThread::WorkOf(const Row& row, Work& work) {
  const int64_t start = row.IntOr(0, kNoInt);
  const int64_t end = row.IntOr(1, kNoInt);
  if (!Usable(start, end)) return false;
  const Process process = ProcessOf(row.Int(2));
  work.start_ns = start;
  work.dur_ns = end - start;
  trace::DeviceArgs& args = work.args;
  args.device = row.IntOr(3, kNoInt);
  args.context = row.IntOr(4, kNoInt);
  args.stream = row.IntOr(5, kNoInt);
  args.correlation = Correlation(process, row.Int(6));
  args.graph_node_id = row.IntOr(7, kNoInt);
  // Zero means that the work belongs to no graph.
  if (args.graph_node_id == 0) args.graph_node_id = kNoInt;
  work.lane = Lane(process, args.device, args.stream);
  return true;
}

void ExportThread::AddWork(const Work& work, StringId name, Kind kind,
                           std::string_view category) {
  trace::Segment& segment = filler_.segment();
  segment.AddSlice(work.start_ns, work.dur_ns, name, kind,
                   names_.InternCategory(category), work.lane, kNoOffset,
                   segment.AddDevice(work.args));
}

void ExportFile::ReadKernels() {
  ForRows(Table("CUPTI_ACTIVITY_KIND_KERNEL"),
          {LAMINA_NSYS_WORK, "demangledName", "shortName", "graphId", "gridX",
           "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
           "staticSharedMemory", "dynamicSharedMemory"},
          &ExportThread::Kernel);
}

void ExportThread::Kernel(const Row& row) {
  Work work;
  if (!WorkOf(row, work)) return;
  work.args.graph_id = row.IntOr(kOwn + 2, kNoInt);
  if (work.args.graph_id == 0) work.args.graph_id = kNoInt;
  if (facts_.has_config) work.args.config = LaunchConfigOf(row, kOwn + 3);
  StringId name = NameOf(row, kOwn);
  if (!name.valid()) name = NameOf(row, kOwn + 1);
  if (!name.valid()) name = filler_.Intern("(unnamed kernel)");
  AddWork(work, name, Kind::kKernel, "kernel");
}

uint32_t ExportThread::LaunchConfigOf(const Row& row, int first) {
  trace::LaunchConfig config;
  for (int i = 0; i < 3; ++i) {
    const auto axis = static_cast<size_t>(i);
    config.grid[axis] = Extent(row.Int(first + i));
    config.block[axis] = Extent(row.Int(first + 3 + i));
  }
  config.registers_per_thread = row.IntOr(first + 6, kNoInt);
  const auto fixed = row.Int(first + 7);
  const auto dynamic = row.Int(first + 8);
  constexpr int64_t kMost = int64_t{1} << 40;
  if ((fixed || dynamic) && fixed.value_or(0) <= kMost &&
      dynamic.value_or(0) <= kMost && fixed.value_or(0) >= 0 &&
      dynamic.value_or(0) >= 0)
    config.shared_memory_bytes = fixed.value_or(0) + dynamic.value_or(0);
  return names_.InternConfig(config);
}

void ExportFile::ReadCopies() {
  ForRows(Table("CUPTI_ACTIVITY_KIND_MEMCPY"),
          {LAMINA_NSYS_WORK, "bytes", "copyKind", "srcKind", "dstKind"},
          &ExportThread::Copy);
}

void ExportThread::Copy(const Row& row) {
  Work work;
  if (!WorkOf(row, work)) return;
  work.args.bytes = row.IntOr(kOwn, kNoInt);
  const StringId name =
      CopyName(row.IntOr(kOwn + 1, 0), row.Int(kOwn + 2), row.Int(kOwn + 3));
  AddWork(work, name, Kind::kMemcpy, "gpu_memcpy");
}

StringId ExportThread::CopyName(int64_t kind, std::optional<int64_t> from,
                                std::optional<int64_t> to) {
  constexpr size_t kMostNames = 4096;
  if (copies_.size() > kMostNames) copies_.clear();
  StringId& name = copies_[{kind, from.value_or(-1), to.value_or(-1)}];
  if (name.valid()) return name;
  const auto kind_of = [&](std::optional<int64_t> id) -> std::string {
    const auto it = facts_.memory_kinds.find(id.value_or(-1));
    return it == facts_.memory_kinds.end() ? "Unknown" : it->second;
  };
  const auto direction = facts_.directions.find(kind);
  std::string text = "Memcpy";
  if (direction != facts_.directions.end()) text += " " + direction->second;
  if (from || to) text += " (" + kind_of(from) + " -> " + kind_of(to) + ")";
  return name = filler_.Intern(text);
}

void ExportFile::ReadFills() {
  ForRows(Table("CUPTI_ACTIVITY_KIND_MEMSET"),
          {LAMINA_NSYS_WORK, "bytes", "memKind"}, &ExportThread::Fill);
}

void ExportThread::Fill(const Row& row) {
  Work work;
  if (!WorkOf(row, work)) return;
  work.args.bytes = row.IntOr(kOwn, kNoInt);
  const auto kind = facts_.memory_kinds.find(row.IntOr(kOwn + 1, -1));
  AddWork(work,
          filler_.Intern(kind == facts_.memory_kinds.end()
                             ? "Memset"
                             : "Memset (" + kind->second + ")"),
          Kind::kMemset, "gpu_memset");
}

void ExportFile::ReadGraphRuns() {
  ForRows(Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
          {LAMINA_NSYS_WORK, "graphId"}, &ExportThread::GraphRun);
}

void ExportThread::GraphRun(const Row& row) {
  Work work;
  if (!WorkOf(row, work)) return;
  work.args.graph_id = row.IntOr(kOwn, kNoInt);
  std::string name = "CUDA graph";
  if (work.args.graph_id != kNoInt)
    name += " " + std::to_string(work.args.graph_id);
  AddWork(work, filler_.Intern(name), Kind::kGraph, "graph");
}

void ExportFile::ReadSyncs() {
  const DatabaseTable* const waits =
      Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
  if (waits == nullptr) return;
  facts_.SetEventRecords(Collect<EventRecord>(
      Table("CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
      {"globalPid", "eventId", "eventSyncId", "correlationId", "streamId"},
      &ExportThread::Recorded));
  ForRows(waits,
          {"start", "end", "globalPid", "deviceId", "streamId", "syncType",
           "correlationId", "eventId", "eventSyncId"},
          &ExportThread::Sync);
}

void ExportThread::Recorded(const Row& row, std::vector<EventRecord>& records) {
  const auto event = row.Int(1);
  const auto correlation = row.Int(3);
  if (!event || !correlation) return;
  records.push_back({row.IntOr(0, 0) & ~kThreadMask, *event, row.IntOr(2, 0),
                     *correlation, row.IntOr(4, kNoInt)});
}

void ExportThread::Sync(const Row& row) {
  const int64_t start = row.IntOr(0, kNoInt);
  const int64_t end = row.IntOr(1, kNoInt);
  if (!Usable(start, end)) return;
  const auto label = facts_.syncs.find(row.IntOr(5, 0));
  const Process process = ProcessOf(row.Int(2));
  trace::SyncRecord sync;
  sync.correlation = Correlation(process, row.Int(6));
  sync.device = row.IntOr(3, kNoInt);
  sync.stream = row.IntOr(4, kNoInt);
  const EventRecord* const record =
      facts_.RecordOf({row.IntOr(2, 0) & ~kThreadMask, row.IntOr(7, -1),
                       row.IntOr(8, 0), row.IntOr(6, 0), kNoInt});
  if (record != nullptr) {
    sync.source_stream = record->stream;
    sync.source_record = Correlation(process, record->correlation);
  }
  filler_.segment().AddSlice(
      start, end - start,
      filler_.Intern(label == facts_.syncs.end() ? "Sync" : label->second),
      Kind::kOther, names_.InternCategory("cuda_sync"),
      Lane(process, row.IntOr(3, kNoInt), row.IntOr(4, kNoInt)), kNoOffset,
      trace::AddSync(sync, filler_.segment()));
}

void ExportFile::ReadMetrics() {
  if (facts_.metrics.empty()) return;
  ForRows(Table("GPU_METRICS"), {"timestamp", "typeId", "metricId", "value"},
          &ExportThread::Metric);
}

void ExportThread::Metric(const Row& row) {
  const auto time = row.Int(0);
  const auto value = row.Real(3);
  const int64_t type = row.IntOr(1, 0);
  const auto metric = facts_.metrics.find({type, row.IntOr(2, 0)});
  if (!time || !value || metric == facts_.metrics.end()) return;
  // The low byte of the type counts the devices.
  filler_.AddCounter(*time, filler_.Intern(metric->second),
                     filler_.Intern("value"),
                     Lane(ProcessOf(0), type & 0xFF, kNoInt), *value);
}

// The tables of the host: NVTX ranges, CUDA calls, the recorder's own work.

using trace::Kind;
using trace::kNoInt;

namespace {

// ENUM_NSYS_EVENT_TYPE; the same in all versions seen.
enum NvtxType : int64_t {
  kNvtxMark = 34,
  kNvtxThread = 39,
  kNvtxPushPop = 59,
  kNvtxStartEnd = 60,
};

}  // namespace

void ExportFile::ReadRanges() {
  open_ranges_ = Collect<OpenRange>(Table("NVTX_EVENTS"),
                                    {"start", "end", "eventType", "text",
                                     "textId", "globalTid", "endGlobalTid"},
                                    &ExportThread::Range);
}

void ExportThread::Range(const Row& row, std::vector<OpenRange>& open) {
  AddRange(row, open);
  Next();
}

void ExportThread::AddRange(const Row& row, std::vector<OpenRange>& open) {
  const int64_t type = row.IntOr(2, 0);
  const bool range = type == kNvtxPushPop || type == kNvtxStartEnd;
  if (!range && type != kNvtxMark && type != kNvtxThread) return;
  const auto start = row.Int(0);
  const auto end = row.Int(1);
  const int64_t global_tid = row.IntOr(5, 0);
  const trace::TrackId track = Thread(global_tid);
  auto text = row.Text(3);
  if (!text) {
    const StringId registered = strings_.Find(row.Int(4));
    if (registered.valid()) text = names_.Text(registered);
  }
  if (type == kNvtxThread) {
    if (text) {
      NameTrack(track, trace::TrackFact::What::kThreadName,
                filler_.Intern(*text));
    }
  } else if (!start) {
    filler_.Usable(0, -1);
  } else if (type == kNvtxMark) {
    filler_.AddInstant(*start, filler_.Intern(text.value_or("")), track);
  } else if (!end) {
    open.push_back({*start, global_tid, std::string(text.value_or(""))});
  } else if (Usable(*start, *end)) {
    if (const auto end_tid = row.Int(6);
        end_tid && *end_tid != 0 && *end_tid != global_tid) {
      filler_.segment().diagnostics.Add(
          trace::Effect::kInfo, "range_of_two_threads",
          "An NVTX range began on one thread and ended on another: it stands "
          "on the thread that began it, and work that others launched is not "
          "counted in it.");
    }
    ranges_.Add(filler_.segment(), *start, *end, track, text.value_or(""));
  }
}

void ExportFile::CloseOpenRanges() {
  const int64_t last_ns = Recorded().end_ns;
  reader_.ForPieces(1, [&](int worker, size_t) {
    for (const OpenRange& range : open_ranges_)
      Thread(worker).CloseRange(range, last_ns);
  });
  open_ranges_.clear();
}

void ExportThread::CloseRange(const OpenRange& range, int64_t last_ns) {
  filler_.segment().diagnostics.Add(
      trace::Effect::kRepaired, "range_without_end",
      "An NVTX range was open when the recording ended; it is taken to last "
      "to the end.");
  const int64_t end = std::max(range.start_ns, last_ns);
  if (!filler_.Usable(range.start_ns, end)) return;
  filler_.segment().AddSlice(range.start_ns, end - range.start_ns,
                             filler_.Intern(range.text), Kind::kAnnotation,
                             names_.InternCategory("user_annotation"),
                             Thread(range.global_tid), kNoOffset);
  Next();
}

// --------------------------------------------------------------------------

void ExportFile::ReadCalls() {
  std::vector<CallRow> calls =
      Collect<CallRow>(Table("CUPTI_ACTIVITY_KIND_RUNTIME"),
                       {"start", "end", "globalTid", "correlationId", "nameId"},
                       &ExportThread::Call);
  if (const uint64_t clipped = ClipOverlaps(calls); clipped > 0) {
    reader_.builder().diagnostics().Add(
        trace::Effect::kRepaired, "calls_overlap",
        "A CUDA call began before the previous one of its thread had ended; "
        "the earlier one is taken to end there.",
        trace::Diagnostics::kNoOffset, clipped);
  }
  constexpr size_t kCallsPerPiece = 1 << 14;
  const size_t pieces = (calls.size() + kCallsPerPiece - 1) / kCallsPerPiece;
  reader_.ForPieces(pieces, [&](int worker, size_t piece) {
    const size_t end = std::min(calls.size(), (piece + 1) * kCallsPerPiece);
    for (size_t i = piece * kCallsPerPiece; i < end; ++i)
      Thread(worker).AddCall(calls[i]);
  });
}

void ExportThread::Call(const Row& row, std::vector<CallRow>& calls) {
  const int64_t start = row.IntOr(0, kNoInt);
  const int64_t end = row.IntOr(1, kNoInt);
  if (!Usable(start, end)) return Next();
  StringId name = NameOf(row, 4);
  if (!name.valid()) name = filler_.Intern("(unnamed call)");
  calls.push_back(
      {start, end, row.IntOr(2, 0), row.IntOr(3, kNoInt), SharedName(name)});
}

uint32_t ExportThread::SharedName(StringId name) {
  constexpr uint32_t kUnknown = StringId::kNone;
  if (name.value >= shared_.size()) shared_.resize(name.value + 1, kUnknown);
  uint32_t& number = shared_[name.value];
  if (number == kUnknown) number = facts_.ShareName(names_.Text(name));
  return number;
}

void ExportThread::AddCall(const CallRow& call) {
  if (call.name >= apis_.size()) apis_.resize(facts_.shared_names());
  Api& api = apis_[call.name];
  if (!api.name.valid()) {
    const auto plain = PlainApiName(facts_.SharedName(call.name));
    api = {filler_.Intern(plain), IsDriverCall(plain)};
  }
  trace::ApiArgs args;
  args.correlation = Correlation(ProcessOf(call.global_tid), call.correlation);
  trace::Segment& segment = filler_.segment();
  segment.AddSlice(
      call.start_ns, call.end_ns - call.start_ns, api.name,
      api.driver ? Kind::kDriver : Kind::kRuntime,
      names_.InternCategory(api.driver ? "cuda_driver" : "cuda_runtime"),
      Thread(call.global_tid), kNoOffset, segment.AddApi(args));
  Next();
}

// --------------------------------------------------------------------------

void ExportFile::ReadGraphNodes() {
  ForRows(Table("CUDA_GRAPH_NODE_EVENTS"),
          {"start", "globalTid", "graphNodeId", "originalGraphNodeId"},
          &ExportThread::GraphNode);
}

void ExportThread::GraphNode(const Row& row) {
  const auto start = row.Int(0);
  const auto id = row.Int(2);
  if (!start || !id || !trace::IsUsableTime(*start)) return;
  trace::GraphNode node;
  node.id = *id;
  node.original = row.IntOr(3, kNoInt);
  if (node.original == 0 || node.original == node.id) node.original = kNoInt;
  node.start_ns = *start;
  node.track = Thread(row.IntOr(1, 0));
  filler_.segment().graph_nodes.push_back(node);
}

void ExportFile::ReadOverhead() {
  ForRows(Table("CUPTI_ACTIVITY_KIND_OVERHEAD"),
          {"start", "end", "globalTid", "overheadType"},
          &ExportThread::Overhead);
}

void ExportThread::Overhead(const Row& row) {
  const int64_t start = row.IntOr(0, kNoInt);
  const int64_t end = row.IntOr(1, kNoInt);
  if (!Usable(start, end)) return;
  const auto kind = facts_.overheads.find(row.IntOr(3, -1));
  filler_.segment().AddSlice(
      start, end - start,
      filler_.Intern(kind == facts_.overheads.end() ? "overhead"
                                                    : kind->second),
      Kind::kOverhead, names_.InternCategory("overhead"),
      Thread(row.IntOr(2, 0)), kNoOffset);
}

void ExportFile::ReadMemory() {
  ForRows(Table("CUDA_GPU_MEMORY_USAGE_EVENTS"),
          {"start", "globalPid", "deviceId", "address", "bytes",
           "memoryOperationType", "memKind"},
          &ExportThread::Memory);
}

void ExportThread::Memory(const Row& row) {
  constexpr int64_t kDeallocation = 1;
  constexpr int64_t kDeviceMemory = 2;
  const auto start = row.Int(0);
  const auto bytes = row.Int(4);
  if (!start || !bytes || *bytes < 0 || !trace::IsUsableTime(*start)) {
    filler_.Usable(0, -1);
    return;
  }
  const int64_t device = row.IntOr(2, kNoInt);
  trace::MemoryArgs args;
  args.bytes = row.IntOr(5, 0) == kDeallocation ? -*bytes : *bytes;
  args.address = row.IntOr(3, kNoInt);
  args.device_type = 1;
  args.device_id =
      device >= 0 && device < 1 << 20 ? static_cast<int32_t>(device) : -1;
  // Of the driver: the caching allocator above it is not recorded.
  const auto kind = facts_.memory_kinds.find(row.IntOr(6, kDeviceMemory));
  std::string name = "[driver memory]";
  if (kind == facts_.memory_kinds.end())
    name = "[driver memory, other]";
  else if (kind->first != kDeviceMemory)
    name = "[driver memory, " + LowerCase(kind->second) + "]";
  filler_.AddInstant(*start, filler_.Intern(name),
                     Lane(ProcessOf(row.Int(1)), device, kNoInt),
                     filler_.segment().AddMemory(args));
}

}  // namespace lamina::ingest::nsys
