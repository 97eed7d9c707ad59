// SPDX-License-Identifier: Apache-2.0
//
// Cuts an array of records into chunks that any thread can parse.
//
// While the text is good, a block is read straight into the chunk's buffer and
// cut at its last record boundary (scan.h). Where it looks wrong, the careful
// scan (scan.h) goes from record to record, reports what cannot be read, and
// hands back after a run of good records.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/byte_source.h"
#include "base/chunk.h"
#include "base/json/document.h"
#include "base/json/router.h"
#include "base/json/scan.h"
#include "base/status.h"

namespace lamina::json {

// Records of a chunk are separated by commas and white space, and its buffer
// has kPadding readable bytes behind the text.
using lamina::Chunk;

class RecordCutter {
 public:
  struct Options {
    size_t chunk_bytes = size_t{1} << 20;
    size_t max_record_bytes = size_t{64} << 20;
  };
  enum class Place {
    kInside,      // more records may follow
    kBehind,      // the array has ended, the window stands behind its ']'
    kInputEnded,  // nothing more can be read
  };

  RecordCutter(ByteWindow* window, Router* router, Options options)
      : window_(*window), router_(*router), options_(options) {}

  // The window stands behind the '[' of an array.
  void Start();
  // Cuts the next chunk; false when it found no record. place() says whether
  // more follows. Fills in the chunk's text, offset and suspect.
  Result<bool> Next(Chunk& chunk);
  Place place() const { return place_; }

 private:
  Result<bool> NextFast(Chunk& chunk);

  Result<bool> NextCareful(Chunk& chunk);
  Result<bool> FindGoodRecord();
  void CutRun(Chunk& chunk);
  Result<bool> SkipBroken(const ScanResult& scan);
  Result<size_t> FindNextStart(size_t search_from);
  bool GiveUp(std::string_view reason);
  // The fast scan goes on where the window stands, between two records.
  void Trust();

  ByteWindow& window_;
  Router& router_;
  const Options options_;

  Place place_ = Place::kInside;
  RecordScanner scanner_;
  size_t scanned_ = 0;  // bytes of the window that scanner_ has seen
  // Grows from block to block: a short array does not pay for a long one.
  size_t block_bytes_ = 0;
  bool careful_ = false;
  int broken_in_row_ = 0;
  int endless_in_row_ = 0;
};

// Reads a JSON document of any size as small values plus arrays of records.
//
// Trace files are one object with a few small members and one or more huge
// arrays of objects. JsonStream walks the outer structure (document.h), hands
// over the small values, and cuts the arrays at record boundaries into chunks
// that any thread can parse on its own (cutter.h). Memory is bounded by the
// chunk size; the text of the file is never held.
//
// Broken text is salvaged: a record that cannot be read is reported with its
// offset and skipped, a cut file keeps everything before the cut.

class JsonStream {
 public:
  using Options = RecordCutter::Options;

  JsonStream(std::unique_ptr<ByteSource> source, Router* router,
             Options options);
  JsonStream(const JsonStream&) = delete;
  JsonStream& operator=(const JsonStream&) = delete;

  // The next chunk of records; false at the end of the input. Fails only when
  // the input is not JSON or the device fails. Calls must not overlap.
  Result<bool> Next(Chunk& chunk);

  const ByteSource& source() const { return *source_; }
  // Bytes of the unpacked input used so far.
  uint64_t offset() const { return window_.offset(); }

 private:
  enum class Where { kDocument, kRecords, kDone };

  Status WalkDocument();
  Result<bool> CutRecords(Chunk& chunk);

  std::unique_ptr<ByteSource> source_;
  Router& router_;
  ByteWindow window_;
  Document document_;
  RecordCutter cutter_;

  Where where_ = Where::kDocument;
  uint32_t arrays_ = 0;  // of records, ended so far
  uint64_t sequence_ = 0;
};

}  // namespace lamina::json
