// SPDX-License-Identifier: Apache-2.0
//
// All functions of the formula language. A formula evaluates those here itself:
// not every argument of theirs is needed.
#include "cost/functions.h"

namespace lamina::cost {
namespace {

Value Unused(const Scope&, const std::vector<Value>&, std::string_view) {
  return {};
}

std::vector<Function> AllFunctions() {
  std::vector<Function> out = {
      {"if", 3, 3, "if(condition, then, else).", &Unused},
      {"first", 1, 16, "The first of its arguments that is known.", &Unused},
      {"unknown", 0, 0, "What is never known: the call has no cost.", &Unused},
  };
  for (auto list : {CallFunctions(), ValueFunctions()})
    out.insert(out.end(), list.begin(), list.end());
  return out;
}

}  // namespace

const std::vector<Function>& Functions() {
  static const std::vector<Function> kFunctions = AllFunctions();
  return kFunctions;
}

}  // namespace lamina::cost
