// SPDX-License-Identifier: Apache-2.0
//
// Cuts an array of records into chunks that any thread can parse.
//
// While the text is good, a block is read straight into the chunk's buffer and
// cut at its last record boundary (blocks.h). Where it looks wrong, the careful
// scan (scan.h) goes from record to record, reports what cannot be read, and
// hands back after a run of good records.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_window.h"
#include "base/chunk.h"
#include "base/json/blocks.h"
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

}  // namespace lamina::json
