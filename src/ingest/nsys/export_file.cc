// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/export_file.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/escape.h"
#include "ingest/common/database_trace.h"

namespace lamina::ingest::nsys {

using trace::Effect;
using trace::kNoInt;

ExportFile::ExportFile(TableReader* reader)
    : reader_(*reader), database_(reader->database(0)), facts_(reader) {
  for (int worker = 0; worker < reader->workers(); ++worker)
    threads_.emplace_back(&facts_, reader, worker);
}

void ExportFile::ForRows(const DatabaseTable* table, Columns columns,
                         void (ExportThread::*read)(const Row&)) {
  EndTable(reader_.ForEach(
      table, columns,
      [&](int worker, size_t piece) -> TableReader::RowFunction {
        ExportThread& thread = Thread(worker);
        thread.BeginPiece(piece);
        return [&thread, read](const Row& row) {
          (thread.*read)(row);
          thread.Next();
        };
      }));
}

void ExportFile::EndTable(size_t count) {
  for (ExportThread& thread : threads_) thread.EndTable(count);
}

Interval ExportFile::Recorded() const {
  std::optional<Interval> all;
  for (const ExportThread& thread : threads_) {
    const auto& own = thread.recorded();
    if (!own) continue;
    if (!all) all = own;
    all->start_ns = std::min(all->start_ns, own->start_ns);
    all->end_ns = std::max(all->end_ns, own->end_ns);
  }
  return all.value_or(Interval());
}

std::set<int64_t> ExportFile::KnownThreads() const {
  std::set<int64_t> known;
  for (const ExportThread& thread : threads_)
    known.insert(thread.threads().begin(), thread.threads().end());
  return known;
}

void ExportFile::ReadTrackNames() {
  facts_.threads = KnownThreads();
  ForRows(Table("ThreadNames"), {"globalTid", "nameId"},
          &ExportThread::ThreadName);
  ForRows(Table("PROCESSES"), {"globalPid", "name"},
          &ExportThread::ProcessName);
}

void ExportThread::ThreadName(const Row& row) {
  const int64_t id = row.IntOr(0, kNoInt);
  if (facts_.threads.contains(id)) {
    NameTrack(Thread(id), trace::TrackFact::What::kThreadName, NameOf(row, 1));
  }
}

// The file name of the program; its folder is nobody's business.
void ExportThread::ProcessName(const Row& row) {
  const int64_t key = row.IntOr(0, 0) & ~kThreadMask;
  const auto text = row.Text(1);
  const auto thread = facts_.threads.lower_bound(key);
  if (!text || thread == facts_.threads.end() ||
      (*thread & ~kThreadMask) != key)
    return;
  const std::string_view name = text->substr(text->find_last_of("/\\") + 1);
  NameTrack(Thread(*thread), trace::TrackFact::What::kProcessName,
            filler_.Intern(name.substr(0, name.find(' '))));
}

// --------------------------------------------------------------------------
// Facts about the recording.

void ExportFile::NoteFacts() {
  NoteSource();
  NoteMissing();
  NoteUnread();
}

void ExportFile::NoteSource() {
  trace::Info& info = reader_.builder().info();
  std::string product, schema;
  Rows meta = database_.Scan(Table("META_DATA_EXPORT"), {"name", "value"});
  while (meta.Next()) {
    const auto name = meta.Text(0);
    const auto value = meta.Text(1);
    if (!name || !value || value->size() > 60) continue;
    if (*name == "EXPORT_PRODUCT_VERSION") product = *value;
    if (*name == "EXPORT_SCHEMA_VERSION") schema = *value;
  }
  std::string text = "Written by Nsight Systems";
  if (!product.empty()) text += " " + product;
  if (!schema.empty()) text += ", schema " + schema;
  diagnostics().Add(Effect::kInfo, "nsys_export", text + ".");

  constexpr size_t kMostFacts = 1000, kLongestFact = 4096;
  for (const char* const table :
       {"TARGET_INFO_SYSTEM_ENV", "META_DATA_CAPTURE"}) {
    Rows facts = database_.Scan(Table(table), {"name", "value"});
    while (info.properties.size() < kMostFacts && facts.Next()) {
      const auto name = facts.Text(0);
      const auto value = facts.Text(1);
      if (name && value && value->size() <= kLongestFact)
        info.properties.emplace_back(*name, JsonQuote(*value));
    }
  }

  Rows session =
      database_.Scan(Table("TARGET_INFO_SESSION_START_TIME"), {"utcEpochNs"});
  if (session.Next()) info.base_time_ns = session.Int(0);

  Rows gpus = database_.Scan(
      Table("TARGET_INFO_GPU"),
      {"id", "cuDevice", "name", "totalMemory", "memoryBandwidth", "smCount",
       "clockRate", "computeMajor", "computeMinor"});
  constexpr size_t kMostDevices = 4096;
  while (info.devices.size() < kMostDevices && gpus.Next()) {
    trace::DeviceInfo device;
    device.id = gpus.Int(1).value_or(gpus.IntOr(0, 0));
    device.name = gpus.Text(2).value_or("");
    device.memory_bytes = gpus.IntOr(3, kNoInt);
    device.memory_bandwidth_bytes_per_s = gpus.IntOr(4, kNoInt);
    device.sm_count = gpus.IntOr(5, kNoInt);
    // The column is in Hz.
    if (const auto hertz = gpus.Int(6)) device.clock_khz = *hertz / 1000;
    device.compute_major = gpus.IntOr(7, kNoInt);
    device.compute_minor = gpus.IntOr(8, kNoInt);
    info.devices.push_back(std::move(device));
  }
}

void ExportFile::NoteMissing() {
  std::set<int64_t> on_device;
  for (const ExportThread& thread : threads_)
    on_device.insert(thread.device_users().begin(),
                     thread.device_users().end());
  if (on_device.size() > 1) {
    diagnostics().Add(Effect::kInfo, "processes_on_devices",
                      "Several processes used a GPU: the sums are over all of "
                      "them.",
                      trace::Diagnostics::kNoOffset, on_device.size());
  }
  // What was asked for when it was recorded, to advise nothing that was done.
  const auto traced = [&](std::string_view key) {
    const auto& facts = reader_.builder().info().properties;
    return std::any_of(facts.begin(), facts.end(), [&](const auto& fact) {
      return fact.first == key && fact.second == "\"true\"";
    });
  };
  const auto missing = [&](std::string_view table, std::string_view reason,
                           std::string_view text) {
    if (Table(table) == nullptr) diagnostics().Add(Effect::kInfo, reason, text);
  };
  missing(
      "CUPTI_ACTIVITY_KIND_RUNTIME", "no_api_calls",
      traced("COLLECT_CUDA_TRACE")
          ? "The export has no table of CUDA calls although CUDA was traced "
            "(COLLECT_CUDA_TRACE=true): none was made, or the driver "
            "refused. No device work can be linked."
          : "The export has no table of CUDA calls: no device work can be "
            "linked. Record with --trace=cuda.");
  missing("NVTX_EVENTS", "no_nvtx",
          traced("COLLECT_NVTX_TRACE")
              ? "NVTX was traced (COLLECT_NVTX_TRACE=true), and the program "
                "made no ranges, which ops, modules and steps come from: run "
                "PyTorch under torch.autograd.profiler.emit_nvtx()."
              : "The export has no NVTX ranges, which ops, modules and steps "
                "come from: record with --trace=cuda,nvtx, PyTorch under "
                "torch.autograd.profiler.emit_nvtx().");
  const DatabaseTable* kernels = Table("CUPTI_ACTIVITY_KIND_KERNEL");
  if (kernels != nullptr && !facts_.by_process) {
    diagnostics().Add(Effect::kInfo, "columns_missing",
                      "Device rows do not name their process (globalPid): "
                      "launches are found by correlation id alone, which two "
                      "processes may share.");
  }
  if (Rows graphs =
          database_.Scan(Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"), {"start"});
      graphs.Next()) {
    diagnostics().Add(Effect::kInfo, "graphs_as_one",
                      "Graph launches were recorded as one activity each: "
                      "record with --cuda-graph-trace=node to see their "
                      "kernels.");
  }
}

void ExportFile::NoteUnread() {
  // Facts of the machine, helpers of other tables: nothing is missed.
  constexpr std::array<std::string_view, 7> kQuiet = {
      "ENUM_",         "TARGET_INFO_", "META_DATA_", "EXPORT_META_DATA",
      "NVTX_PAYLOAD_", "StringIds",    "Process"};
  constexpr std::array<std::string_view, 16> kRead = {
      "CUPTI_ACTIVITY_KIND_KERNEL",
      "CUPTI_ACTIVITY_KIND_MEMCPY",
      "CUPTI_ACTIVITY_KIND_MEMSET",
      "CUPTI_ACTIVITY_KIND_RUNTIME",
      "CUPTI_ACTIVITY_KIND_OVERHEAD",
      "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
      "NVTX_EVENTS",
      "ThreadNames",
      "PROCESSES",
      "CUDA_GPU_MEMORY_USAGE_EVENTS",
      "GPU_METRICS",
      "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
      "CUDA_GRAPH_NODE_EVENTS",
      "OSRT_API",
      "SCHED_EVENTS"};
  NoteTablesNotRead(
      database_,
      [&](std::string_view name) {
        const size_t version = name.rfind("_V");
        if (version != name.npos && version + 2 < name.size() &&
            name.find_first_not_of("0123456789", version + 2) == name.npos &&
            Table(name.substr(0, version)) != nullptr &&
            Table(name.substr(0, version))->name == name)
          name = name.substr(0, version);
        return std::find(kRead.begin(), kRead.end(), name) != kRead.end() ||
               std::any_of(kQuiet.begin(), kQuiet.end(),
                           [&](std::string_view start) {
                             return name.starts_with(start);
                           });
      },
      diagnostics());
}

}  // namespace lamina::ingest::nsys
