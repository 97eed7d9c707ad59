// SPDX-License-Identifier: Apache-2.0
//
// Errors as values.
//
// Three kinds of trouble are kept apart everywhere in lamina:
//   * the user's fault (bad option, unreadable file): an Error with a place and
//     a next step, carried up by Result<T>;
//   * a record's fault (one corrupt event among millions): counted in
//     trace::Diagnostics, and reading goes on;
//   * our own fault: LAMINA_CHECK stops the program.
// No exception crosses a folder boundary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace lamina {

// What an error means for the caller; the command line maps it to the exit
// status (usage 2, input 3, check 1).
enum class ErrorKind {
  kUsage,  // the request is wrong: unknown option, impossible combination
  kInput,  // the input is unusable: missing, not the format, nothing in it
  kCheck,  // a check that the user asked for failed
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
  std::string excerpt;             // source line with a caret below, optional

  // "FILE[:OFFSET|:LINE:COLUMN]: what; hint" and the excerpt on own lines.
  // Control characters in file names are escaped.
  std::string ToString() const;
};

Error UsageError(std::string what, std::string hint = {});
Error InputError(std::string file, std::string what, std::string hint = {});
Error InputErrorAt(std::string file, uint64_t offset, std::string what,
                   std::string hint = {});

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> Fail(Error error) {
  return tl::make_unexpected(std::move(error));
}

[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace lamina

// Stops the program when an invariant of our own is broken. Never for anything
// that an input can cause.
#define LAMINA_CHECK(condition)                                     \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::lamina::CheckFailed(#condition, __FILE__, __LINE__);        \
  } while (false)

#define LAMINA_CONCAT_INNER(a, b) a##b
#define LAMINA_CONCAT(a, b) LAMINA_CONCAT_INNER(a, b)

// `LAMINA_TRY(expression)` returns the error of a failed Status.
#define LAMINA_TRY(expression)                                     \
  do {                                                             \
    auto lamina_status = (expression);                             \
    if (!lamina_status)                                            \
      return ::lamina::Fail(std::move(lamina_status).error());     \
  } while (false)

// `LAMINA_ASSIGN(auto x, expression)` declares x from a Result or returns its
// error.
#define LAMINA_ASSIGN(declaration, expression) \
  LAMINA_ASSIGN_INNER(LAMINA_CONCAT(lamina_result_, __LINE__), declaration, \
                      expression)
#define LAMINA_ASSIGN_INNER(result, declaration, expression)          \
  auto result = (expression);                                         \
  if (!result) return ::lamina::Fail(std::move(result).error());      \
  declaration = std::move(result).value()
