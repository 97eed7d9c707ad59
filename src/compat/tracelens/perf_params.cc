// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/perf_params.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <re2/re2.h>
#include <set>

#include "base/decimal.h"
#include "base/escape.h"
#include "cost/dtype.h"

namespace lamina::compat::tracelens {
namespace {

using cost::Argument;
using List = std::vector<double>;

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

class Builder {
 public:
  Builder(const cost::ModelSet& models, const cost::OpModel& model,
          const cost::Call& call, const cost::Cost* cost,
          std::string_view strides, std::string_view kernel)
      : models_(models),
        model_(model),
        call_(call),
        kernel_(kernel),
        values_(cost != nullptr ? &cost->parameters : nullptr) {
    auto json =
        nlohmann::json::parse(strides.begin(), strides.end(), nullptr, false);
    if (json.is_array()) strides_ = std::move(json);
  }

  std::vector<Param> Run() {
    const std::string& sheet = model_.sheet;
    const std::string& name = model_.model->name;
    if (name == "triton") {
      Generated();
    } else if (sheet == "GEMM") {
      Gemm();
    } else if (sheet == "CONV") {
      Convolution();
    } else if (sheet == "SDPA") {
      Attention();
    } else if (sheet == "InferenceAttention") {
      Serving();
    } else if (sheet == "UnaryElementwise") {
      Unary();
    } else if (sheet == "BinaryElementwise") {
      Binary();
    } else if (sheet == "Reduce") {
      Reduce();
    } else if (sheet == "Normalization" || sheet == "RMSNorm") {
      Norm();
    } else if (name == "moe_up_router" || name == "moe_down_router") {
      Experts();
    } else if (sheet == "RoPE") {
      Add("num_elements", Number("elements"));
    } else {
      for (size_t i = 0; i < model_.model->parameters.size(); ++i) {
        const std::string& key = model_.model->parameters[i];
        Add(key, Number(key));
      }
    }
    return std::move(params_);
  }

 private:
  void Add(std::string name, std::string python) {
    params_.push_back({std::move(name), std::move(python)});
  }

  // --- arguments ---
  const Argument& Arg(size_t i) const {
    static const Argument kNone;
    return i < call_.arguments.size() ? call_.arguments[i] : kNone;
  }
  const List& Dims(size_t i) const { return Arg(i).dims; }
  std::string Type(size_t i) const { return Quoted(Arg(i).type); }
  bool Tensor(size_t i) const { return cost::IsTensorType(Arg(i).type); }
  std::string TypeOrNone(size_t i) const {
    return Tensor(i) ? Type(i) : "None";
  }
  std::string Stride(size_t i) const {
    if (i >= strides_.size() || !strides_[i].is_array()) return "None";
    List values;
    for (const auto& item : strides_[i]) {
      if (!item.is_number()) return "None";
      values.push_back(item.get<double>());
    }
    return Tuple(values);
  }
  const std::string& Text(size_t i) const { return Arg(i).concrete; }
  List ListOf(size_t i) const {
    const auto json = nlohmann::json::parse(Text(i), nullptr, false);
    List values;
    if (json.is_array()) {
      for (const auto& item : json) {
        if (item.is_number()) values.push_back(item.get<double>());
      }
    }
    return values;
  }

  // --- parameters of the model ---
  const cost::Value* Find(std::string_view name) const {
    if (values_ == nullptr) return nullptr;
    const auto& names = model_.model->parameters;
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) return nullptr;
    return &(*values_)[static_cast<size_t>(it - names.begin())];
  }
  std::string Number(std::string_view name) const {
    const cost::Value* value = Find(name);
    return value != nullptr && value->is_number() ? Whole(value->number())
                                                  : "None";
  }
  bool Flag(std::string_view name) const {
    const cost::Value* value = Find(name);
    return value != nullptr && value->is_number() && value->number() != 0;
  }

  // (A transposed, B transposed), from the name of the kernel; empty when it
  // does not say.
  std::string Transpose() const {
    std::string a;
    std::string b;
    static const RE2 kAmd(R"(_(Ailk|Alik)_(Bljk|Bjlk)_)");
    const re2::StringPiece name(kernel_.data(), kernel_.size());
    if (RE2::PartialMatch(name, kAmd, &a, &b))
      return Join({Bool(a == "Alik"), Bool(b == "Bjlk")});
    if (kernel_.starts_with("nvjet")) {
      const std::string_view last =
          kernel_.substr(std::min(kernel_.rfind('_'), kernel_.size() - 1) + 1);
      if (last.size() >= 2)
        return Join({Bool(last[0] == 'T'), Bool(last[1] == 'T')});
    }
    return {};
  }

