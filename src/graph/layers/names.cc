// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/names.h"

#include "base/decimal.h"
#include "base/text.h"

namespace lamina::graph {
namespace {

bool IsSeparator(char c) { return c == '_' || c == '.'; }

}  // namespace

std::optional<LayerName> ParseLayerName(std::string_view name) {
  size_t begin = 0;
  while (begin < name.size()) {
    const size_t end = name.find_first_of("_.", begin);
    if (end == std::string_view::npos) break;
    const std::string_view word = name.substr(begin, end - begin);
    size_t digits = end + 1;
    while (digits < name.size() && IsDigit(name[digits])) ++digits;
    const bool layer = word == "layers" || word == "layer" ||
                       word == "blocks" || word == "block" || word == "h";
    if (layer && digits > end + 1 && digits < name.size() && digits - end < 9 &&
        IsSeparator(name[digits])) {
      LayerName out;
      out.stack = begin == 0 ? std::string_view() : name.substr(0, begin - 1);
      out.index = static_cast<uint32_t>(
          ParseInt(name.substr(end + 1, digits - end - 1)).value_or(0));
      out.rest = name.substr(digits + 1);
      return out;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace lamina::graph
