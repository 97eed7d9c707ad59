// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/export_thread.h"

#include <algorithm>

#include "trace/os_records.h"

namespace lamina::ingest::nsys {

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
    it->second = names_.InternTrack(
        ProcessOf(global_tid).pid,
        filler_.Intern(std::to_string(global_tid & kThreadMask)));
  }
  return it->second;
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
    it->second = names_.InternTrack(process.pid, text);
    NameTrack(it->second, trace::TrackFact::What::kThreadName, text);
  }
  return it->second;
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
  if (!recorded_) recorded_ = {start_ns, end_ns};
  recorded_->start_ns = std::min(recorded_->start_ns, start_ns);
  recorded_->end_ns = std::max(recorded_->end_ns, end_ns);
  return true;
}

void ExportThread::CollectThreads(std::set<int64_t>& threads) const {
  for (const auto& [id, track] : threads_) threads.insert(id);
}

void ExportThread::CollectDeviceUsers(std::set<int64_t>& processes) const {
  for (const auto& [lane, track] : lanes_) processes.insert(std::get<0>(lane));
}

}  // namespace lamina::ingest::nsys