  void Gemm() {
    const std::string& model = model_.model->name;
    const bool bias =
        model == "addmm" || model == "baddbmm" ||
        ((model == "rocm_gemm" || model == "a16w16") && Tensor(2));
    size_t a = 0;
    size_t b = 1;
    if (model == "addmm" || model == "baddbmm") {
      a = 1;
      b = 2;
    }
    const bool batched = model == "bmm" || model == "baddbmm";
    const bool aten = batched || model == "mm" || model == "addmm";
    if (batched || !aten) Add("B", Number("B"));
    Add("M", Number("M"));
    Add("N", Number("N"));
    Add("K", Number("K"));
    Add("bias", Bool(bias));
    if (aten) {
      Add("stride_A", Stride(a));
      Add("stride_B", Stride(b));
      Add("dtype_A_B", Join({Type(a), Type(b)}));
    } else {
      // An absent bias is recorded with an empty type.
      const bool last = model == "rocm_gemm" || (bias && Tensor(2));
      const std::string out = last ? Type(2) : Type(b);
      Add("dtype_A_B", Join({Type(a), Type(b), out}));
    }
    if (aten && !batched) Add("B", "1");
    const std::string transpose = Transpose();
    if (!transpose.empty()) Add("transpose", transpose);
  }

  void Convolution() {
    const bool backward = model_.model->name == "conv_bwd";
    const size_t x = backward ? 1 : 0;
    const size_t w = x + 1;
    const size_t first = backward ? 4 : 3;  // stride
    const size_t rank = Dims(x).size() > 2 ? Dims(x).size() - 2 : 1;
    Add("convNd", Quoted("conv" + std::to_string(rank) + "d"));
    Add("input_shape", Tuple(Dims(x)));
    Add("filter_shape", Tuple(Dims(w)));
    Add("dtype_input_weight", Join({Type(x), Type(w)}));
    Add("input_stride", Stride(x));
    Add("weight_stride", Stride(w));
    Add("bias", Bool(backward ? Text(10).ends_with("True]") : Tensor(2)));
    Add("stride", Spread(ListOf(first), rank));
    Add("padding", Spread(ListOf(first + 1), rank));
    Add("dilation", Spread(ListOf(first + 2), rank));
    Add("transposed_conv", Bool(Text(first + 3) == "True"));
    Add("output_padding", Spread(ListOf(first + 4), rank));
    Add("groups", Text(first + 5).empty() ? "None" : Text(first + 5));
  }

  void Attention() {
    for (const char* name :
         {"B", "N_Q", "H_Q", "N_KV", "H_KV", "d_h_qk", "d_h_v"})
      Add(name, Number(name));
    const std::string& model = model_.model->name;
    const size_t dropout =
        model == "sdpa_efficient" || model == "sdpa_cudnn" ? 5 : 3;
    const auto value = ParseDouble(Text(dropout));
    Add("dropout", value ? FormatDouble(*value) : "0.0");
    Add("causal", Bool(Flag("causal")));
    Add("flash_impl", Bool(model != "sdpa_efficient" && model != "sdpa_cudnn"));
    Add("dtype_A_B", Join({Type(0), Type(1)}));
  }

  void Serving() {
    if (model_.model->name == "store_cache") {
      double elements = 1;
      for (const double d : Dims(0)) elements *= d;
      Add("op_shape", Tuple(Dims(0)));
      Add("nelems", Whole(elements));
      Add("dtype", Type(0));
      return;
    }
    const bool paged = model_.model->name == "infer_attn_paged";
    const size_t q = paged ? 2 : 0;
    const size_t k = q + 1;
    Add("B", "1");
    Add("N_Q", Dims(q).empty() ? "None" : Whole(Dims(q)[0]));
    Add("H_Q", Number("H_Q"));
    Add("H_V", Number("H_KV"));
    Add("H_K", Number("H_KV"));
    Add("N_KV", Dims(k).empty() ? "None" : Whole(Dims(k)[0]));
    Add("H_KV", Number("H_KV"));
    Add("d_h_qk", Number("d_h_qk"));
    Add("d_h_v", Number("d_h_v"));
    Add("dropout", "0.0");
    Add("causal", "False");
    Add("flash_impl", "True");
    if (call_.step) {
      const cost::StepFacts& f = *call_.step;
      Add("c_sq", Whole(f.context_sq));
      Add("c_sk", Whole(f.context_sk));
      Add("c_sqsq", Whole(f.context_sqsq));
      Add("c_sqsk", Whole(f.context_sqsk));
      Add("g_sq", Whole(f.generation_sq));
      Add("g_sk", Whole(f.generation_sk));
      Add("g_sqsq", Whole(f.generation_sqsq));
      Add("g_sqsk", Whole(f.generation_sqsk));
    }
    Add("dtype_Q", Type(q));
    Add("dtype_KV", Type(k));
  }

  // A mixture of experts of which the router alone is recorded.
  void Experts() {
    Add("num_tokens", Number("M"));
    Add("hidden_dim", Number("K"));
    Add("inter_dim", Number("K"));
    Add("num_experts", Number("E"));
    Add("topk", Number("k"));
    Add("gated", Bool(Text(3) == "1"));
    Add("input_dtype", Type(0));
    const std::string& weight = Arg(4).type;
    Add("weight_dtype", weight == "fp4"   ? "'FP4'"
                        : weight == "fp8" ? "'FP8'"
                                          : Type(0));
  }

