// SPDX-License-Identifier: Apache-2.0
//
// Record arrays read by many threads: a thread cuts a chunk, parses it into a
// segment of its own (Filler), and the segments are joined in the order of the
// input. The cost is one pass over the bytes and one more over rows.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/cutter.h"
#include "base/json/tokens.h"
#include "base/status.h"
#include "ingest/common/format.h"
#include "trace/builder.h"

namespace lamina::ingest {

// Puts the segments that threads fill back into input order.

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

// A segment and the names in it, as a thread fills them record by record. For
// readers that go through their input once on one thread it is handed to the
// builder whenever it is full, so that nothing but the model grows with the
// input; table_reader.h has the one for threads.

class Filler {
 public:
  // Without a builder the segment grows until somebody takes it.
  explicit Filler(trace::TraceBuilder* builder);
  ~Filler();
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  trace::TraceBuilder& builder() { return *builder_; }
  trace::LocalNames& names() { return names_; }
  trace::Segment& segment() { return segment_; }

  // Text of the input as a name; broken UTF-8 is replaced.
  StringId Intern(std::string_view text);
  // Whether the times of a span can be used; counted when not. Ask before
  // adding argument rows, which must not be without a slice.
  bool Usable(int64_t start_ns, int64_t end_ns,
              uint64_t offset = trace::Diagnostics::kNoOffset);
  void AddInstant(int64_t time_ns, StringId name, trace::TrackId track,
                  uint32_t memory = trace::kNoRow);
  void AddCounter(int64_t time_ns, StringId name, StringId series,
                  trace::TrackId track, double value);
  // A record is done, used or not.
  void Next();
  // Hands over what is there; call when the input ends.
  void Flush();

 private:
  trace::TraceBuilder* builder_;
  trace::LocalNames names_;
  trace::Segment segment_;
};

// Drives the parallel reading of record arrays: one thread at a time cuts the
// next chunk, all threads parse, and finished segments are joined in input
// order.

// Parses chunks on one thread. Made once per worker.
class RecordParser {
 public:
  virtual ~RecordParser() = default;
  // `chunk` will be given to Parse() on this thread. Called for one chunk at a
  // time, in input order.
  virtual void Claim(const Chunk& chunk) { (void)chunk; }
  // Fills `segment` (empty, bound to names()) with the records of `chunk`.
  virtual void Parse(const Chunk& chunk, trace::Segment& segment) = 0;

  trace::LocalNames* names() { return &names_; }

 private:
  trace::LocalNames names_;
};

using MakeRecordParser = std::function<std::unique_ptr<RecordParser>()>;

// The records of all chunks that `next` gives: false at the end. It is called
// by one thread at a time; chunks are numbered by their sequence.
Status ReadChunks(const std::function<Result<bool>(Chunk&)>& next,
                  const ReadOptions& options, trace::TraceBuilder& builder,
                  const MakeRecordParser& make_parser);

// Those of a JSON document.
Status ReadRecords(json::JsonStream& stream, const ReadOptions& options,
                   trace::TraceBuilder& builder,
                   const MakeRecordParser& make_parser);

// The loop over the records of a chunk of JSON: fast while the text is good,
// record by record with the grammar checked where it is not.

// The text of a value and the character it starts with: '"' (text without the
// quotes), '{', '[' or the first byte of a scalar; 0 when absent.
struct RawValue {
  std::string_view text;
  char kind = '\0';
  bool present() const { return kind != '\0'; }
};
// The value at `token`; moves behind it. False when none can stand there.
bool ReadValue(const json::Tokens& tokens, size_t& token, RawValue& value);

class JsonRecordParser : public RecordParser {
 public:
  void Parse(const json::Chunk& chunk, trace::Segment& segment) final;

 protected:
  // Called before the records of a chunk; false: they are no events, which are
  // counted.
  virtual bool BeginChunk(const json::Chunk& chunk) {
    (void)chunk;
    return true;
  }
  // Called behind them.
  virtual void EndChunk() {}
  // Reads the object at `token` and moves behind it; false when it breaks the
  // grammar. Adds nothing to the segment.
  virtual bool ReadRecord(const json::Tokens& tokens, size_t& token) = 0;
  // Adds what the last ReadRecord read. `offset` is that of the record.
  virtual void EmitRecord(const json::Tokens& tokens, uint64_t offset) = 0;

  trace::Segment& segment() { return *segment_; }
  void Lost(std::string_view reason, std::string_view text, uint64_t offset);

 private:
  size_t ParseFast(std::string_view text, uint64_t offset);
  void ParseCarefully(std::string_view text, uint64_t offset);

  trace::Segment* segment_ = nullptr;
  uint32_t counted_ = 1;  // events per record
  json::TokenIndex index_;
  json::TokenIndex record_index_;
  std::string padded_;
};

}  // namespace lamina::ingest
