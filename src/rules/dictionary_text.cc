// SPDX-License-Identifier: Apache-2.0
#include "rules/dictionary_text.h"

namespace lamina::rules {
namespace {

constexpr size_t kMaxText = size_t{64} << 10;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text.substr(0, kMaxText)) {}

  std::optional<std::string> Find(std::string_view key) {
    if (!Take('{')) return std::nullopt;
    while (true) {
      const auto name = String();
      if (!name || !Take(':')) return std::nullopt;
      if (*name == key) return String();
      SkipValue();
      if (!Take(',')) return std::nullopt;
    }
  }

 private:
  bool AtEnd() const { return pos_ >= text_.size(); }

  bool Take(char c) {
    while (!AtEnd() && (text_[pos_] == ' ' || text_[pos_] == '\t' ||
                        text_[pos_] == '\n' || text_[pos_] == '\r'))
      ++pos_;
    if (AtEnd() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }

  // A text in single or double quotes. Of escapes only those of quotes and of
  // the backslash are undone: names have no others.
  std::optional<std::string> String() {
    const char quote = Take('\'') ? '\'' : Take('"') ? '"' : '\0';
    if (quote == '\0') return std::nullopt;
    std::string out;
    for (; !AtEnd(); ++pos_) {
      char c = text_[pos_];
      if (c == quote) {
        ++pos_;
        return out;
      }
      if (c == '\\' && pos_ + 1 < text_.size()) {
        const char next = text_[pos_ + 1];
        if (next == '\'' || next == '"' || next == '\\') {
          c = next;
          ++pos_;
        }
      }
      out += c;
    }
    return std::nullopt;
  }

  // To the comma or brace that ends a value. Brackets are counted, not paired:
  // a text that mixes them up has no field behind that this could find.
  void SkipValue() {
    int64_t depth = 0;
    while (!AtEnd()) {
      const char c = text_[pos_];
      if (c == '\'' || c == '"') {
        if (!String()) return;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}')) return;
      depth += c == '[' || c == '{' || c == '(';
      depth -= c == ']' || c == '}' || c == ')';
      ++pos_;
    }
  }

  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace

std::optional<std::string> TextOfKey(std::string_view dictionary,
                                     std::string_view key) {
  return Reader(dictionary).Find(key);
}

}  // namespace lamina::rules
