// SPDX-License-Identifier: Apache-2.0
//
// Parameters of products: GEMM, convolution, attention, experts.
#include <re2/re2.h>
#include <string>
#include <string_view>

#include "base/decimal.h"
#include "compat/tracelens/family_params.h"

namespace lamina::compat::tracelens {

std::string TransposeOf(std::string_view kernel) {
  // Tensile: "Cijk_Ailk_Bljk_...", after any prefix.
  static const RE2 kTensile("C[a-z]{3}_(A[a-z]{3})_(B[a-z]{3})");
  const re2::StringPiece name(kernel.data(), kernel.size());
  std::string a;
  std::string b;
  if (RE2::PartialMatch(name, kTensile, &a, &b)) {
    const auto flag = [](const std::string& axes, const char* plain,
                         const char* transposed) {
      return axes == plain        ? Bool(false)
             : axes == transposed ? Bool(true)
                                  : std::string("None");
    };
    return Join({flag(a, "Ailk", "Alik"), flag(b, "Bljk", "Bjlk")});
  }
  if (kernel.starts_with("nvjet")) {
    const std::string_view last = kernel.substr(kernel.rfind('_') + 1);
    if (last.size() >= 2)
      return Join({Bool(last[0] == 'T'), Bool(last[1] == 'T')});
  }
  return {};
}

void GemmParams(ParamBuilder& p) {
  const std::string& model = p.model_name();
  const bool bias =
      model == "addmm" || model == "baddbmm" ||
      ((model == "rocm_gemm" || model == "a16w16") && p.Tensor(2));
  size_t a = 0;
  size_t b = 1;
  if (model == "addmm" || model == "baddbmm") {
    a = 1;
    b = 2;
  }
  const bool batched = model == "bmm" || model == "baddbmm";
  const bool aten = batched || model == "mm" || model == "addmm";
  if (batched || !aten) p.Add("B", p.Number("B"));
  p.Add("M", p.Number("M"));
  p.Add("N", p.Number("N"));
  p.Add("K", p.Number("K"));
  p.Add("bias", Bool(bias));
  if (aten) {
    p.Add("stride_A", p.Stride(a));
    p.Add("stride_B", p.Stride(b));
    p.Add("dtype_A_B", Join({p.Type(a), p.Type(b)}));
  } else {
    // An absent bias is recorded with an empty type.
    const bool last = model == "rocm_gemm" || (bias && p.Tensor(2));
    const std::string out = last ? p.Type(2) : p.Type(b);
    p.Add("dtype_A_B", Join({p.Type(a), p.Type(b), out}));
  }
  if (aten && !batched) p.Add("B", "1");
  const std::string transpose = TransposeOf(p.kernel());
  if (!transpose.empty()) p.Add("transpose", transpose);
}

void ConvolutionParams(ParamBuilder& p) {
  const bool backward = p.model_name() == "conv_bwd";
  const size_t x = backward ? 1 : 0;
  const size_t w = x + 1;
  const size_t first = backward ? 4 : 3;  // stride
  const size_t rank = p.Dims(x).size() > 2 ? p.Dims(x).size() - 2 : 1;
  p.Add("convNd", Quoted("conv" + std::to_string(rank) + "d"));
  p.Add("input_shape", Tuple(p.Dims(x)));
  p.Add("filter_shape", Tuple(p.Dims(w)));
  p.Add("dtype_input_weight", Join({p.Type(x), p.Type(w)}));
  p.Add("input_stride", p.Stride(x));
  p.Add("weight_stride", p.Stride(w));
  p.Add("bias", Bool(backward ? p.Text(10).ends_with("True]") : p.Tensor(2)));
  p.Add("stride", Spread(p.ListOf(first), rank));
  p.Add("padding", Spread(p.ListOf(first + 1), rank));
  p.Add("dilation", Spread(p.ListOf(first + 2), rank));
  p.Add("transposed_conv", Bool(p.Text(first + 3) == "True"));
  p.Add("output_padding", Spread(p.ListOf(first + 4), rank));
  p.Add("groups", p.Text(first + 5).empty() ? "None" : p.Text(first + 5));
}

void AttentionParams(ParamBuilder& p) {
  for (const char* name :
       {"B", "N_Q", "H_Q", "N_KV", "H_KV", "d_h_qk", "d_h_v"})
    p.Add(name, p.Number(name));
  const std::string& model = p.model_name();
  const size_t dropout =
      model == "sdpa_efficient" || model == "sdpa_cudnn" ? 5 : 3;
  const auto value = ParseDouble(p.Text(dropout));
  p.Add("dropout", value ? FormatDouble(*value) : "0.0");
  p.Add("causal", Bool(p.Flag("causal")));
  p.Add("flash_impl", Bool(model != "sdpa_efficient" && model != "sdpa_cudnn"));
  p.Add("dtype_A_B", Join({p.Type(0), p.Type(1)}));
}

void ServingParams(ParamBuilder& p) {
  if (p.model_name() == "store_cache") {
    double elements = 1;
    for (const double d : p.Dims(0)) elements *= d;
    p.Add("op_shape", Tuple(p.Dims(0)));
    p.Add("nelems", Whole(elements));
    p.Add("dtype", p.Type(0));
    return;
  }
  const bool paged = p.model_name() == "infer_attn_paged";
  const size_t q = paged ? 2 : 0;
  const size_t k = q + 1;
  p.Add("B", "1");
  p.Add("N_Q", p.Dims(q).empty() ? "None" : Whole(p.Dims(q)[0]));
  p.Add("H_Q", p.Number("H_Q"));
  p.Add("H_V", p.Number("H_KV"));
  p.Add("H_K", p.Number("H_KV"));
  // A paged cache has room for more than what is attended to.
  if (paged) {
    p.Add("N_KV", p.call().step ? Whole(p.call().step->context_sk +
                                        p.call().step->generation_sk)
                                : "None");
  } else {
    p.Add("N_KV", p.Dims(k).empty() ? "None" : Whole(p.Dims(k)[0]));
  }
  p.Add("H_KV", p.Number("H_KV"));
  p.Add("d_h_qk", p.Number("d_h_qk"));
  p.Add("d_h_v", p.Number("d_h_v"));
  p.Add("dropout", "0.0");
  p.Add("causal", "False");
  p.Add("flash_impl", "True");
  if (p.call().step) {
    const cost::StepFacts& f = *p.call().step;
    p.Add("c_sq", Whole(f.context_sq));
    p.Add("c_sk", Whole(f.context_sk));
    p.Add("c_sqsq", Whole(f.context_sqsq));
    p.Add("c_sqsk", Whole(f.context_sqsk));
    p.Add("g_sq", Whole(f.generation_sq));
    p.Add("g_sk", Whole(f.generation_sk));
    p.Add("g_sqsq", Whole(f.generation_sqsq));
    p.Add("g_sqsk", Whole(f.generation_sqsk));
  }
  p.Add("dtype_Q", p.Type(q));
  if (!paged) p.Add("dtype_KV", p.Type(k));
}

void ExpertParams(ParamBuilder& p) {
  p.Add("num_tokens", p.Number("M"));
  p.Add("hidden_dim", p.Number("K"));
  p.Add("inter_dim", p.Number("K"));
  p.Add("num_experts", p.Number("E"));
  p.Add("topk", p.Number("k"));
  p.Add("gated", Bool(p.Text(3) == "1"));
  p.Add("input_dtype", p.Type(0));
  const std::string& weight = p.Arg(4).type;
  p.Add("weight_dtype", weight == "fp4"   ? "'FP4'"
                        : weight == "fp8" ? "'FP8'"
                                          : p.Type(0));
}

}  // namespace lamina::compat::tracelens
