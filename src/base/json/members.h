// SPDX-License-Identifier: Apache-2.0
//
// The loop over the members of a JSON object, over tokens (fast, in text known
// to be good) and over text (careful).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json/tokens.h"

namespace lamina::json {

// Moves `token` behind the value there; false when none can stand there.
inline bool SkipValue(const Tokens& tokens, size_t& token) {
  switch (tokens.Kind(token)) {
    case '}':
    case ']':
    case ':':
    case ',':
    case '\0':
      return false;
    default:
      token = tokens.Skip(token);
      return token <= tokens.count();
  }
}

// For the object whose '{' is at `token`: calls visit(key, value) for each
// member, with the raw text of the key and the token of the value, which the
// call moves behind the value; it returns false to give up. Moves `token`
// behind the object. False when the object breaks the grammar.
template <class Visit>
bool WalkObject(const Tokens& tokens, size_t& token, Visit&& visit) {
  ++token;  // '{'
  if (tokens.Kind(token) == '}') {
    ++token;
    return true;
  }
  while (true) {
    if (tokens.Kind(token) != '"' || tokens.Kind(token + 1) != ':')
      return false;
    const Tokens::Text key = tokens.String(token);
    if (!key.ok) return false;
    token += 2;
    if (!visit(key.raw, token)) return false;
    const char next = tokens.Kind(token);
    ++token;
    if (next == '}') return true;
    if (next != ',') return false;
  }
}

struct Member {
  std::string_view key;    // between the quotes, as it stands
  std::string_view value;  // as it stands
  size_t position = 0;     // of the value in the text
};

// The members of the object that is all of `text`, one by one.
class MemberScan {
 public:
  explicit MemberScan(std::string_view text);

  // The next member; false behind the last one, and for good where the text
  // breaks the grammar.
  bool Next(Member& member);
  // Next() has come to the closing brace.
  bool closed() const { return closed_; }

 private:
  std::string_view text_;
  size_t pos_ = 0;
  bool first_ = true;
  bool broken_ = false;
  bool closed_ = false;
};

}  // namespace lamina::json
