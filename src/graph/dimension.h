// SPDX-License-Identifier: Apache-2.0
//
// Inside of types.cc: one dimension of a shape, an expression of numbers and
// symbols. EvaluateDim and CanonicalDim of types.h belong to it.
#pragma once

#include <string_view>
#include <vector>

#include "base/text.h"

namespace lamina::graph {

// The symbols of a dimension in order, with repeats, behind those of `out`.
void AddSymbols(std::string_view dim, std::vector<std::string_view>& out);

// What names begin with.
inline bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace lamina::graph
