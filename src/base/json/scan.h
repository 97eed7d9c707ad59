// SPDX-License-Identifier: Apache-2.0
//
// The careful side of JSON reading: finds the end of one value byte by byte,
// with the grammar checked, in linear time and without recursion. The fast
// side (blocks.h, tokens.h) is used while the text is good; this one decides
// what is salvaged when it is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina::json {

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
