// SPDX-License-Identifier: Apache-2.0
#include "cost/dtype.h"

#include "base/text.h"

namespace lamina::cost {
namespace {

struct Row {
  std::string_view text;  // lower case, without c10::
  DType type;
};

constexpr Row kRows[] = {
    {"complex<double>", {"complex128", 16, ""}},
    {"complexdouble", {"complex128", 16, ""}},
    {"complex128", {"complex128", 16, ""}},
    {"complex<float>", {"complex64", 8, ""}},
    {"complexfloat", {"complex64", 8, ""}},
    {"complex64", {"complex64", 8, ""}},
    {"complex<half>", {"complex32", 4, ""}},
    {"complex<c10::half>", {"complex32", 4, ""}},
    {"complexhalf", {"complex32", 4, ""}},
    {"double", {"fp64", 8, "fp64"}},
    {"float64", {"fp64", 8, "fp64"}},
    {"fp64", {"fp64", 8, "fp64"}},
    {"f64", {"fp64", 8, "fp64"}},
    {"float", {"fp32", 4, "fp32"}},
    {"float32", {"fp32", 4, "fp32"}},
    {"fp32", {"fp32", 4, "fp32"}},
    {"f32", {"fp32", 4, "fp32"}},
    {"half", {"fp16", 2, "fp16"}},
    {"float16", {"fp16", 2, "fp16"}},
    {"fp16", {"fp16", 2, "fp16"}},
    {"f16", {"fp16", 2, "fp16"}},
    {"bfloat16", {"bf16", 2, "bf16"}},
    {"bf16", {"bf16", 2, "bf16"}},
    {"float8_e4m3fn", {"fp8_e4m3", 1, "fp8"}},
    {"float8_e4m3fnuz", {"fp8_e4m3", 1, "fp8"}},
    {"fp8_e4m3", {"fp8_e4m3", 1, "fp8"}},
    {"f8e4m3fn", {"fp8_e4m3", 1, "fp8"}},
    {"f8e4m3fnuz", {"fp8_e4m3", 1, "fp8"}},
    {"e4m3", {"fp8_e4m3", 1, "fp8"}},
    {"float8_e5m2", {"fp8_e5m2", 1, "fp8"}},
    {"float8_e5m2fnuz", {"fp8_e5m2", 1, "fp8"}},
    {"fp8_e5m2", {"fp8_e5m2", 1, "fp8"}},
    {"f8e5m2", {"fp8_e5m2", 1, "fp8"}},
    {"f8e5m2fnuz", {"fp8_e5m2", 1, "fp8"}},
    {"e5m2", {"fp8_e5m2", 1, "fp8"}},
    {"fp8", {"fp8_e4m3", 1, "fp8"}},
    {"float8_e8m0fnu", {"fp8_e8m0", 1, ""}},
    {"float4_e2m1fn_x2", {"fp4", 1, "fp4"}},
    {"fp4", {"fp4", 1, "fp4"}},
    {"mxfp4", {"fp4", 1, "fp4"}},
    {"long int", {"int64", 8, ""}},
    {"long", {"int64", 8, ""}},
    {"int64", {"int64", 8, ""}},
    {"s64", {"int64", 8, ""}},
    {"unsigned long", {"uint64", 8, ""}},
    {"uint64", {"uint64", 8, ""}},
    {"u64", {"uint64", 8, ""}},
    {"int", {"int32", 4, ""}},
    {"int32", {"int32", 4, ""}},
    {"s32", {"int32", 4, ""}},
    {"unsigned int", {"uint32", 4, ""}},
    {"uint32", {"uint32", 4, ""}},
    {"u32", {"uint32", 4, ""}},
    {"short", {"int16", 2, ""}},
    {"short int", {"int16", 2, ""}},
    {"int16", {"int16", 2, ""}},
    {"s16", {"int16", 2, ""}},
    {"unsigned short", {"uint16", 2, ""}},
    {"uint16", {"uint16", 2, ""}},
    {"u16", {"uint16", 2, ""}},
    {"signed char", {"int8", 1, "int8"}},
    {"char", {"int8", 1, "int8"}},
    {"int8", {"int8", 1, "int8"}},
    {"s8", {"int8", 1, "int8"}},
    {"unsigned char", {"uint8", 1, "uint8"}},
    {"uint8", {"uint8", 1, "uint8"}},
    {"u8", {"uint8", 1, "uint8"}},
    {"bool", {"bool", 1, ""}},
    {"pred", {"bool", 1, ""}},
    {"scalar", {"scalar", 4, ""}},
};

std::string Canonical(std::string_view text) {
  if (text.starts_with("c10::")) text.remove_prefix(5);
  if (text.starts_with("torch.")) text.remove_prefix(6);
  return LowerCase(text);
}

}  // namespace

std::optional<DType> FindDType(std::string_view text) {
  const std::string name = Canonical(text);
  for (const Row& row : kRows) {
    if (row.text == name) return row.type;
  }
  return std::nullopt;
}

bool IsTensorType(std::string_view text) {
  const auto type = FindDType(text);
  return type && type->name != "scalar";
}

std::string_view Precision(const DType& type, std::string_view unit) {
  const bool matrix = unit == "matrix";
  // Bytes in a product or in attention are packed fp8.
  if (type.precision == "uint8") return matrix ? "fp8" : "";
  if (type.precision == "int8") return matrix ? "int8" : "";
  return type.precision;
}

}  // namespace lamina::cost
