// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON document of any size as small values plus arrays of records.
//
// Trace files are one object with a few small members and one or more huge
// arrays of objects. JsonStream walks the outer structure, hands over the
// small values, and cuts the arrays at record boundaries into chunks that any
// thread can parse on its own. Memory is bounded by the chunk size; the text
// of the file is never held.
//
// Broken text is salvaged: a record that cannot be read is reported with its
// offset and skipped, a cut file keeps everything before the cut.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/json/blocks.h"
#include "base/status.h"

namespace lamina::json {

// What to do with a value of the outer document.
enum class Action {
  kSkip,     // read past it
  kCapture,  // hand over its raw text (at most kMaxCapture bytes)
  kDescend,  // an object or array: ask again for each member
  kRecords,  // an array: deliver its elements in chunks
};

// Keys and array positions ("0", "1" ...) from the root to a value.
using Path = std::span<const std::string>;

// Decides what to read. Called on the thread that calls Next(), in document
// order.
class Router {
 public:
  virtual ~Router() = default;
  // `first` is the first character of the value: { [ " or that of a scalar.
  virtual Action Route(Path path, char first) = 0;
  virtual void Captured(Path path, std::string_view raw, uint64_t offset) = 0;
  // Part of the input could not be used; `bytes` is how much was skipped.
  virtual void Lost(std::string_view reason, uint64_t offset,
                    uint64_t bytes) = 0;
  // When the outer document is broken before any record was seen, reading
  // goes on behind the first occurrence of this text (`"traceEvents"`).
  virtual std::string_view recovery_key() const { return {}; }
};

// Whole records, separated by commas and white space. The buffer is reused
// from chunk to chunk and has kPadding readable bytes behind the text.
struct Chunk {
  std::string_view text;
  uint64_t offset = 0;    // of text[0] in the unpacked input
  uint32_t array = 0;     // which records array, counted from 0
  uint64_t sequence = 0;  // chunk number, from 0
  bool suspect = false;   // found by the careful scan: parse it carefully

  std::vector<char> buffer;
};

class JsonStream {
 public:
  struct Options {
    size_t chunk_bytes = size_t{1} << 20;
    size_t max_record_bytes = size_t{64} << 20;
  };

  JsonStream(std::unique_ptr<ByteSource> source, Router* router,
             Options options);

  // The next chunk of records; false at the end of the input. Fails only when
  // the input is not JSON or the device fails. Calls must not overlap.
  Result<bool> Next(Chunk& chunk);

  const ByteSource& source() const { return *source_; }
  // Bytes of the unpacked input used so far.
  uint64_t offset() const { return offset_; }

 private:
  enum class Where { kStart, kDocument, kRecords, kDone };
  struct Level {
    bool object = false;
    size_t next_index = 0;
    bool first = true;
  };

  // Reads more behind pending_; false at the end of the input.
  Result<bool> Fill(size_t bytes);
  void Consume(size_t bytes);

  Result<bool> WalkDocument();  // true when records follow
  Result<bool> EnterValue();    // true when records follow
  Status CaptureValue();
  Status SkipValue();
  Result<bool> Recover(uint64_t offset, std::string_view expected);
  Error NotJson(uint64_t offset, std::string_view expected) const;

  Result<bool> NextFast(Chunk& chunk);
  Result<bool> NextCareful(Chunk& chunk);
  void FinishChunk(Chunk& chunk, size_t begin, size_t end, bool suspect);

  std::unique_ptr<ByteSource> source_;
  Router* router_;
  Options options_;

  Where where_ = Where::kStart;
  std::vector<char> pending_;  // bytes read and not yet used
  size_t pending_begin_ = 0;
  uint64_t offset_ = 0;  // of the first pending byte in the unpacked input
  bool at_end_ = false;  // the source has no more bytes

  std::vector<std::string> path_;
  std::vector<Level> levels_;
  bool any_records_ = false;
  bool recovered_ = false;

  RecordScanner scanner_;
  bool careful_ = false;
  int broken_in_row_ = 0;
  size_t scanned_ = 0;  // pending bytes that the scanner has seen
  uint32_t arrays_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace lamina::json
