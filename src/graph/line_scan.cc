// SPDX-License-Identifier: Apache-2.0
#include "graph/line_scan.h"

#include <algorithm>

namespace lamina::graph {
namespace {

bool IsDotted(std::string_view text) {
  return !text.empty() && IsNameStart(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsNameByte(c) || c == '.'; });
}

}  // namespace

size_t SkipQuoted(std::string_view text, size_t pos) {
  const char quote = text[pos++];
  while (pos < text.size()) {
    if (text[pos] == '\\') {
      pos += 2;
    } else if (text[pos++] == quote) {
      return pos;
    }
  }
  return text.size();
}

size_t SkipAngles(std::string_view text, size_t pos) {
  size_t depth = 0;
  for (; pos < text.size(); ++pos) {
    if (text[pos] == '<') ++depth;
    if (text[pos] == '>' && --depth == 0) return pos + 1;
  }
  return std::string_view::npos;
}

bool IsKeyword(std::string_view name) {
  for (const std::string_view word :
       {"None", "True", "False", "Ellipsis", "slice", "inf", "nan", "device"}) {
    if (name == word) return true;
  }
  return false;
}

bool IsNumber(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+'))
    text.remove_prefix(1);
  if (text.empty()) return false;
  if (text == "inf" || text == "nan") return true;
  if (!IsDigit(text[0]) && !(text[0] == '.' && text.size() > 1)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsNameByte(c) || c == '.' || c == '-' || c == '+';
  });
}

bool IsDevice(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return text == "cpu" || text == "cuda" || text == "meta";
  const std::string_view index = text.substr(colon + 1);
  return IsDotted(text.substr(0, colon)) && !index.empty() &&
         std::all_of(index.begin(), index.end(), IsDigit);
}

}  // namespace lamina::graph
