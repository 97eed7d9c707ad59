// SPDX-License-Identifier: Apache-2.0

#include "ingest/nsys/export_facts.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace lamina::ingest::nsys {

std::string_view PlainApiName(std::string_view name) {
  while (true) {
    if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
      name.remove_suffix(5);
      continue;
    }
    size_t digits = name.size();
    while (digits > 0 && IsDigit(name[digits - 1])) --digits;
    if (digits == name.size() || digits < 3 ||
        name.substr(digits - 2, 2) != "_v")
      return name;
    name = name.substr(0, digits - 2);
  }
}

bool IsDriverCall(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' &&
         name[2] <= 'Z';
}

std::string CopyDirection(std::string_view entry) {
  constexpr std::string_view kPrefix = "CUDA_MEMCPY_KIND_";
  if (!entry.starts_with(kPrefix)) return std::string(entry);
  std::string_view rest = entry.substr(kPrefix.size());
  std::string out;
  if (rest.starts_with("UVM_")) {
    out = "Unified ";
    rest.remove_prefix(4);
  }
  if (rest.size() == 4 && rest.substr(1, 2) == "TO")
    return out + rest[0] + "to" + rest[3];
  return std::string(entry);
}

namespace {

constexpr std::array<std::string_view, 3> kWorkTables = {
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET"};

// Correlation ids of a process are given in the order of its calls.
bool IsEarlierRecord(const EventRecord& a, const EventRecord& b) {
  return std::tuple(a.process, a.event, a.correlation) <
         std::tuple(b.process, b.event, b.correlation);
}

}  // namespace

ExportFacts::ExportFacts(TableReader* reader)
    : strings(*reader, reader->database(0).FindVersion("StringIds"), "id",
              "value"),
      reader_(*reader),
      database_(reader->database(0)) {
  for (const std::string_view name : kWorkTables) {
    const DatabaseTable* table = database_.FindVersion(name);
    if (table != nullptr && !table->Has("globalPid")) by_process = false;
  }
  const DatabaseTable* kernels = database_.FindVersion(kWorkTables[0]);
  has_config = kernels != nullptr && kernels->Has("gridX");
  memory_kinds = {{0, "Pageable"}, {1, "Pinned"},        {2, "Device"},
                  {3, "Array"},    {4, "Managed"},       {5, "Device Static"},
                  {7, "Unknown"},  {6, "Managed Static"}};
  for (auto& [id, label] : Entries("ENUM_CUDA_MEM_KIND", "label"))
    memory_kinds[id] = std::move(label);
  directions = {
      {1, "HtoD"},          {2, "DtoH"},          {3, "HtoA"},
      {4, "AtoH"},          {5, "AtoA"},          {6, "AtoD"},
      {7, "DtoA"},          {8, "DtoD"},          {9, "HtoH"},
      {10, "PtoP"},         {11, "Unified HtoD"}, {12, "Unified DtoH"},
      {13, "Unified DtoD"},
  };
  for (const auto& [id, entry] : Entries("ENUM_CUDA_MEMCPY_OPER", "name"))
    directions[id] = CopyDirection(entry);
  syncs = {{1, "Event sync"},
           {2, "Stream wait sync"},
           {3, "Stream sync"},
           {4, "Context sync"}};
  for (auto& [id, label] : Entries("ENUM_CUPTI_SYNC_TYPE", "label"))
    syncs[id] = std::move(label);
  overheads = Entries("ENUM_CUPTI_OVERHEAD_TYPE", "label");
  // As exports of 2024 have them, for those without the table.
  off_states = {{1, OsState::kPreempted},
                {2, OsState::kBlocked},
                {3, OsState::kUninterruptible},
                {4, OsState::kStopped},
                {5, OsState::kGone},
                {7, OsState::kBlocked},
                {8, OsState::kBlocked}};
  for (const auto& [id, name] : Entries("ENUM_SAMPLING_THREAD_STATE", "name"))
    off_states[id] = OffState(name);
  ReadMetrics();
}

std::map<int64_t, std::string> ExportFacts::Entries(std::string_view table,
                                                    std::string_view column) {
  constexpr size_t kMostEntries = 1000;
  std::map<int64_t, std::string> entries;
  Rows rows = database_.Scan(database_.FindVersion(table), {"id", column});
  while (entries.size() < kMostEntries && rows.Next()) {
    const auto id = rows.Int(0);
    const auto text = rows.Text(1);
    if (id && text && text->size() < 100) entries.emplace(*id, *text);
  }
  return entries;
}

void ExportFacts::ReadMetrics() {
  constexpr size_t kMostMetrics = 4096;
  Rows known = database_.Scan(database_.FindVersion("TARGET_INFO_GPU_METRICS"),
                              {"typeId", "metricId", "metricName"});
  while (metrics.size() < kMostMetrics && known.Next()) {
    if (const auto name = known.Text(2))
      metrics[{known.IntOr(0, 0), known.IntOr(1, 0)}] = *name;
  }
}

std::optional<ProcessFacts> ExportFacts::ProcessOf(int worker, int64_t key) {
  std::optional<ProcessFacts> process;
  const auto known = [&] {
    const auto it = processes_.find(key);
    if (it != processes_.end()) process = it->second;
    return process.has_value();
  };
  reader_.InTurn(worker, known, [&] {
    std::string pid = std::to_string((key >> kProcessShift) & kThreadMask);
    // Machines of one recording may give a number twice.
    const int count = ++pids_[pid];
    if (count > 1) pid += "#" + std::to_string(count);
    const auto index = static_cast<int64_t>(processes_.size());
    process = processes_[key] = {index, std::move(pid)};
  });
  return process;
}

void ExportFacts::SetEventRecords(std::vector<EventRecord> records) {
  event_records_ = std::move(records);
  std::sort(event_records_.begin(), event_records_.end(), IsEarlierRecord);
  for (const EventRecord& record : event_records_) {
    if (record.sync > 0)
      records_by_sync_.try_emplace({record.process, record.sync}, record);
  }
}

const EventRecord* ExportFacts::RecordOf(const EventRecord& wait) const {
  const auto known = wait.sync > 0
                         ? records_by_sync_.find({wait.process, wait.sync})
                         : records_by_sync_.end();
  if (known != records_by_sync_.end()) return &known->second;
  const auto behind = std::lower_bound(
      event_records_.begin(), event_records_.end(), wait, IsEarlierRecord);
  if (behind == event_records_.begin()) return nullptr;
  const EventRecord& last = *std::prev(behind);
  return last.process == wait.process && last.event == wait.event ? &last
                                                                  : nullptr;
}

uint32_t ExportFacts::ShareName(std::string_view text) {
  const std::lock_guard lock(shared_mutex_);
  return shared_.Intern(text).value;
}

}  // namespace lamina::ingest::nsys
