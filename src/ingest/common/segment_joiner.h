// SPDX-License-Identifier: Apache-2.0
//
// Puts the segments that threads fill back into input order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "trace/builder.h"

namespace lamina::ingest {

class SegmentJoiner {
 public:
  explicit SegmentJoiner(trace::TraceBuilder* builder) : builder_(*builder) {}

  // An empty segment for a worker.
  std::unique_ptr<trace::Segment> Take(int worker, trace::LocalNames* names);

  // Hands over a sealed segment. Whoever finds the next one in turn joins it,
  // and all that follow; the others go on reading. The segment comes back to
  // its worker through Take(). After the `last` one all others are dropped.
  void Add(uint64_t sequence, int worker,
           std::unique_ptr<trace::Segment> segment, bool last = false);

  // Numbers given on first use must not depend on who reads faster: returns
  // when `known()` holds, or calls `add` when all segments before this one are
  // joined. False, with neither, when the segment will be dropped. Both run
  // under one lock.
  bool InTurn(uint64_t sequence, const std::function<bool()>& known,
              const std::function<void()>& add);

  bool ended() const;
  // How many segments were joined. Call when no worker runs.
  uint64_t joined() const { return next_; }
  // Begins to count from 0 again. Call when no worker runs.
  void Restart();

 private:
  // Finished segments that wait for an earlier one; more than this many and a
  // worker rests before it reads on, so that memory stays bounded.
  static constexpr size_t kMaxWaiting = 16;
  struct Entry {
    int worker;
    std::unique_ptr<trace::Segment> segment;
    bool last;
  };

  void Drop(int worker, std::unique_ptr<trace::Segment> segment);

  trace::TraceBuilder& builder_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Entry> waiting_;
  std::map<int, std::vector<std::unique_ptr<trace::Segment>>> free_;
  uint64_t next_ = 0;
  bool joining_ = false;
  bool ended_ = false;
};

}  // namespace lamina::ingest
