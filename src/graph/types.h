// SPDX-License-Identifier: Apache-2.0
//
// Shapes and element types as dumps write them: "s72xs70x4096",
// "s0xMax(1, u0)x3", "scalar", "?"; "torch.bfloat16", "N/A".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"

namespace lamina::graph {

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

}  // namespace lamina::graph
