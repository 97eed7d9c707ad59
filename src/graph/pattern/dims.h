// SPDX-License-Identifier: Apache-2.0
//
// Dimensions of a shape as texts: numbers, symbols and what is made of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::graph {

// "2", "s0" of "2xs0"; nothing for what is no shape.
std::optional<std::vector<std::string>> DimsOf(std::string_view shape);
std::string JoinedDims(const std::vector<std::string>& dims);

// The place that a literal names, "-1" being the last of `rank`.
std::optional<size_t> DimIndex(std::string_view text, size_t rank);

// Numbers when all are.
std::string ProductOfDims(const std::vector<std::string>& dims);
std::string SumOfDims(const std::string& a, const std::string& b);

}  // namespace lamina::graph
