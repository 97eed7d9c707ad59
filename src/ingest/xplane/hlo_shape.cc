// SPDX-License-Identifier: Apache-2.0
//
// Shapes of HLO: their elements, bytes and texts.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/decimal.h"
#include "ingest/xplane/hlo.h"

namespace lamina::ingest::xplane {
namespace {

struct ElementType {
  std::string_view name;
  int bits;
};

// By the numbers of xla_data.proto.
constexpr std::array<ElementType, 34> kElementTypes = {{
    {"", 0},           {"pred", 8},       {"s8", 8},     {"s16", 16},
    {"s32", 32},       {"s64", 64},       {"u8", 8},     {"u16", 16},
    {"u32", 32},       {"u64", 64},       {"f16", 16},   {"f32", 32},
    {"f64", 64},       {"tuple", 0},      {"opaque", 0}, {"c64", 64},
    {"bf16", 16},      {"token", 0},      {"c128", 128}, {"f8e5m2", 8},
    {"f8e4m3fn", 8},   {"s4", 4},         {"u4", 4},     {"f8e4m3b11fnuz", 8},
    {"f8e5m2fnuz", 8}, {"f8e4m3fnuz", 8}, {"s2", 2},     {"u2", 2},
    {"f8e4m3", 8},     {"f8e3m4", 8},     {"s1", 1},     {"u1", 1},
    {"f4e2m1fn", 4},   {"f8e8m0fnu", 8},
}};

}  // namespace

std::string_view ElementTypeName(uint32_t type) {
  return type < kElementTypes.size() ? kElementTypes[type].name
                                     : std::string_view();
}

double HloShape::Elements() const {
  if (type == kTuple) return 0;
  double product = 1;
  for (const int64_t dim : dims)
    product *= static_cast<double>(std::max<int64_t>(dim, 0));
  return product;
}

double HloShape::Bytes() const {
  if (type == kTuple) {
    double sum = 0;
    for (const HloShape& part : parts) sum += part.Bytes();
    return sum;
  }
  const int bits = type < kElementTypes.size() ? kElementTypes[type].bits : 0;
  return std::ceil(Elements() * bits / 8);
}

std::string HloShape::Text() const {
  if (type == kTuple) {
    std::string out = "(";
    for (const HloShape& part : parts) {
      if (out.size() > 1) out += ", ";
      out += part.Text();
    }
    return out + ")";
  }
  const std::string_view name = ElementTypeName(type);
  std::string out(name.empty() ? "?" : name);
  return out + DimsJson();
}

std::string HloShape::DimsJson() const {
  std::string out = "[";
  if (type == kTuple) {
    for (const HloShape& part : parts) {
      if (out.size() > 1) out += ',';
      out += part.DimsJson();
    }
  } else {
    for (const int64_t dim : dims) {
      if (out.size() > 1) out += ',';
      AppendInt(out, dim);
    }
  }
  return out + "]";
}

}  // namespace lamina::ingest::xplane
