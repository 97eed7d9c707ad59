// SPDX-License-Identifier: Apache-2.0
//
// Errors as values (lamina/status.h): how they are made and passed on.
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
#include <string>
#include <utility>

#include "lamina/status.h"

namespace lamina {

Error UsageError(std::string what, std::string hint = {});
Error InputError(std::string file, std::string what, std::string hint = {});
// The work ended because its caller asked for that.
Error CancelledError();
Error InputErrorAt(std::string file, uint64_t offset, std::string what,
                   std::string hint = {});

[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace lamina

// Stops the program when an invariant of our own is broken. Never for anything
// that an input can cause.
#define LAMINA_CHECK(condition)                              \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::lamina::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

#define LAMINA_CONCAT_INNER(a, b) a##b
#define LAMINA_CONCAT(a, b) LAMINA_CONCAT_INNER(a, b)

// `LAMINA_TRY(expression)` returns the error of a failed Status.
#define LAMINA_TRY(expression)                                 \
  do {                                                         \
    auto lamina_status = (expression);                         \
    if (!lamina_status)                                        \
      return ::lamina::Fail(std::move(lamina_status).error()); \
  } while (false)

// `LAMINA_ASSIGN(auto x, expression)` declares x from a Result or returns its
// error.
#define LAMINA_ASSIGN(declaration, expression)                              \
  LAMINA_ASSIGN_INNER(LAMINA_CONCAT(lamina_result_, __LINE__), declaration, \
                      expression)
#define LAMINA_ASSIGN_INNER(result, declaration, expression)     \
  auto result = (expression);                                    \
  if (!result) return ::lamina::Fail(std::move(result).error()); \
  declaration = std::move(result).value()
