// SPDX-License-Identifier: Apache-2.0
//
// The arguments of one call of an op, as a profiler recorded them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::cost {

struct Argument {
  std::vector<double> dims;  // empty for a scalar, an absent tensor, a list
  // Shapes of the tensors of a list argument.
  std::vector<std::vector<double>> list;
  bool is_list = false;
  std::string type;      // "c10::BFloat16", "Scalar", "" ...
  std::string concrete;  // "True", "[1, 1]", "0.5", "" ...
};

// Facts about a serving step that no argument holds: sums over its requests.
struct StepFacts {
  double context_sq = 0, context_sk = 0, context_sqsq = 0, context_sqsk = 0;
  double generation_sq = 0, generation_sk = 0;
  double generation_sqsq = 0, generation_sqsk = 0;
  double requests = 0;
};

struct Call {
  std::string_view name;
  std::vector<Argument> arguments;
  std::optional<StepFacts> step;
  // Size of the elements that the first kernel copies, from its name; 0 when
  // unknown. Lists of tensors have no recorded types.
  double kernel_element_bytes = 0;
  bool has_shapes = false;
};

// Reads the recorded lists (JSON text, as in "Input Dims", "Input type" and
// "Concrete Inputs"; empty: not recorded). Nothing when they are no lists of
// the same length, or a dimension is negative, symbolic or above 2^48.
std::optional<Call> ParseCall(std::string_view name, std::string_view dims,
                              std::string_view types,
                              std::string_view concrete);

// vLLM's name of a step: execute_<n>_context_<r>(sq<a>sk<b>sqsq<c>sqsk<d>)_
// generation_<r>(sq..sk..sqsq..sqsk..).
std::optional<StepFacts> ParseStep(std::string_view annotation);

// "OpaqueType<2u>" and element types in the name of a copying kernel.
double ElementBytesOf(std::string_view kernel);

}  // namespace lamina::cost
