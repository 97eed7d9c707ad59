// SPDX-License-Identifier: Apache-2.0
//
// Shapes, element types and targets of ops as dumps write them: "s72xs70x4096",
// "torch.bfloat16", "torch.ops.aten.mm.default".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "base/text.h"

namespace lamina::graph {

// Shapes and element types as dumps write them: "s72xs70x4096",
// "s0xMax(1, u0)x3", "scalar", "?"; "torch.bfloat16", "N/A".

// Whether text can be a shape or a dtype at all.
bool IsShape(std::string_view text);
bool IsDType(std::string_view text);
// "shape : dtype" or "(shapes) : (dtypes)".
bool IsResult(std::string_view text);

// The dimensions of a shape; none for "scalar". Nothing for "?".
std::optional<std::vector<std::string_view>> SplitShape(std::string_view shape);

// Values for symbols: s72 -> 1.
using Bindings = TextMap<int64_t>;

// The value of a dimension: an integer or an expression of + - * // % with
// Max, Min, Mod and symbols. Nothing when a symbol is unbound, on overflow and
// for text that is no expression.
std::optional<int64_t> EvaluateDim(std::string_view dim,
                                   const Bindings& bindings);
// Elements of a shape; 1 for "scalar".
std::optional<int64_t> Elements(std::string_view shape,
                                const Bindings& bindings);

// Equal texts for equal expressions up to the order of factors and terms:
// "s72*s70" and "s70*s72" both give "s70*s72". Text that is no expression
// stays.
std::string CanonicalDim(std::string_view dim);
std::string CanonicalShape(std::string_view shape);

// The symbols of a shape in order, with repeats.
std::vector<std::string_view> Symbols(std::string_view shape);

// Bytes of an element of a torch dtype ("torch.bfloat16"); nothing for others.
std::optional<int64_t> DTypeBytes(std::string_view dtype);
// "bf16" for "torch.bfloat16"; the name without "torch." for unknown ones.
std::string_view ShortDType(std::string_view dtype);

// Inside of types.cc: one dimension of a shape, an expression of numbers and
// symbols. EvaluateDim and CanonicalDim of types.h belong to it.

// The symbols of a dimension in order, with repeats, behind those of `out`.
void AddSymbols(std::string_view dim, std::vector<std::string_view>& out);

// What names begin with.
inline bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Targets of ops: from the text of a dump to one name per op.

// "<built-in function getitem>" -> "builtin.getitem"; "<function a.<locals>.f
// at 0x7f>" -> "fn.f"; everything else stays. Addresses differ in every run,
// so nothing may be compared by the text of the dump.
std::string NormalizeTarget(std::string_view target);

// The qualified name of a function target ("a.<locals>.f"); else empty.
std::string_view QualifiedName(std::string_view target);

// Whether `op` is `pattern` or below it: "aten.to" matches "aten.to" and
// "aten.to.dtype" and not "aten.topk".
bool MatchesTarget(std::string_view op, std::string_view pattern);

// Whether an op is there wherever PyTorch is: ATen's, and Python's own.
inline bool IsOfPyTorch(std::string_view op) {
  return op.starts_with("aten.") || op.starts_with("builtin.");
}

}  // namespace lamina::graph
