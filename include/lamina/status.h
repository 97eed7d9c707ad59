// SPDX-License-Identifier: Apache-2.0
//
// Errors as values. No function of the library throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "lamina/export.h"

namespace lamina {

// What an error means for the caller; the command line maps it to the exit
// status (usage 2, check 1, all others 3).
enum class ErrorKind {
  kUsage,      // the request is wrong: unknown option, impossible combination
  kInput,      // the input is unusable: missing, not the format, nothing in it
  kCheck,      // a check that the user asked for failed
  kCancelled,  // the caller stopped the work
  kLimit,      // a limit of time, rows or memory was reached
  kInternal,   // a fault of lamina
};

// One error, written for the person who will read it. `what` starts in lower
// case, says what was found and what was expected; `hint` says what to do.
struct Error {
  ErrorKind kind = ErrorKind::kInput;
  std::string what;
  std::string hint;
  std::string file;
  std::optional<uint64_t> offset;  // byte offset inside `file`
  uint32_t line = 0;               // 1-based; 0 when the place is an offset
  uint32_t column = 0;             // 1-based byte column
  // Source line with a caret below; empty: none. Its control characters are
  // escaped; the other texts hold what the input holds.
  std::string excerpt;

  // "FILE[:OFFSET|:LINE:COLUMN]: what; hint" and the excerpt on own lines, for
  // a terminal: control characters are escaped in all of it.
  LAMINA_API std::string ToString() const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> Fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

}  // namespace lamina
