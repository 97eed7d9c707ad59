// SPDX-License-Identifier: Apache-2.0
//
// The tables of the device: kernels, copies, fills, graph launches, waits,
// sampled metrics.
#include <algorithm>

#include "ingest/nsys/export_file.h"
#include "ingest/nsys/names.h"

namespace lamina::ingest::nsys {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

namespace {

uint32_t Extent(std::optional<int64_t> value) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(value.value_or(1), 0, 0xFFFFFFFF));
}

}  // namespace

void ExportFile::ReadKernels() {
  trace::Segment& segment = filler_.segment();
  trace::LocalNames& names = filler_.names();
  const uint8_t category = names.InternCategory(filler_.Intern("kernel"));
  const DatabaseTable* table = Table("CUPTI_ACTIVITY_KIND_KERNEL");
  const bool has_config = table != nullptr && table->Has("gridX");
  ForRows(table,
          {"start",
           "end",
           "globalPid",
           "deviceId",
           "contextId",
           "streamId",
           "correlationId",
           "demangledName",
           "shortName",
           "graphNodeId",
           "graphId",
           "gridX",
           "gridY",
           "gridZ",
           "blockX",
           "blockY",
           "blockZ",
           "registersPerThread",
           "staticSharedMemory",
           "dynamicSharedMemory"},
          [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            Process& process = ProcessOf(rows.Int(2));
            trace::DeviceArgs args;
            args.device = rows.IntOr(3, kNoInt);
            args.context = rows.IntOr(4, kNoInt);
            args.stream = rows.IntOr(5, kNoInt);
            args.correlation = Correlation(process, rows.Int(6));
            args.graph_node_id = rows.IntOr(9, kNoInt);
            args.graph_id = rows.IntOr(10, kNoInt);
            // Zero means that the kernel belongs to no graph.
            if (args.graph_id == 0) args.graph_id = kNoInt;
            if (args.graph_node_id == 0) args.graph_node_id = kNoInt;
            if (has_config) {
              trace::LaunchConfig config;
              for (int i = 0; i < 3; ++i) {
                const auto axis = static_cast<size_t>(i);
                config.grid[axis] = Extent(rows.Int(11 + i));
                config.block[axis] = Extent(rows.Int(14 + i));
              }
              config.registers_per_thread = rows.IntOr(17, kNoInt);
              const auto fixed = rows.Int(18);
              const auto dynamic = rows.Int(19);
              constexpr int64_t kMost = int64_t{1} << 40;
              if ((fixed || dynamic) && fixed.value_or(0) <= kMost &&
                  dynamic.value_or(0) <= kMost && fixed.value_or(0) >= 0 &&
                  dynamic.value_or(0) >= 0)
                config.shared_memory_bytes =
                    fixed.value_or(0) + dynamic.value_or(0);
              args.config = names.InternConfig(config);
            }
            StringId name = NameOf(rows, 7);
            if (!name.valid()) name = NameOf(rows, 8);
            if (!name.valid()) name = filler_.Intern("(unnamed kernel)");
            segment.AddSlice(start, end - start, name, Kind::kKernel, category,
                             Lane(process, args.device, args.stream), kNoOffset,
                             segment.AddDevice(args));
          });
}

void ExportFile::ReadCopies() {
  trace::Segment& segment = filler_.segment();
  const uint8_t category =
      filler_.names().InternCategory(filler_.Intern("gpu_memcpy"));
  std::map<int64_t, std::string> directions = {
      {1, "HtoD"},          {2, "DtoH"},          {3, "HtoA"},
      {4, "AtoH"},          {5, "AtoA"},          {6, "AtoD"},
      {7, "DtoA"},          {8, "DtoD"},          {9, "HtoH"},
      {10, "PtoP"},         {11, "Unified HtoD"}, {12, "Unified DtoH"},
      {13, "Unified DtoD"},
  };
  for (const auto& [id, entry] : Entries("ENUM_CUDA_MEMCPY_OPER", "name"))
    directions[id] = CopyDirection(entry);
  const auto kind_of = [&](std::optional<int64_t> id) -> std::string {
    const auto it = memory_kinds_.find(id.value_or(-1));
    return it == memory_kinds_.end() ? "Unknown" : it->second;
  };
  std::map<std::tuple<int64_t, int64_t, int64_t>, StringId> known;
  ForRows(Table("CUPTI_ACTIVITY_KIND_MEMCPY"),
          {"start", "end", "globalPid", "deviceId", "contextId", "streamId",
           "correlationId", "graphNodeId", "bytes", "copyKind", "srcKind",
           "dstKind"},
          [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            Process& process = ProcessOf(rows.Int(2));
            trace::DeviceArgs args;
            args.device = rows.IntOr(3, kNoInt);
            args.context = rows.IntOr(4, kNoInt);
            args.stream = rows.IntOr(5, kNoInt);
            args.correlation = Correlation(process, rows.Int(6));
            args.graph_node_id = rows.IntOr(7, kNoInt);
            if (args.graph_node_id == 0) args.graph_node_id = kNoInt;
            args.bytes = rows.IntOr(8, kNoInt);
            const auto from = rows.Int(10);
            const auto to = rows.Int(11);
            constexpr size_t kMostNames = 4096;
            if (known.size() > kMostNames) known.clear();
            StringId& name =
                known[{rows.IntOr(9, 0), from.value_or(-1), to.value_or(-1)}];
            if (!name.valid()) {
              const auto direction = directions.find(rows.IntOr(9, 0));
              std::string text = "Memcpy";
              if (direction != directions.end())
                text += " " + direction->second;
              if (from || to)
                text += " (" + kind_of(from) + " -> " + kind_of(to) + ")";
              name = filler_.Intern(text);
            }
            segment.AddSlice(start, end - start, name, Kind::kMemcpy, category,
                             Lane(process, args.device, args.stream), kNoOffset,
                             segment.AddDevice(args));
          });
}

