// SPDX-License-Identifier: Apache-2.0
//
// A rule as Python that walks over a graph: for every alternative a method
// that finds its places and one that replaces a place.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/pattern/rule.h"

namespace lamina::generate {

// What parts of a file need from the rest of it.
struct Needs {
  std::set<std::string> helpers;               // templates: "same", "value" ...
  std::set<std::string> functions;             // "fn.name" without "fn."
  std::map<std::string, std::string> options;  // of the config: Python literal
  std::map<std::string, std::string> open;     // guards to answer: id, text
  bool uses_operator = false;
};

// The target of a replacement, which may hold {option:value}. Errors: a
// built-in function that is not known.
Result<std::string> AfterTarget(const std::string& target, Needs& needs);

// One alternative: `_find_N` and `_replace_N`. `option_defaults` are values
// of guards option($c, name) as the dump has them. Errors (usage): something
// of the rule that cannot be written, named.
Result<std::string> WalkMethods(
    const graph::Rule& rule, const graph::Alternative& alternative,
    size_t number, const std::map<std::string, std::string>& option_defaults,
    Needs& needs);

}  // namespace lamina::generate
