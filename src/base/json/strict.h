// SPDX-License-Identifier: Apache-2.0
//
// What may be written: JSON by the letter of RFC 8259. Reading is lenient
// (scan.h); a copy of an input must not pass its faults on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::json {

// Checks one document that comes in pieces: grammar, numbers, escapes, raw
// control characters and UTF-8. Nesting beyond kMaxDepth is no document.
class StrictCheck {
 public:
  // The next piece; false from the first fault on.
  bool Feed(std::string_view piece);
  // Whether all of it was one whole document.
  bool Finish();

 private:
  enum class State : uint8_t {
    kValue,       // a value must come
    kValueOrEnd,  // a value or ']'
    kKey,         // a key must come
    kKeyOrEnd,    // a key or '}'
    kColon,
    kBehind,  // behind a value: ',' or the end of what is around
    kString,  // inside a string
    kEscape,  // behind its backslash
    kHex,     // in the four digits behind \u
    kWord,    // in true, false, null
    kMinus,   // numbers, by what came last
    kZero,
    kDigits,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kDone,  // behind the document
    kFault,
  };

  bool Take(char c);
  bool Begin(char c);
  bool NumberGoesOn(char c);
  void EndValue();
  bool Utf8(std::string_view piece);

  State state_ = State::kValue;
  std::vector<bool> objects_;  // of the containers we are in
  bool in_key_ = false;
  int hex_left_ = 0;
  std::string_view word_;  // what is left of a word
  std::string cut_;        // a character of UTF-8 that a piece cut
};

// Whether `text` is one value, with nothing around it but white space.
bool IsStrict(std::string_view text);

// A value that scan.h accepts as one that may be written: broken UTF-8 becomes
// U+FFFD, control characters and unknown escapes become escapes, numbers lose
// zeros in front ("083") and parts without digits, NaN and Infinity become
// null. Nothing when it cannot be mended.
std::optional<std::string> MakeStrict(std::string_view value);

}  // namespace lamina::json
