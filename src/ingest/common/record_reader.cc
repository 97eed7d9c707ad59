// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/record_reader.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/parallel.h"

namespace lamina::ingest {
namespace {

// Finished segments that wait for an earlier one; more than this many and a
// worker rests before it reads on, so that memory stays bounded.
constexpr size_t kMaxWaiting = 16;

// Puts segments back into input order.
class Joiner {
 public:
  explicit Joiner(trace::TraceBuilder& builder) : builder_(builder) {}

  // Hands over a sealed segment. Whoever finds the next one in turn joins it,
  // and all that follow; the others go on reading. The segment comes back to
  // its worker through Take().
  void Add(uint64_t sequence, int worker,
           std::unique_ptr<trace::Segment> segment) {
    std::unique_lock lock(mutex_);
    waiting_.emplace(sequence, Entry{worker, std::move(segment)});
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
      changed_.notify_all();
    }
    // The segment in turn is being parsed by another worker, which never
    // waits here with it, so this ends.
    changed_.wait(lock, [&] { return waiting_.size() < kMaxWaiting; });
  }

  std::unique_ptr<trace::Segment> Take(int worker, trace::LocalNames* names) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[worker];
    if (free.empty()) return std::make_unique<trace::Segment>(names);
    auto segment = std::move(free.back());
    free.pop_back();
    return segment;
  }

 private:
  struct Entry {
    int worker;
    std::unique_ptr<trace::Segment> segment;
  };
  trace::TraceBuilder& builder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Entry> waiting_;
  std::map<int, std::vector<std::unique_ptr<trace::Segment>>> free_;
  uint64_t next_ = 0;
  bool joining_ = false;
};

}  // namespace

Status ReadRecords(
    json::JsonStream& stream, int threads, trace::TraceBuilder& builder,
    const std::function<std::unique_ptr<RecordParser>()>& make_parser,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  Joiner joiner(builder);
  std::vector<std::unique_ptr<RecordParser>> parsers;
  for (int i = 0; i < std::max(threads, 1); ++i)
    parsers.push_back(make_parser());
  std::mutex read_mutex;
  bool finished = false;
  std::optional<Error> error;
  RunWorkers(std::max(threads, 1), [&](int worker) {
    RecordParser& parser = *parsers[static_cast<size_t>(worker)];
    json::Chunk chunk;
    while (true) {
      {
        const std::lock_guard lock(read_mutex);
        if (finished) return;
        auto more = stream.Next(chunk);
        if (!more || !*more) {
          finished = true;
          if (!more) error = std::move(more).error();
          return;
        }
        parser.Claim(chunk);
        if (progress) {
          progress(stream.source().stored_position(),
                   stream.source().stored_size());
        }
      }
      auto segment = joiner.Take(worker, parser.names());
      parser.Parse(chunk, *segment);
      segment->Seal();
      joiner.Add(chunk.sequence, worker, std::move(segment));
    }
  });
  if (error) return Fail(*error);
  return {};
}

}  // namespace lamina::ingest
