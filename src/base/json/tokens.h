// SPDX-License-Identifier: Apache-2.0
//
// Positions of the JSON tokens of a text: every bracket, colon and comma
// outside strings and the first byte of every string and scalar, found by the
// first stage of simdjson with the vector unit of this machine.
//
// Why not the on-demand API: it is compiled for one instruction set, while
// this stage is dispatched at run time, so one binary is fast everywhere; and
// a walk over the index gives the raw text of any value (exact decimal times,
// whole "Input Dims" arrays) at half the cost. On 1.03 GB of h100-owlv2 and
// sglang-qwen3-8b events, ten fields each, one thread: on-demand 1.1 s, this
// index 0.09 s plus a walk of 0.4 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace lamina::json {

// Bytes that must be readable (any value) behind the text.
inline constexpr size_t kPadding = 64;

class TokenIndex {
 public:
  TokenIndex();
  ~TokenIndex();
  TokenIndex(TokenIndex&&) noexcept;
  TokenIndex& operator=(TokenIndex&&) noexcept;

  enum class Outcome { kOk, kBroken };
  // Indexes `text`, at most 4 GB. kBroken: invalid UTF-8, a control character
  // or an open quote in a string, or no token at all.
  Outcome Build(std::string_view text);

  // Token positions, then one sentinel equal to the size of the text.
  const uint32_t* data() const;
  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A walk over the tokens of one text. Positions are token numbers.
class Tokens {
 public:
  Tokens(std::string_view text, const TokenIndex& index)
      : text_(text.data()),
        size_(text.size()),
        at_(index.data()),
        count_(index.size()) {}

  size_t count() const { return count_; }
  // The character a token starts with; 0 behind the last one.
  char Kind(size_t token) const {
    return token < count_ ? text_[at_[token]] : '\0';
  }
  // The text from a token on, which must not be behind the last one.
  const char* At(size_t token) const { return text_ + at_[token]; }
  size_t Position(size_t token) const {
    return token < count_ ? at_[token] : size_;
  }

  // For a string token: the raw text between the quotes. Empty optional-like
  // pair: `ok` false when the closing quote is not where it must be.
  struct Text {
    std::string_view raw;
    bool ok = false;
  };
  Text String(size_t token) const {
    const size_t begin = at_[token] + 1;
    // Behind a string only white space may stand before the next token, so
    // the closing quote is the first non-space going back from it.
    size_t end = Position(token + 1);
    while (end > begin && text_[end - 1] != '"') {
      const char c = text_[end - 1];
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return {};
      --end;
    }
    if (end <= begin) return {};
    return {{text_ + begin, end - 1 - begin}, true};
  }

  // For a scalar token: its text without white space behind it.
  std::string_view Scalar(size_t token) const {
    const size_t begin = at_[token];
    size_t end = Position(token + 1);
    while (end > begin && static_cast<unsigned char>(text_[end - 1]) <= ' ')
      --end;
    return {text_ + begin, end - begin};
  }

  // The token behind the value that starts at `token`; count() + 1 when a
  // container is not closed.
  size_t Skip(size_t token) const {
    const char kind = Kind(token);
    if (kind != '{' && kind != '[') return token + 1;
    size_t depth = 1;
    for (size_t i = token + 1; i < count_; ++i) {
      const char c = text_[at_[i]] | 0x20;
      if (c == '{') {
        ++depth;
      } else if (c == '}' && --depth == 0) {
        return i + 1;
      }
    }
    return count_ + 1;
  }

  // Raw text of the container between `token` and `behind` = Skip(token).
  std::string_view Raw(size_t token, size_t behind) const {
    return {text_ + at_[token], at_[behind - 1] + 1 - at_[token]};
  }

 private:
  const char* text_;
  size_t size_;
  const uint32_t* at_;
  size_t count_;
};

// The loop over the members of a JSON object, over tokens (fast, in text known
// to be good) and over text (careful).

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
