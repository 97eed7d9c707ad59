// SPDX-License-Identifier: Apache-2.0
//
// The parameters of one family of ops each, in the order of their columns.
#pragma once

#include <string>
#include <string_view>

#include "compat/tracelens/param_builder.h"

namespace lamina::compat::tracelens {

void GemmParams(ParamBuilder& p);
// "(True, False)": which operands of a product the kernel reads transposed, by
// its name; empty when it does not say.
std::string TransposeOf(std::string_view kernel);
void ConvolutionParams(ParamBuilder& p);
void AttentionParams(ParamBuilder& p);
// Attention of inference servers and their caches.
void ServingParams(ParamBuilder& p);
// A mixture of experts of which the router alone is recorded.
void ExpertParams(ParamBuilder& p);
void UnaryParams(ParamBuilder& p);
void BinaryParams(ParamBuilder& p);
void ReduceParams(ParamBuilder& p);
void NormParams(ParamBuilder& p);
// triton_poi_fused_add_mul_3: the aten ops by name, and the sizes.
void GeneratedParams(ParamBuilder& p);

}  // namespace lamina::compat::tracelens
