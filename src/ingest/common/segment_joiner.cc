// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/segment_joiner.h"

#include <utility>

namespace lamina::ingest {

std::unique_ptr<trace::Segment> SegmentJoiner::Take(int worker,
                                                    trace::LocalNames* names) {
  const std::lock_guard lock(mutex_);
  auto& free = free_[worker];
  if (free.empty()) return std::make_unique<trace::Segment>(names);
  auto segment = std::move(free.back());
  free.pop_back();
  return segment;
}

void SegmentJoiner::Add(uint64_t sequence, int worker,
                        std::unique_ptr<trace::Segment> segment, bool last) {
  std::unique_lock lock(mutex_);
  if (ended_) return Drop(worker, std::move(segment));
  waiting_.emplace(sequence, Entry{worker, std::move(segment), last});
  while (!joining_ && !waiting_.empty() && waiting_.begin()->first == next_) {
    joining_ = true;
    Entry entry = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    lock.unlock();
    builder_.Append(*entry.segment);
    entry.segment->Clear();
    lock.lock();
    free_[entry.worker].push_back(std::move(entry.segment));
    joining_ = false;
    ++next_;
    if (entry.last) {
      ended_ = true;
      for (auto& [dropped, rest] : waiting_)
        Drop(rest.worker, std::move(rest.segment));
      waiting_.clear();
    }
    changed_.notify_all();
  }
  // The segment in turn is being parsed by another worker, which never waits
  // here with it, so this ends.
  changed_.wait(lock, [&] { return waiting_.size() < kMaxWaiting; });
}

void SegmentJoiner::Drop(int worker, std::unique_ptr<trace::Segment> segment) {
  builder_.Skip(*segment);
  segment->Clear();
  free_[worker].push_back(std::move(segment));
}

bool SegmentJoiner::InTurn(uint64_t sequence,
                           const std::function<bool()>& known,
                           const std::function<void()>& add) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return known() || next_ == sequence || ended_; });
  if (known()) return true;
  if (ended_) return false;
  add();
  changed_.notify_all();
  return true;
}

bool SegmentJoiner::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void SegmentJoiner::Restart() {
  next_ = 0;
  ended_ = false;
}

}  // namespace lamina::ingest
