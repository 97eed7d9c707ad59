// SPDX-License-Identifier: Apache-2.0
//
// The tables of the device: kernels, copies, fills, graph launches, waits,
// sampled metrics.
#include <algorithm>

#include "ingest/nsys/export_file.h"
#include "ingest/nsys/export_thread.h"
#include "trace/sync_record.h"

namespace lamina::ingest::nsys {

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
  ForRows(Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
          {"start", "end", "globalPid", "deviceId", "streamId", "syncType",
           "correlationId"},
          &ExportThread::Sync);
}

void ExportThread::Sync(const Row& row) {
  const int64_t start = row.IntOr(0, kNoInt);
  const int64_t end = row.IntOr(1, kNoInt);
  if (!Usable(start, end)) return;
  const auto label = facts_.syncs.find(row.IntOr(5, 0));
  trace::SyncRecord sync;
  sync.correlation = row.IntOr(6, kNoInt);
  sync.device = row.IntOr(3, kNoInt);
  sync.stream = row.IntOr(4, kNoInt);
  filler_.segment().AddSlice(
      start, end - start,
      filler_.Intern(label == facts_.syncs.end() ? "Sync" : label->second),
      Kind::kOther, names_.InternCategory("cuda_sync"),
      Lane(ProcessOf(row.Int(2)), row.IntOr(3, kNoInt), row.IntOr(4, kNoInt)),
      kNoOffset, trace::AddSync(sync, filler_.segment()));
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

}  // namespace lamina::ingest::nsys