  // Padding is given from the last dimension backwards, front and back.
  List Padded() const {
    List shape = Dims(0);
    const List padding = ListOf(1);
    for (size_t i = 0; i + 1 < padding.size(); i += 2) {
      if (i / 2 >= shape.size()) return {};
      shape[shape.size() - 1 - i / 2] += padding[i] + padding[i + 1];
    }
    return shape;
  }

  // To a size or by factors; empty when neither was recorded.
  List Upsampled() const {
    List shape = Dims(0);
    if (shape.size() < 3) return {};
    const List size = ListOf(1);
    const List factors = ListOf(2);
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

  void Unary() {
    const std::string& model = model_.model->name;
    if (model == "pad" || model == "upsample") {
      const List output = model == "pad" ? Padded() : Upsampled();
      const std::string shape = output.empty() ? "None" : Tuple(output);
      Add("op_shape", shape);
      Add("dtype_in_out", Join({Type(0), Type(0)}));
      Add("stride_input", Stride(0));
      Add("stride_output", "None");
      Add("input_shape", Tuple(Dims(0)));
      Add("output_shape", shape);
      if (model == "pad") Add("padding", Tuple(ListOf(1)));
      return;
    }
    // A gated activation names its result first. A second operand without
    // dimensions is a number.
    const bool gated = model.starts_with("gated");
    const bool second = Tensor(1) && !Dims(1).empty();
    Add("op_shape", Tuple(Dims(0)));
    Add("dtype_in_out", gated ? Join({TypeOrNone(1), TypeOrNone(0)})
                              : Join({Type(0), second ? Type(1) : "None"}));
    Add("stride_input", Stride(gated ? 1 : 0));
    Add("stride_output", gated ? Stride(0) : second ? Stride(1) : "None");
  }

  void Binary() {
    Add("shape_in1", Tuple(Dims(0)));
    Add("shape_in2", Tuple(Dims(1)));
    Add("dtype_in1_in2_out", Join({Type(0), Type(1), TypeOrNone(2)}));
    Add("stride_input1", Stride(0));
    Add("stride_input2", Stride(1));
    Add("stride_output", Tensor(2) ? Stride(2) : "None");
  }

  void Reduce() {
    Add("num_input_elems", Number("inputs"));
    Add("num_output_elems", Number("outputs"));
    Add("dtype_in_out", Join({Type(0), "None"}));
    std::string kind = "sum";
    for (const char* word : {"sum", "mean", "max", "min", "norm"}) {
      if (call_.name.find(word) != std::string_view::npos) {
        kind = word;
        break;
      }
    }
    Add("reduce_type", Quoted(kind));
  }

  void Norm() {
    const std::string& model = model_.model->name;
    const bool backward = model.ends_with("_bwd");
    const bool rms = model.starts_with("rms");
    const bool inference = model_.sheet == "RMSNorm";
    const size_t x = inference ? static_cast<size_t>(model_.positions.empty()
                                                         ? 0
                                                         : model_.positions[0])
                               : (backward ? 1 : 0);
    Add("op_shape", Tuple(Dims(x)));
    Add("dtype_in_out", Join({Type(x), "None"}));
    Add("stride_input", Stride(x));
    Add("stride_output", "None");
    Add("num_channels", Number("C"));
    const bool weight =
        inference || rms || Flag("weight") || Flag("has_weight");
    const bool bias = Flag("bias") || Flag("has_bias") ||
                      (model == "group_norm_bwd" && weight);
    Add("has_bias", Bool(!rms && !inference && bias));
    Add("is_affine", Bool(weight));
    const bool training =
        !rms && !inference && (Find("training") == nullptr || Flag("training"));
    Add("is_training", Bool(training));
    if (!backward) return;
    for (size_t i = call_.arguments.size(); i > 0; --i) {
      const std::string& text = Text(i - 1);
      if (text.find("True") != std::string::npos && text.starts_with('[')) {
        Add("output_mask", text);
        return;
      }
    }
    Add("output_mask", "[True]");
  }

  // triton_poi_fused_add_mul_3: the aten ops by name, and the sizes.
  void Generated() {
    std::set<std::string> ops;
    for (const std::string_view name : models_.FusedOps(call_.name))
      ops.insert("aten." + std::string(name));
    std::string list;
    for (const std::string& op : ops) list += (list.empty() ? "" : ", ") + op;
    Add("fused_ops", Quoted(list));
    Add("xnumel", Number("xnumel"));
    Add("rnumel", Number("rnumel"));
  }

  const cost::ModelSet& models_;
  const cost::OpModel& model_;
  const cost::Call& call_;
  std::string_view kernel_;
  const std::vector<cost::Value>* values_;
  nlohmann::json strides_ = nlohmann::json::array();
  std::vector<Param> params_;
};

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
  return Builder(models, model, call, cost, strides, kernel).Run();
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
