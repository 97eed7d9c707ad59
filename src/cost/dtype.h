// SPDX-License-Identifier: Apache-2.0
//
// Element types as profilers write them: size, and the precision that a
// device has a peak for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamina::cost {

struct DType {
  std::string_view name;       // short: "bf16", "fp8_e4m3", "int64"
  double bytes = 0;            // per element of the recorded shape
  std::string_view precision;  // "bf16", "fp8"; "int8" and empty: no spec
                               // outside a matrix product
};

// The type of a tensor argument: "c10::BFloat16", "float", "long int", "bf16",
// "f32" (XLA) ... Case does not matter. Nothing for text that is no type of a
// tensor ("", "ScalarList"), and for unknown ones.
std::optional<DType> FindDType(std::string_view text);

// Whether an argument of this recorded type is a tensor.
bool IsTensorType(std::string_view text);

// The precision of a compute spec "<unit>_<precision>": that of the type; for
// the matrix unit also int8 and packed bytes. Empty: none.
std::string_view Precision(const DType& type, std::string_view unit);

}  // namespace lamina::cost
