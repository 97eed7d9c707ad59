// SPDX-License-Identifier: Apache-2.0
#include "graph/types.h"

#include <algorithm>
#include <utility>

#include "graph/dimension.h"
#include "graph/line_scan.h"

namespace lamina::graph {
namespace {

// Brackets balanced, no byte that no shape has.
bool IsShapeText(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) return false;
    const bool known = IsLetter(c) || IsDigit(c) ||
                       std::string_view(" +-*/%(),?<>=!&|~.").find(c) !=
                           std::string_view::npos;
    if (!known) return false;
  }
  return depth == 0 && !text.empty() && text.front() != ' ' &&
         text.back() != ' ';
}

struct DTypeRow {
  std::string_view name;
  std::string_view brief;
  int64_t bytes;
};
constexpr DTypeRow kDTypes[] = {
    {"bool", "bool", 1},
    {"int8", "i8", 1},
    {"uint8", "u8", 1},
    {"int16", "i16", 2},
    {"uint16", "u16", 2},
    {"int32", "i32", 4},
    {"uint32", "u32", 4},
    {"int64", "i64", 8},
    {"uint64", "u64", 8},
    {"float8_e4m3fn", "fp8 e4m3", 1},
    {"float8_e4m3fnuz", "fp8 e4m3", 1},
    {"float8_e5m2", "fp8 e5m2", 1},
    {"float8_e5m2fnuz", "fp8 e5m2", 1},
    {"float8_e8m0fnu", "fp8 e8m0", 1},
    {"float4_e2m1fn_x2", "fp4 x2", 1},
    {"float16", "fp16", 2},
    {"bfloat16", "bf16", 2},
    {"float32", "fp32", 4},
    {"float64", "fp64", 8},
    {"complex64", "c64", 8},
    {"complex128", "c128", 16},
};

}  // namespace

bool IsShape(std::string_view text) { return IsShapeText(text); }

bool IsDType(std::string_view text) {
  if (text == "N/A" || text == "?") return true;
  return !text.empty() && IsLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '.';
         });
}

bool IsResult(std::string_view text) {
  const size_t colon = text.find(kColon);
  if (colon == std::string_view::npos) return false;
  const std::string_view shape = text.substr(0, colon);
  const std::string_view dtype = text.substr(colon + kColon.size());
  if (!IsShape(shape)) return shape == "()" && dtype == "()";
  if (IsDType(dtype)) return true;
  // "(a, b) : (c, d)"
  if (shape[0] != '(' || shape.back() != ')' || dtype.size() < 2 ||
      dtype[0] != '(' || dtype.back() != ')')
    return false;
  return std::all_of(dtype.begin(), dtype.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) ||
           std::string_view("().,/ ?").find(c) != std::string_view::npos;
  });
}

std::optional<std::vector<std::string_view>> SplitShape(
    std::string_view shape) {
  std::vector<std::string_view> dims;
  if (shape == "?") return std::nullopt;
  if (shape == "scalar") return dims;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const char c = shape[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    // Between complete dimensions only: behind a digit or a bracket, so not
    // inside a word like Max.
    if (c != 'x' || depth != 0 || i == start || i + 1 == shape.size()) continue;
    const char before = shape[i - 1];
    if (!IsDigit(before) && before != ')' && before != '?') continue;
    dims.push_back(shape.substr(start, i - start));
    start = i + 1;
  }
  dims.push_back(shape.substr(start));
  return dims;
}

std::optional<int64_t> Elements(std::string_view shape,
                                const Bindings& bindings) {
  const auto dims = SplitShape(shape);
  if (!dims) return std::nullopt;
  int64_t product = 1;
  for (const std::string_view dim : *dims) {
    const auto value = EvaluateDim(dim, bindings);
    if (!value || *value < 0 ||
        __builtin_mul_overflow(product, *value, &product))
      return std::nullopt;
  }
  return product;
}

std::string CanonicalShape(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims || dims->empty()) return std::string(shape);
  std::string out;
  for (const std::string_view dim : *dims) {
    if (!out.empty()) out += 'x';
    out += CanonicalDim(dim);
  }
  return out;
}

std::vector<std::string_view> Symbols(std::string_view shape) {
  std::vector<std::string_view> out;
  if (shape == "?" || shape == "scalar") return out;
  const auto dims = SplitShape(shape);
  for (const std::string_view dim : *dims) AddSymbols(dim, out);
  return out;
}

std::optional<int64_t> DTypeBytes(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  for (const DTypeRow& row : kDTypes) {
    if (dtype == row.name) return row.bytes;
  }
  return std::nullopt;
}

std::string_view ShortDType(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  for (const DTypeRow& row : kDTypes) {
    if (dtype == row.name) return row.brief;
  }
  return dtype;
}

}  // namespace lamina::graph
