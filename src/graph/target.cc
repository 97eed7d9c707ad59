// SPDX-License-Identifier: Apache-2.0
#include "graph/target.h"

namespace lamina::graph {
namespace {

constexpr std::string_view kFunction = "<function ";
constexpr std::string_view kBuiltin = "<built-in function ";
constexpr std::string_view kMethod = "<built-in method ";

}  // namespace

std::string_view QualifiedName(std::string_view target) {
  if (!target.starts_with(kFunction)) return {};
  target.remove_prefix(kFunction.size());
  const size_t at = target.rfind(" at 0x");
  if (at != std::string_view::npos) return target.substr(0, at);
  if (target.ends_with('>')) target.remove_suffix(1);
  return target;
}

std::string NormalizeTarget(std::string_view target) {
  if (!target.starts_with('<')) return std::string(target);
  if (target.starts_with(kFunction)) {
    std::string_view name = QualifiedName(target);
    // The last part: dots inside <...> separate nothing.
    int depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
      if (name[i] == '>') ++depth;
      if (name[i] == '<') --depth;
      if (name[i] == '.' && depth == 0) {
        name.remove_prefix(i + 1);
        break;
      }
    }
    return "fn." + std::string(name);
  }
  for (const std::string_view prefix : {kBuiltin, kMethod}) {
    if (!target.starts_with(prefix)) continue;
    std::string_view name = target.substr(prefix.size());
    name = name.substr(0, name.find_first_of(" >"));
    return "builtin." + std::string(name);
  }
  return std::string(target);
}

bool MatchesTarget(std::string_view op, std::string_view pattern) {
  return op.starts_with(pattern) &&
         (op.size() == pattern.size() || op[pattern.size()] == '.');
}

}  // namespace lamina::graph
