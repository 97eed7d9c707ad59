// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/dims.h"

#include "base/decimal.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// A factor in a product.
std::string Factor(const std::string& dim) {
  const bool plain = dim.find_first_of(" +-/%") == std::string::npos ||
                     (dim.front() == '(' && dim.back() == ')');
  return plain ? dim : "(" + dim + ")";
}

}  // namespace

std::optional<std::vector<std::string>> DimsOf(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims) return std::nullopt;
  return std::vector<std::string>(dims->begin(), dims->end());
}

std::string JoinedDims(const std::vector<std::string>& dims) {
  if (dims.empty()) return "scalar";
  std::string out;
  for (const std::string& dim : dims) out += (out.empty() ? "" : "x") + dim;
  return out;
}

std::optional<size_t> DimIndex(std::string_view text, size_t rank) {
  const auto index = ParseInt(text);
  if (!index) return std::nullopt;
  const int64_t at = *index < 0 ? *index + static_cast<int64_t>(rank) : *index;
  if (at < 0 || at >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(at);
}

std::string ProductOfDims(const std::vector<std::string>& dims) {
  std::string out;
  for (const std::string& dim : dims) {
    if (dim == "1") continue;
    out += (out.empty() ? "" : "*") + Factor(dim);
  }
  if (out.empty()) return "1";
  if (const auto value = EvaluateDim(out, {})) return std::to_string(*value);
  return CanonicalDim(out);
}

std::string SumOfDims(const std::string& a, const std::string& b) {
  const std::string text = a + " + " + b;
  if (const auto value = EvaluateDim(text, {})) return std::to_string(*value);
  return "(" + text + ")";
}

}  // namespace lamina::graph
