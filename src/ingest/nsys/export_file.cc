// SPDX-License-Identifier: Apache-2.0

#include "ingest/nsys/export_file.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/escape.h"
#include "ingest/common/table_reader.h"
#include "trace/os_records.h"

namespace lamina::ingest::nsys {

uint64_t ClipOverlaps(std::vector<CallRow>& rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](uint32_t a, uint32_t b) {
    const CallRow& x = rows[a];
    const CallRow& y = rows[b];
    if (x.global_tid != y.global_tid) return x.global_tid < y.global_tid;
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
    if (x.end_ns != y.end_ns) return x.end_ns > y.end_ns;
    return a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before))
    std::sort(order.begin(), order.end(), before);
  uint64_t clipped = 0;
  std::vector<uint32_t> open;
  for (const uint32_t i : order) {
    const CallRow& row = rows[i];
    while (!open.empty()) {
      CallRow& outer = rows[open.back()];
      const bool apart =
          outer.global_tid != row.global_tid || outer.end_ns <= row.start_ns;
      if (!apart && outer.end_ns >= row.end_ns) break;
      if (!apart) {
        outer.end_ns = row.start_ns;
        ++clipped;
      }
      open.pop_back();
    }
    open.push_back(i);
  }
  return clipped;
}

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

using trace::kNoInt;
using trace::TrackId;

ExportThread::ExportThread(ExportFacts* facts, TableReader* reader, int worker)
    : facts_(*facts),
      reader_(*reader),
      worker_(worker),
      filler_(reader->filler(worker)),
      names_(filler_.names()),
      strings_(facts->strings, reader->database(worker), &filler_),
      ranges_(&names_) {}

ExportThread::Process ExportThread::ProcessOf(
    std::optional<int64_t> global_id) {
  const int64_t key = global_id.value_or(0) & ~kThreadMask;
  const auto it = processes_.find(key);
  if (it != processes_.end()) return it->second;
  const auto facts = facts_.ProcessOf(worker_, key);
  if (!facts) return {0, StringPool::kEmpty};
  return processes_[key] = {facts->index, filler_.Intern(facts->pid)};
}

TrackId ExportThread::Thread(int64_t global_tid) {
  const auto [it, is_new] = threads_.try_emplace(global_tid);
  if (is_new) {
    it->second.id = names_.InternTrack(
        ProcessOf(global_tid).pid,
        filler_.Intern(std::to_string(global_tid & kThreadMask)));
  }
  if (it->second.noted != stamp_) {
    it->second.noted = stamp_;
    Now().threads.insert(global_tid);
  }
  return it->second.id;
}

TrackId ExportThread::StateTrack(int64_t global_tid) {
  const auto [it, is_new] = state_tracks_.try_emplace(global_tid);
  if (is_new) {
    const StringId name = filler_.Intern(
        trace::StateTrackOf(std::to_string(global_tid & kThreadMask)));
    it->second = names_.InternTrack(ProcessOf(global_tid).pid, name);
    NameTrack(it->second, trace::TrackFact::What::kThreadName, name);
  }
  return it->second;
}

TrackId ExportThread::Lane(const Process& process, int64_t device,
                           int64_t stream) {
  const auto [it, is_new] = lanes_.try_emplace({process.index, device, stream});
  if (is_new) {
    std::string name = "GPU " + std::to_string(device);
    if (stream != kNoInt) name += " stream " + std::to_string(stream);
    const StringId text = filler_.Intern(name);
    it->second.id = names_.InternTrack(process.pid, text);
    NameTrack(it->second.id, trace::TrackFact::What::kThreadName, text);
  }
  if (it->second.noted != stamp_) {
    it->second.noted = stamp_;
    Now().device_users.insert(process.index);
  }
  return it->second.id;
}

void ExportThread::NameTrack(TrackId track, trace::TrackFact::What what,
                             StringId text) {
  if (!text.valid()) return;
  trace::TrackFact fact;
  fact.track = track;
  fact.what = what;
  fact.text = text;
  filler_.segment().facts.push_back(fact);
}

int64_t ExportThread::Correlation(const Process& process,
                                  std::optional<int64_t> id) const {
  constexpr int64_t kMostIds = int64_t{1} << 32;
  if (!id || *id <= 0 || *id >= kMostIds) return kNoInt;
  return facts_.by_process ? process.index * kMostIds + *id : *id;
}

StringId ExportThread::NameOf(const Row& row, int column) {
  if (const auto text = row.Text(column)) return filler_.Intern(*text);
  return strings_.Find(row.Int(column));
}

bool ExportThread::Usable(int64_t start_ns, int64_t end_ns) {
  if (!filler_.Usable(start_ns, end_ns)) return false;
  Now().Add(Interval{start_ns, end_ns});
  return true;
}

void ExportThread::BeginPiece(size_t piece) {
  pieces_.emplace_back(piece, Seen());
  ++stamp_;
}

void ExportThread::EndTable(size_t count) {
  bool dropped = false;
  for (const auto& [piece, seen] : pieces_) {
    if (piece < count) {
      seen_.Add(seen);
    } else {
      dropped = true;
    }
  }
  pieces_.clear();
  ++stamp_;
  // Names of tracks may have gone with the segments of those pieces.
  if (dropped) {
    lanes_.clear();
    state_tracks_.clear();
  }
}

void ExportThread::Seen::Add(const Interval& span) {
  if (!recorded) recorded = span;
  recorded->start_ns = std::min(recorded->start_ns, span.start_ns);
  recorded->end_ns = std::max(recorded->end_ns, span.end_ns);
}

void ExportThread::Seen::Add(const Seen& other) {
  if (other.recorded) Add(*other.recorded);
  threads.insert(other.threads.begin(), other.threads.end());
  device_users.insert(other.device_users.begin(), other.device_users.end());
}

}  // namespace lamina::ingest::nsys
