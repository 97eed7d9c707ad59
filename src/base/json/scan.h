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
#include <string>
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

// The careful side of JSON reading: finds the end of one value byte by byte,
// with the grammar checked, in linear time and without recursion. The fast
// side (blocks, tokens.h) is used while the text is good; this one decides
// what is salvaged when it is not.

// Lenient where writers of traces are known to err without harm to the
// structure: raw control characters in strings, unknown escapes (Windows
// paths), NaN and Infinity. Everything else is the grammar of RFC 8259.
struct ScanResult {
  enum class Kind {
    kOk,          // `end` is one past the value
    kIncomplete,  // the text ends inside the value
    kError,       // `end` is the byte that cannot stand there
  };
  Kind kind = Kind::kError;
  size_t end = 0;
  const char* expected = "";  // for kError: what could have stood there
};

// Nesting beyond this is refused, here and by every reader.
inline constexpr int kMaxDepth = 1000;

// Scans the value that starts at text[pos] (white space before it is
// skipped).
ScanResult ScanValue(std::string_view text, size_t pos);

inline bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
size_t SkipSpace(std::string_view text, size_t pos);

// After a broken record: the next place at or after `pos` where a record can
// start, that is `{`, white space, a quoted key and a colon, with only white
// space between it and a comma, bracket or line end in front. npos if none.
size_t FindRecordStart(std::string_view text, size_t pos);

// One record of a chunk (values separated by commas and space), or a stretch
// that cannot be read.
struct RecordSpan {
  size_t begin = 0;
  size_t end = 0;
  bool broken = false;
};
// The next record at or after `pos`; moves `pos` behind it. False at the end.
bool NextRecord(std::string_view text, size_t& pos, RecordSpan& record);

// Where to look for the next record after one that began at `begin` broke at
// `error`: a little before that byte, since an unescaped quote is noticed one
// string late, but never far back, so that hostile input stays linear.
size_t ResumeFrom(size_t begin, size_t error);

// The text between the quotes of a JSON string, decoded. Unknown escapes stay
// as they are, lone surrogates and broken UTF-8 become U+FFFD.
std::string DecodeString(std::string_view raw);

// A value without white space between its tokens, so that equal values have
// equal text.
std::string Canonical(std::string_view value);

// A copy of one value in which stage 1 of simdjson finds nothing wrong:
// broken UTF-8 becomes U+FFFD, raw control characters in strings become
// escapes.
std::string Sanitize(std::string_view value);

}  // namespace lamina::json
