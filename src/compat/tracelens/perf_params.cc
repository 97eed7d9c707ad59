// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/perf_params.h"

#include "base/escape.h"
#include "compat/tracelens/family_params.h"
#include "compat/tracelens/param_builder.h"

namespace lamina::compat::tracelens {
namespace {

// Of a model without a layout of its own: its parameters as they are.
void PlainParams(ParamBuilder& p) {
  for (const std::string& name : p.model().model->parameters)
    p.Add(name, p.Number(name));
}

void AddParams(ParamBuilder& p) {
  const std::string& name = p.model_name();
  if (name == "triton") return GeneratedParams(p);
  if (name == "moe_up_router" || name == "moe_down_router")
    return ExpertParams(p);
  const std::string& sheet = p.sheet();
  if (sheet == "GEMM") return GemmParams(p);
  if (sheet == "CONV") return ConvolutionParams(p);
  if (sheet == "SDPA") return AttentionParams(p);
  if (sheet == "InferenceAttention") return ServingParams(p);
  if (sheet == "UnaryElementwise") return UnaryParams(p);
  if (sheet == "BinaryElementwise") return BinaryParams(p);
  if (sheet == "Reduce") return ReduceParams(p);
  if (sheet == "Normalization" || sheet == "RMSNorm") return NormParams(p);
  if (sheet == "RoPE") return p.Add("num_elements", p.Number("elements"));
  PlainParams(p);
}

}  // namespace

std::optional<std::string> Param::Cell() const {
  if (python == "None") return std::nullopt;
  if (python.size() >= 2 && python.front() == '\'')
    return python.substr(1, python.size() - 2);
  return python;
}

std::vector<Param> PerfParams(const cost::ModelSet& models,
                              const cost::OpModel& model,
                              const cost::Call& call, const cost::Cost* cost,
                              std::string_view strides,
                              std::string_view kernel) {
  ParamBuilder builder(models, model, call, cost, strides, kernel);
  AddParams(builder);
  return builder.Take();
}

std::string ParamsDict(const std::vector<Param>& params) {
  std::string out = "{";
  for (const Param& param : params) {
    if (out.size() > 1) out += ", ";
    AppendPythonQuoted(out, param.name);
    out += ": " + param.python;
  }
  return out + "}";
}

}  // namespace lamina::compat::tracelens
