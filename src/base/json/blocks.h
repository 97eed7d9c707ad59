// SPDX-License-Identifier: Apache-2.0
//
// Finds where records end in a JSON array of objects, 64 bytes at a time.
//
// To cut a file into chunks that threads can parse, one thread must know, at
// some byte near the end of each chunk, that it stands between two records.
// That needs the state of every quote and bracket before it, so this scan is
// the only sequential work per byte and has to be cheap: a few comparisons and
// a prefix-xor per block. It trusts the grammar; a string that holds a raw
// control character is reported as suspicious and handed to scan.h, because
// the usual cause is an unescaped quote that turned the text inside out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamina::json {

// What the scan knows at one byte.
struct ScanState {
  uint64_t in_string = 0;  // all ones inside a string
  bool escaped = false;    // the next byte is escaped
  int64_t depth = 0;       // open brackets since the record boundary
};

class RecordScanner {
 public:
  enum class Stop {
    kEnd,         // all of the text was read
    kArrayEnd,    // the array closed; `at` is the position of its ']'
    kSuspicious,  // `at` is a control character inside a string
  };
  struct Result {
    Stop stop = Stop::kEnd;
    size_t at = 0;
    // One past the last complete record that ends in the part scanned by this
    // call, relative to the text; 0 if none.
    size_t last_end = 0;
  };

  // Continues over `text[from, size)`. The state carries over from call to
  // call; `text` must hold everything since the last reported `last_end`.
  Result Scan(std::string_view text, size_t from);

  // Forgets the state: the next byte stands between two records.
  void Reset() { state_ = ScanState{}; }

 private:
  ScanState state_;
};

}  // namespace lamina::json
