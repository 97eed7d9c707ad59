// SPDX-License-Identifier: Apache-2.0

#include "compat/tracelens/perf_params.h"

#include <algorithm>
#include <cmath>
#include <re2/re2.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "compat/tracelens/family_params.h"
#include "compat/tracelens/param_builder.h"
#include "compat/tracelens/python_text.h"
#include "cost/dtype.h"

namespace lamina::compat::tracelens {

namespace {

// Text was checked when it was read: brackets balance.
std::string Convert(std::string_view json, bool tuple) {
  std::string out;
  // Number of items in each open list, for the comma of one-element tuples.
  std::vector<size_t> counts;
  for (size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (c == '[' || c == '{') {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      counts.push_back(0);
      out += c == '{' ? '{' : tuple ? '(' : '[';
      ++i;
    } else if (c == ']' || c == '}') {
      if (c == ']' && tuple && !counts.empty() && counts.back() == 1)
        out += ',';
      if (!counts.empty()) counts.pop_back();
      out += c == '}' ? '}' : tuple ? ')' : ']';
      ++i;
    } else if (c == ',') {
      if (!counts.empty()) ++counts.back();
      out += ", ";
      ++i;
    } else if (c == ':') {
      out += ": ";
      ++i;
    } else if (c == '"') {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      size_t end = i + 1;
      while (end < json.size() && json[end] != '"')
        end += json[end] == '\\' ? 2 : 1;
      if (end > json.size()) end = json.size();
      AppendPythonQuoted(out,
                         json::DecodeString(json.substr(i + 1, end - i - 1)));
      i = end + 1;
    } else {
      if (!counts.empty() && counts.back() == 0) counts.back() = 1;
      size_t end = i;
      while (end < json.size() &&
             std::string_view(",]}:").find(json[end]) == std::string_view::npos)
        ++end;
      const std::string_view word = json.substr(i, end - i);
      out += word == "null"    ? "None"
             : word == "true"  ? "True"
             : word == "false" ? "False"
                               : word;
      i = end;
    }
  }
  return out;
}

}  // namespace

std::string PythonTuple(std::string_view json) { return Convert(json, true); }
std::string PythonList(std::string_view json) { return Convert(json, false); }

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

namespace {

// The numbers of a JSON array.
List Numbers(const nlohmann::json& array) {
  List values;
  for (const auto& item : array) {
    if (item.is_number()) values.push_back(item.get<double>());
  }
  return values;
}

}  // namespace

std::string Whole(double value) {
  std::string out;
  AppendNumber(out, value);
  return out;
}

std::string Bool(bool value) { return value ? "True" : "False"; }

std::string Quoted(std::string_view text) {
  std::string out;
  AppendPythonQuoted(out, text);
  return out;
}

std::string Join(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ", ";
    out += item;
  }
  return out + (items.size() == 1 ? ",)" : ")");
}

std::string Tuple(const List& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(Whole(value));
  return Join(items);
}

// A length-1 list stands for all dimensions.
std::string Spread(const List& values, size_t rank) {
  return Tuple(values.size() == 1 && rank > 1 ? List(rank, values[0]) : values);
}

ParamBuilder::ParamBuilder(const cost::ModelSet& models,
                           const cost::OpModel& model, const cost::Call& call,
                           const cost::Cost* cost, std::string_view strides,
                           std::string_view kernel)
    : models_(models),
      model_(model),
      call_(call),
      kernel_(kernel),
      values_(cost != nullptr ? &cost->parameters : nullptr) {
  auto json =
      nlohmann::json::parse(strides.begin(), strides.end(), nullptr, false);
  if (json.is_array()) strides_ = std::move(json);
}

const cost::Argument& ParamBuilder::Arg(size_t i) const {
  static const cost::Argument kNone;
  return i < call_.arguments.size() ? call_.arguments[i] : kNone;
}

bool ParamBuilder::Tensor(size_t i) const {
  return cost::IsTensorType(Arg(i).type);
}

std::string ParamBuilder::Stride(size_t i) const {
  if (i >= strides_.size() || !strides_[i].is_array()) return "None";
  const List values = Numbers(strides_[i]);
  return values.size() == strides_[i].size() ? Tuple(values) : "None";
}

List ParamBuilder::ListOf(size_t i) const {
  const auto json = nlohmann::json::parse(Text(i), nullptr, false);
  return json.is_array() ? Numbers(json) : List();
}

const cost::Value* ParamBuilder::Find(std::string_view name) const {
  if (values_ == nullptr) return nullptr;
  const auto& names = model_.model->parameters;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return nullptr;
  return &(*values_)[static_cast<size_t>(it - names.begin())];
}

std::string ParamBuilder::Number(std::string_view name) const {
  const cost::Value* value = Find(name);
  return value != nullptr && value->is_number() ? Whole(value->number())
                                                : "None";
}

bool ParamBuilder::Flag(std::string_view name) const {
  const cost::Value* value = Find(name);
  return value != nullptr && value->is_number() && value->number() != 0;
}

// Parameters of products: GEMM, convolution, attention, experts.

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

// Parameters of ops that go over their elements: unary and binary ones,
// reductions, norms, compiled kernels.

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
