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
