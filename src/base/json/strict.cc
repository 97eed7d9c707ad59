// SPDX-License-Identifier: Apache-2.0
#include "base/json/strict.h"

#include <algorithm>

#include "base/escape.h"
#include "base/json/scan.h"
#include "base/text.h"

namespace lamina::json {
namespace {

bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20; }

// Bytes at the end of `text` that begin a character of UTF-8 and do not end it.
size_t CutBytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0   ? 4
                          : byte >= 0xE0 ? 3
                          : byte >= 0xC0 ? 2
                                         : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

bool StrictCheck::Utf8(std::string_view piece) {
  if (!cut_.empty()) {
    // The rest of a character that began in the piece before.
    while (!piece.empty() &&
           (static_cast<unsigned char>(piece.front()) & 0xC0) == 0x80) {
      cut_ += piece.front();
      piece.remove_prefix(1);
    }
    if (piece.empty() && cut_.size() < 4) return true;
    if (!IsValidUtf8(cut_)) return false;
    cut_.clear();
  }
  const size_t cut = CutBytes(piece);
  cut_ = piece.substr(piece.size() - cut);
  return IsValidUtf8(piece.substr(0, piece.size() - cut));
}

void StrictCheck::EndValue() {
  state_ = objects_.empty() ? State::kDone : State::kBehind;
}

// The first character of a value.
bool StrictCheck::Begin(char c) {
  switch (c) {
    case '{':
    case '[':
      if (objects_.size() >= static_cast<size_t>(kMaxDepth)) return false;
      objects_.push_back(c == '{');
      state_ = c == '{' ? State::kKeyOrEnd : State::kValueOrEnd;
      return true;
    case '"':
      in_key_ = false;
      state_ = State::kString;
      return true;
    case '-':
      state_ = State::kMinus;
      return true;
    case 't':
      word_ = "rue";
      break;
    case 'f':
      word_ = "alse";
      break;
    case 'n':
      word_ = "ull";
      break;
    default:
      if (!IsDigit(c)) return false;
      state_ = c == '0' ? State::kZero : State::kDigits;
      return true;
  }
  state_ = State::kWord;
  return true;
}

// Whether `c` belongs to the number; else the state is kFault where the number
// cannot end here.
bool StrictCheck::NumberGoesOn(char c) {
  const bool digit = IsDigit(c);
  switch (state_) {
    case State::kMinus:
      state_ = !digit     ? State::kFault
               : c == '0' ? State::kZero
                          : State::kDigits;
      return true;
    case State::kZero:
    case State::kDigits:
      if (digit) {
        if (state_ == State::kZero) state_ = State::kFault;
        return true;
      }
      if (c == '.') {
        state_ = State::kPoint;
        return true;
      }
      break;
    case State::kPoint:
      state_ = digit ? State::kFraction : State::kFault;
      return true;
    case State::kFraction:
      if (digit) return true;
      break;
    case State::kExponent:
      if (c == '+' || c == '-') {
        state_ = State::kExponentSign;
        return true;
      }
      [[fallthrough]];
    case State::kExponentSign:
      state_ = digit ? State::kExponentDigits : State::kFault;
      return true;
    default:  // kExponentDigits
      return digit;
  }
  if (c == 'e' || c == 'E') {
    state_ = State::kExponent;
    return true;
  }
  return false;
}

bool StrictCheck::Take(char c) {
  switch (state_) {
    case State::kMinus:
    case State::kZero:
    case State::kDigits:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      if (NumberGoesOn(c)) return state_ != State::kFault;
      EndValue();
      return Take(c);
    case State::kWord:
      if (word_.empty()) {
        EndValue();
        return Take(c);
      }
      if (c != word_.front()) return false;
      word_.remove_prefix(1);
      return true;
    case State::kString:
      if (c == '"') {
        if (in_key_) {
          state_ = State::kColon;
        } else {
          EndValue();
        }
      } else if (c == '\\') {
        state_ = State::kEscape;
      } else if (IsControl(c)) {
        return false;
      }
      return true;
    case State::kEscape:
      if (c == 'u') {
        hex_left_ = 4;
        state_ = State::kHex;
        return true;
      }
      state_ = State::kString;
      return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    case State::kHex:
      if (--hex_left_ == 0) state_ = State::kString;
      return IsHex(c);
    default:
      break;
  }
  if (IsSpace(c)) return true;
  switch (state_) {
    case State::kKeyOrEnd:
    case State::kKey:
      if (c == '}' && state_ == State::kKeyOrEnd) {
        objects_.pop_back();
        EndValue();
        return true;
      }
      in_key_ = true;
      state_ = State::kString;
      return c == '"';
    case State::kColon:
      state_ = State::kValue;
      return c == ':';
    case State::kBehind:
      if (c == ',') {
        state_ = objects_.back() ? State::kKey : State::kValue;
        return true;
      }
      if (c != (objects_.back() ? '}' : ']')) return false;
      objects_.pop_back();
      EndValue();
      return true;
    case State::kValueOrEnd:
      if (c == ']') {
        objects_.pop_back();
        EndValue();
        return true;
      }
      return Begin(c);
    case State::kValue:
      return Begin(c);
    default:  // kDone: one document only
      return false;
  }
}

bool StrictCheck::Feed(std::string_view piece) {
  if (state_ == State::kFault) return false;
  bool good = Utf8(piece);
  for (size_t i = 0; good && i < piece.size(); ++i) {
    if (state_ == State::kString) {
      // Most bytes are text.
      while (i < piece.size() && piece[i] != '"' && piece[i] != '\\' &&
             !IsControl(piece[i]))
        ++i;
      if (i == piece.size()) break;
    }
    good = Take(piece[i]);
  }
  if (!good) state_ = State::kFault;
  return good;
}

bool StrictCheck::Finish() {
  // A number or word at the top ends with the text.
  return Feed(" ") && state_ == State::kDone && cut_.empty();
}

bool IsStrict(std::string_view text) {
  StrictCheck check;
  return check.Feed(text) && check.Finish();
}

namespace {

// The number at text[pos], mended; moves `pos` behind it.
void MendNumber(std::string_view text, size_t& pos, std::string& out) {
  const auto digits = [&] {
    const size_t begin = pos;
    while (pos < text.size() && IsDigit(text[pos])) ++pos;
    return text.substr(begin, pos - begin);
  };
  if (text[pos] == '-') out += text[pos++];
  std::string_view whole = digits();
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  out += whole;
  if (pos < text.size() && text[pos] == '.') {
    ++pos;
    const std::string_view fraction = digits();
    if (!fraction.empty()) out.append(".").append(fraction);
  }
  if (pos < text.size() && (text[pos] == 'e' || text[pos] == 'E')) {
    const size_t begin = pos++;
    if (pos < text.size() && (text[pos] == '+' || text[pos] == '-')) ++pos;
    if (!digits().empty()) out += text.substr(begin, pos - begin);
  }
}

// The string at text[pos], mended; moves `pos` behind it.
void MendString(std::string_view text, size_t& pos, std::string& out) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  const auto control = [&](char c) {
    out += "\\u00";
    out += kHexDigits[static_cast<unsigned char>(c) >> 4];
    out += kHexDigits[static_cast<unsigned char>(c) & 15];
  };
  out += text[pos++];
  while (pos < text.size()) {
    const char c = text[pos++];
    if (IsControl(c)) {
      control(c);
      continue;
    }
    if (c != '\\') {
      out += c;
      if (c == '"') return;
      continue;
    }
    // scan.h takes any character behind a backslash as escaped.
    const char next = pos < text.size() ? text[pos] : '"';
    const bool hex =
        next == 'u' && pos + 4 < text.size() &&
        std::all_of(text.begin() + static_cast<ptrdiff_t>(pos) + 1,
                    text.begin() + static_cast<ptrdiff_t>(pos) + 5, IsHex);
    out += hex || std::string_view("\"\\/bfnrt").find(next) !=
                       std::string_view::npos
               ? "\\"
               : "\\\\";
    if (IsControl(next)) continue;  // the next round writes it
    out += next;
    ++pos;
  }
}

}  // namespace

std::optional<std::string> MakeStrict(std::string_view value) {
  const std::string text = RepairUtf8(value);
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t pos = 0; pos < text.size();) {
    const char c = text[pos];
    const auto word = [&](std::string_view name) {
      if (std::string_view(text).substr(pos, name.size()) != name) return false;
      out += "null";
      pos += name.size();
      return true;
    };
    if (c == '"') {
      MendString(text, pos, out);
    } else if (word("NaN") || word("nan") || word("-Infinity") ||
               word("-inf") || word("Infinity") || word("inf")) {
      continue;
    } else if (IsDigit(c) || c == '-') {
      MendNumber(text, pos, out);
    } else {
      out += c;
      ++pos;
    }
  }
  if (!IsStrict(out)) return std::nullopt;
  return out;
}

}  // namespace lamina::json