void ExportFile::ReadFills() {
  trace::Segment& segment = filler_.segment();
  const uint8_t category =
      filler_.names().InternCategory(filler_.Intern("gpu_memset"));
  ForRows(Table("CUPTI_ACTIVITY_KIND_MEMSET"),
          {"start", "end", "globalPid", "deviceId", "contextId", "streamId",
           "correlationId", "graphNodeId", "bytes", "memKind"},
          [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            Process& process = ProcessOf(rows.Int(2));
            trace::DeviceArgs args;
            args.device = rows.IntOr(3, kNoInt);
            args.context = rows.IntOr(4, kNoInt);
            args.stream = rows.IntOr(5, kNoInt);
            args.correlation = Correlation(process, rows.Int(6));
            args.graph_node_id = rows.IntOr(7, kNoInt);
            if (args.graph_node_id == 0) args.graph_node_id = kNoInt;
            args.bytes = rows.IntOr(8, kNoInt);
            const auto kind = memory_kinds_.find(rows.IntOr(9, -1));
            segment.AddSlice(
                start, end - start,
                filler_.Intern(kind == memory_kinds_.end()
                                   ? "Memset"
                                   : "Memset (" + kind->second + ")"),
                Kind::kMemset, category,
                Lane(process, args.device, args.stream), kNoOffset,
                segment.AddDevice(args));
          });
}

void ExportFile::ReadGraphRuns() {
  trace::Segment& segment = filler_.segment();
  const uint8_t category =
      filler_.names().InternCategory(filler_.Intern("graph"));
  ForRows(Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
          {"start", "end", "globalPid", "deviceId", "contextId", "streamId",
           "correlationId", "graphId"},
          [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            Process& process = ProcessOf(rows.Int(2));
            trace::DeviceArgs args;
            args.device = rows.IntOr(3, kNoInt);
            args.context = rows.IntOr(4, kNoInt);
            args.stream = rows.IntOr(5, kNoInt);
            args.correlation = Correlation(process, rows.Int(6));
            args.graph_id = rows.IntOr(7, kNoInt);
            std::string name = "CUDA graph";
            if (args.graph_id != kNoInt)
              name += " " + std::to_string(args.graph_id);
            segment.AddSlice(start, end - start, filler_.Intern(name),
                             Kind::kGraph, category,
                             Lane(process, args.device, args.stream), kNoOffset,
                             segment.AddDevice(args));
          });
}

void ExportFile::ReadSyncs() {
  const uint8_t category =
      filler_.names().InternCategory(filler_.Intern("cuda_sync"));
  std::map<int64_t, std::string> labels = {{1, "Event sync"},
                                           {2, "Stream wait sync"},
                                           {3, "Stream sync"},
                                           {4, "Context sync"}};
  for (auto& [id, label] : Entries("ENUM_CUPTI_SYNC_TYPE", "label"))
    labels[id] = std::move(label);
  ForRows(Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
          {"start", "end", "globalPid", "deviceId", "streamId", "syncType"},
          [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            const auto label = labels.find(rows.IntOr(5, 0));
            filler_.segment().AddSlice(
                start, end - start,
                filler_.Intern(label == labels.end() ? "Sync" : label->second),
                Kind::kOther, category,
                Lane(ProcessOf(rows.Int(2)), rows.IntOr(3, kNoInt),
                     rows.IntOr(4, kNoInt)),
                kNoOffset);
          });
}

void ExportFile::ReadMetrics() {
  std::map<std::pair<int64_t, int64_t>, StringId> metrics;
  constexpr size_t kMostMetrics = 4096;
  Rows known = database_.Scan(Table("TARGET_INFO_GPU_METRICS"),
                              {"typeId", "metricId", "metricName"});
  while (metrics.size() < kMostMetrics && known.Next()) {
    if (const auto name = known.Text(2))
      metrics[{known.IntOr(0, 0), known.IntOr(1, 0)}] = filler_.Intern(*name);
  }
  if (metrics.empty()) return;
  const StringId series = filler_.Intern("value");
  ForRows(Table("GPU_METRICS"), {"timestamp", "typeId", "metricId", "value"},
          [&](const Rows& rows) {
            const auto time = rows.Int(0);
            const auto value = rows.Real(3);
            const int64_t type = rows.IntOr(1, 0);
            const auto metric = metrics.find({type, rows.IntOr(2, 0)});
            if (!time || !value || metric == metrics.end()) return;
            // The low byte of the type counts the devices.
            filler_.AddCounter(*time, metric->second, series,
                               Lane(ProcessOf(0), type & 0xFF, kNoInt), *value);
          });
}

}  // namespace lamina::ingest::nsys
