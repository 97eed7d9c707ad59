// SPDX-License-Identifier: Apache-2.0
//
// A document as an answer of limited size: its notes and rows as values and as
// short text, page by page.
#pragma once

#include <string>
#include <vector>

#include "mcp/protocol/tool.h"

namespace lamina::mcp {

// A token is about as many bytes.
constexpr double kBytesPerToken = 3.5;

struct AnswerOptions {
  int64_t max_tokens = 6000;
  bool full_names = false;  // else texts end at 160 bytes
};

// How far the pages before have come.
struct Position {
  size_t notes = 0;
  std::vector<size_t> rows;  // of each table
};

struct Answer {
  Json structured;
  std::string text;
};

// What `from` leaves of a document. Each page has a row at least. Times are
// integers in nanoseconds with names in *_ns; texts of the input stand as they
// are in `structured` and escaped for a terminal in `text`. Both together take
// at most max_tokens * kBytesPerToken bytes in a message. `key` is what the
// cursor is good for. Errors: kUsage when not even one row fits.
tl::expected<Answer, Problem> MakeAnswer(const Made& made,
                                         const std::string& trace,
                                         const std::vector<std::string>& inputs,
                                         const Position& from, uint64_t key,
                                         const AnswerOptions& options);

// Errors: kUsage for a text that is no cursor of this key and document.
Result<Position> ReadCursor(const std::string& cursor, uint64_t key,
                            const Document& document);

}  // namespace lamina::mcp
