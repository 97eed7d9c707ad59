// SPDX-License-Identifier: Apache-2.0
//
// Parameters of ops that go over their elements: unary and binary ones,
// reductions, norms, compiled kernels.
#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "compat/tracelens/family_params.h"

namespace lamina::compat::tracelens {
namespace {

// Padding is given from the last dimension backwards, front and back.
List Padded(const ParamBuilder& p) {
  List shape = p.Dims(0);
  const List padding = p.ListOf(1);
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    if (i / 2 >= shape.size()) return {};
    shape[shape.size() - 1 - i / 2] += padding[i] + padding[i + 1];
  }
  return shape;
}

// To a size or by factors; empty when neither was recorded.
List Upsampled(const ParamBuilder& p) {
  List shape = p.Dims(0);
  if (shape.size() < 3) return {};
  const List size = p.ListOf(1);
  const List factors = p.ListOf(2);
  for (size_t i = 2; i < shape.size(); ++i) {
    if (i - 2 < size.size()) {
      shape[i] = size[i - 2];
    } else if (i - 2 < factors.size()) {
      shape[i] = std::floor(shape[i] * factors[i - 2]);
    } else {
      return {};
    }
  }
  return shape;
}

}  // namespace

void UnaryParams(ParamBuilder& p) {
  const std::string& model = p.model_name();
  if (model == "pad" || model == "upsample") {
    const List output = model == "pad" ? Padded(p) : Upsampled(p);
    const std::string shape = output.empty() ? "None" : Tuple(output);
    p.Add("op_shape", shape);
    p.Add("dtype_in_out", Join({p.Type(0), p.Type(0)}));
    p.Add("stride_input", p.Stride(0));
    p.Add("stride_output", "None");
    p.Add("input_shape", Tuple(p.Dims(0)));
    p.Add("output_shape", shape);
    if (model == "pad") p.Add("padding", Tuple(p.ListOf(1)));
    return;
  }
  // A gated activation names its result first. A second operand without
  // dimensions is a number.
  const bool gated = model.starts_with("gated");
  const bool second = p.Tensor(1) && !p.Dims(1).empty();
  p.Add("op_shape", Tuple(p.Dims(0)));
  p.Add("dtype_in_out", gated ? Join({p.TypeOrNone(1), p.TypeOrNone(0)})
                              : Join({p.Type(0), second ? p.Type(1) : "None"}));
  p.Add("stride_input", p.Stride(gated ? 1 : 0));
  p.Add("stride_output", gated ? p.Stride(0) : second ? p.Stride(1) : "None");
}

void BinaryParams(ParamBuilder& p) {
  p.Add("shape_in1", Tuple(p.Dims(0)));
  p.Add("shape_in2", Tuple(p.Dims(1)));
  p.Add("dtype_in1_in2_out", Join({p.Type(0), p.Type(1), p.TypeOrNone(2)}));
  p.Add("stride_input1", p.Stride(0));
  p.Add("stride_input2", p.Stride(1));
  p.Add("stride_output", p.Tensor(2) ? p.Stride(2) : "None");
}

void ReduceParams(ParamBuilder& p) {
  p.Add("num_input_elems", p.Number("inputs"));
  p.Add("num_output_elems", p.Number("outputs"));
  p.Add("dtype_in_out", Join({p.Type(0), "None"}));
  std::string kind = "sum";
  for (const char* word : {"sum", "mean", "max", "min", "norm"}) {
    if (p.call().name.find(word) != std::string_view::npos) {
      kind = word;
      break;
    }
  }
  p.Add("reduce_type", Quoted(kind));
}

void NormParams(ParamBuilder& p) {
  const std::string& model = p.model_name();
  const bool backward = model.ends_with("_bwd");
  const bool rms = model.starts_with("rms");
  const bool inference = p.sheet() == "RMSNorm";
  const size_t x = inference ? static_cast<size_t>(p.model().positions.empty()
                                                       ? 0
                                                       : p.model().positions[0])
                             : (backward ? 1 : 0);
  p.Add("op_shape", Tuple(p.Dims(x)));
  p.Add("dtype_in_out", Join({p.Type(x), "None"}));
  p.Add("stride_input", p.Stride(x));
  p.Add("stride_output", "None");
  p.Add("num_channels", p.Number("C"));
  const bool weight =
      inference || rms || p.Flag("weight") || p.Flag("has_weight");
  const bool bias = p.Flag("bias") || p.Flag("has_bias") ||
                    (model == "group_norm_bwd" && weight);
  p.Add("has_bias", Bool(!rms && !inference && bias));
  p.Add("is_affine", Bool(weight));
  const bool training = !rms && !inference &&
                        (p.Find("training") == nullptr || p.Flag("training"));
  p.Add("is_training", Bool(training));
  if (!backward) return;
  for (size_t i = p.call().arguments.size(); i > 0; --i) {
    const std::string& text = p.Text(i - 1);
    if (text.find("True") != std::string::npos && text.starts_with('[')) {
      p.Add("output_mask", text);
      return;
    }
  }
  p.Add("output_mask", "[True]");
}

void GeneratedParams(ParamBuilder& p) {
  std::set<std::string> ops;
  for (const std::string_view name : p.models().FusedOps(p.call().name))
    ops.insert("aten." + std::string(name));
  std::string list;
  for (const std::string& op : ops) list += (list.empty() ? "" : ", ") + op;
  p.Add("fused_ops", Quoted(list));
  p.Add("xnumel", p.Number("xnumel"));
  p.Add("rnumel", p.Number("rnumel"));
}

}  // namespace lamina::compat::tracelens
