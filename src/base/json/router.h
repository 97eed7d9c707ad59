// SPDX-License-Identifier: Apache-2.0
//
// How a reader says which values of a JSON document it wants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lamina::json {

// What to do with a value of the outer document.
enum class Action {
  kSkip,     // read past it
  kCapture,  // hand over its raw text (at most 64 MiB)
  kDescend,  // an object or array: ask again for each member
  kRecords,  // an array: deliver its elements in chunks
};

// Keys and array positions ("0", "1" ...) from the root to a value.
using Path = std::span<const std::string>;

// What Router::Lost() is told where a list has no ']': it may be cut off.
inline constexpr std::string_view kListWithoutEnd =
    "the file ends inside the list of records";

// And where a second document stands behind the first.
inline constexpr std::string_view kAnotherDocument =
    "another document follows the first and is not read: split the file";

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

}  // namespace lamina::json
