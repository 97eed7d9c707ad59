// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/export_file.h"

#include <algorithm>
#include <array>

namespace lamina::ingest::nsys {

using trace::Effect;
using trace::kNoInt;
using trace::TrackId;

namespace {

// A global id is a process in the high bits and a thread in the low 24.
constexpr int64_t kThreadMask = 0xFFFFFF;
constexpr int kProcessShift = 24;

constexpr std::array<std::string_view, 3> kWorkTables = {
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET"};

}  // namespace

ExportFile::ExportFile(const Database& database, Filler* filler)
    : database_(database),
      filler_(*filler),
      strings_(database, database.Find("StringIds"), "id", "value", filler) {
  for (const std::string_view name : kWorkTables) {
    const DatabaseTable* table = Table(name);
    if (table != nullptr && !table->Has("globalPid")) by_process_ = false;
  }
  memory_kinds_ = {{0, "Pageable"}, {1, "Pinned"},        {2, "Device"},
                   {3, "Array"},    {4, "Managed"},       {5, "Device Static"},
                   {7, "Unknown"},  {6, "Managed Static"}};
  for (auto& [id, label] : Entries("ENUM_CUDA_MEM_KIND", "label"))
    memory_kinds_[id] = std::move(label);
}

std::map<int64_t, std::string> ExportFile::Entries(std::string_view table,
                                                   std::string_view column) {
  constexpr size_t kMostEntries = 1000;
  std::map<int64_t, std::string> entries;
  Rows rows = database_.Scan(Table(table), {"id", column});
  while (entries.size() < kMostEntries && rows.Next()) {
    const auto id = rows.Int(0);
    const auto text = rows.Text(1);
    if (id && text && text->size() < 100) entries.emplace(*id, *text);
  }
  return entries;
}

ExportFile::Process& ExportFile::ProcessOf(std::optional<int64_t> global_id) {
  const int64_t key = global_id.value_or(0) & ~kThreadMask;
  const auto [it, is_new] = processes_.try_emplace(key);
  Process& process = it->second;
  if (is_new) {
    process.index = static_cast<int64_t>(processes_.size()) - 1;
    std::string pid = std::to_string((key >> kProcessShift) & kThreadMask);
    // Machines of one recording may give a number twice.
    const int count = ++pids_[pid];
    if (count > 1) pid += "#" + std::to_string(count);
    process.pid = filler_.Intern(pid);
  }
  return process;
}

TrackId ExportFile::Thread(std::optional<int64_t> global_tid) {
  const int64_t id = global_tid.value_or(0);
  const auto [it, is_new] = threads_.try_emplace(id);
  if (is_new) {
    it->second = filler_.names().InternTrack(
        ProcessOf(global_tid).pid,
        filler_.Intern(std::to_string(id & kThreadMask)));
  }
  return it->second;
}

TrackId ExportFile::Lane(Process& process, int64_t device, int64_t stream) {
  process.on_device = true;
  const auto [it, is_new] = lanes_.try_emplace({process.index, device, stream});
  if (is_new) {
    std::string name = "GPU " + std::to_string(device);
    if (stream != kNoInt) name += " stream " + std::to_string(stream);
    it->second = filler_.names().InternTrack(process.pid, filler_.Intern(name));
    trace::TrackFact fact;
    fact.track = it->second;
    fact.what = trace::TrackFact::What::kThreadName;
    fact.text = filler_.Intern(name);
    filler_.segment().facts.push_back(fact);
  }
  return it->second;
}

int64_t ExportFile::Correlation(const Process& process,
                                std::optional<int64_t> id) const {
  constexpr int64_t kMostIds = int64_t{1} << 32;
  if (!id || *id <= 0 || *id >= kMostIds) return kNoInt;
  return by_process_ ? process.index * kMostIds + *id : *id;
}

StringId ExportFile::NameOf(const Rows& rows, int column) {
  if (const auto text = rows.Text(column)) return filler_.Intern(*text);
  return strings_.Find(rows.Int(column));
}

bool ExportFile::Usable(int64_t start_ns, int64_t end_ns) {
  if (!filler_.Usable(start_ns, end_ns)) return false;
  last_ns_ = any_time_ ? std::max(last_ns_, end_ns) : end_ns;
  any_time_ = true;
  return true;
}

void ExportFile::ReadTrackNames() {
  const auto name_track = [&](TrackId track, trace::TrackFact::What what,
                              StringId text) {
    if (!text.valid()) return;
    trace::TrackFact fact;
    fact.track = track;
    fact.what = what;
    fact.text = text;
    filler_.segment().facts.push_back(fact);
  };
  ForRows(Table("ThreadNames"), {"globalTid", "nameId"}, [&](const Rows& rows) {
    const auto it = threads_.find(rows.IntOr(0, kNoInt));
    if (it != threads_.end())
      name_track(it->second, trace::TrackFact::What::kThreadName,
                 NameOf(rows, 1));
  });
  // The file name of the program; its folder is nobody's business.
  ForRows(Table("PROCESSES"), {"globalPid", "name"}, [&](const Rows& rows) {
    const int64_t key = rows.IntOr(0, 0) & ~kThreadMask;
    const auto text = rows.Text(1);
    if (!text || !processes_.contains(key)) return;
    const std::string_view name = text->substr(text->find_last_of("/\\") + 1);
    for (const auto& [id, track] : threads_) {
      if ((id & ~kThreadMask) != key) continue;
      name_track(track, trace::TrackFact::What::kProcessName,
                 filler_.Intern(name.substr(0, name.find(' '))));
      break;
    }
  });
}

void ExportFile::CloseOpenRanges() {
  for (const OpenRange& range : open_ranges_) {
    diagnostics().Add(Effect::kRepaired, "range_without_end",
                      "An NVTX range was open when the recording ended; it is "
                      "taken to last to the end.");
    const int64_t end = std::max(range.start_ns, last_ns_);
    if (!filler_.Usable(range.start_ns, end)) continue;
    filler_.segment().AddSlice(
        range.start_ns, end - range.start_ns, range.name,
        trace::Kind::kAnnotation,
        filler_.names().InternCategory(filler_.Intern("user_annotation")),
        range.track, kNoOffset);
    filler_.Next();
  }
  open_ranges_.clear();
}

// --------------------------------------------------------------------------
// Facts about the recording.

void ExportFile::NoteFacts() {
  NoteSource();
  NoteMissing();
  NoteUnread();
}

void ExportFile::NoteSource() {
  trace::Info& info = filler_.builder().info();
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
  size_t on_device = 0;
  for (const auto& [key, process] : processes_) on_device += process.on_device;
  if (on_device > 1) {
    diagnostics().Add(Effect::kInfo, "processes_on_devices",
                      "Several processes used a GPU: the sums are over all of "
                      "them.",
                      trace::Diagnostics::kNoOffset, on_device);
  }
  const auto missing = [&](std::string_view table, std::string_view reason,
                           std::string_view text) {
    if (!database_.Has(table)) diagnostics().Add(Effect::kInfo, reason, text);
  };
  missing("CUPTI_ACTIVITY_KIND_RUNTIME", "no_api_calls",
          "The export has no table of CUDA calls: no device work can be "
          "linked. Record with --trace=cuda.");
  missing("NVTX_EVENTS", "no_nvtx",
          "The export has no NVTX ranges, which ops, modules and steps come "
          "from: record with --trace=cuda,nvtx, PyTorch under "
          "torch.autograd.profiler.emit_nvtx().");
  const DatabaseTable* kernels = Table("CUPTI_ACTIVITY_KIND_KERNEL");
  if (kernels != nullptr && !by_process_) {
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
  constexpr std::array<std::string_view, 14> kRead = {
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
      "CUDA_GRAPH_NODE_EVENTS"};
  std::string unread;
  size_t count = 0;
  for (const DatabaseTable& table : database_.tables()) {
    if (std::find(kRead.begin(), kRead.end(), table.name) != kRead.end() ||
        std::any_of(kQuiet.begin(), kQuiet.end(), [&](std::string_view start) {
          return table.name.starts_with(start);
        }))
      continue;
    Rows rows = database_.Scan(&table, {table.columns[0]});
    if (!rows.Next()) continue;
    ++count;
    constexpr size_t kShownTables = 12;
    if (count <= kShownTables && table.name.size() < 64)
      unread += (unread.empty() ? "" : ", ") + table.name;
  }
  if (count > 0) {
    diagnostics().Add(
        Effect::kInfo, "tables_not_read",
        "Tables with records that lamina does not use: " + unread + ".",
        trace::Diagnostics::kNoOffset, count);
  }
}

}  // namespace lamina::ingest::nsys
