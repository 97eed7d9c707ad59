// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/python_text.h"

#include <vector>

#include "base/escape.h"
#include "base/json/scan.h"

namespace lamina::compat::tracelens {
namespace {

// Text was checked when it was read: brackets balance.
std::string Convert(std::string_view json, bool tuple) {
  std::string out;
  // Number of items in each open list, for the comma of one-element tuples.
  std::vector<size_t> counts;
  for (size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (c == '[' || c == '{') {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      counts.push_back(0);
      out += c == '{' ? '{' : tuple ? '(' : '[';
      ++i;
    } else if (c == ']' || c == '}') {
      if (c == ']' && tuple && !counts.empty() && counts.back() == 1)
        out += ',';
      if (!counts.empty()) counts.pop_back();
      out += c == '}' ? '}' : tuple ? ')' : ']';
      ++i;
    } else if (c == ',') {
      if (!counts.empty()) ++counts.back();
      out += ", ";
      ++i;
    } else if (c == ':') {
      out += ": ";
      ++i;
    } else if (c == '"') {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      size_t end = i + 1;
      while (end < json.size() && json[end] != '"')
        end += json[end] == '\\' ? 2 : 1;
      if (end > json.size()) end = json.size();
      AppendPythonQuoted(out,
                         json::DecodeString(json.substr(i + 1, end - i - 1)));
      i = end + 1;
    } else {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      size_t end = i;
      while (end < json.size() &&
             std::string_view(",]}:").find(json[end]) == std::string_view::npos)
        ++end;
      const std::string_view word = json.substr(i, end - i);
      out += word == "null"    ? "None"
             : word == "true"  ? "True"
             : word == "false" ? "False"
                               : word;
      i = end;
    }
  }
  return out;
}

}  // namespace

std::string PythonTuple(std::string_view json) { return Convert(json, true); }
std::string PythonList(std::string_view json) { return Convert(json, false); }

}  // namespace lamina::compat::tracelens
