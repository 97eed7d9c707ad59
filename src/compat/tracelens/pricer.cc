// SPDX-License-Identifier: Apache-2.0

#include "compat/tracelens/pricer.h"

#include <algorithm>

#include "base/decimal.h"
#include "base/text.h"
#include "compat/tracelens/family_params.h"
#include "compat/tracelens/pseudo_ops.h"
#include "cost/arguments.h"
#include "cost/dtype.h"

namespace lamina::compat::tracelens {

namespace {

// What the models of a router read behind its two tensors: the number of
// experts of a token, gating, and the weights' type, which only the name of
// the kernel holds.
void AddRouting(const PseudoOp& pseudo, std::string_view kernel,
                cost::Call& call) {
  call.arguments.resize(5);
  call.arguments[2].concrete = FormatDouble(*pseudo.top_k);
  call.arguments[3].concrete = pseudo.gated.value_or(false) ? "1" : "0";
  cost::Argument& weight = call.arguments[4];
  if (kernel.find("fp4") != std::string_view::npos) {
    weight.type = "fp4";
    weight.concrete = "0.5";
  } else if (kernel.find("fp8") != std::string_view::npos) {
    weight.type = "fp8";
    weight.concrete = "1";
  }
}

// TraceLens counts the weight of an RMS norm that has none.
void CountWeight(const cost::OpModel& model, cost::Call& call) {
  const bool backward = model.model->name == "rms_norm_bwd";
  if (!backward && model.model->name != "rms_norm") return;
  const size_t weight = backward ? 4 : 2;
  if (weight < call.arguments.size() && call.arguments[weight].type.empty())
    call.arguments[weight].type = call.arguments[0].type;
}

// Compiled kernels have the plain name of their first sized type.
std::string Spec(const Priced& priced, const cost::Call& call) {
  if (!Pricer::IsCompiled(*priced.model)) {
    std::string spec = priced.cost->Spec();
    // TraceLens takes bytes for numbers of eight bits.
    if (spec.empty() && !priced.cost->unit.empty() && !call.arguments.empty() &&
        call.arguments[0].type == "unsigned char")
      spec = std::string(priced.cost->unit) + "_fp8";
    return spec;
  }
  for (const cost::Argument& argument : call.arguments) {
    const std::string_view type = argument.type;
    if (!type.starts_with("c10::")) continue;
    return "vector_" + LowerCase(type.substr(5));
  }
  return {};
}

}  // namespace

const cost::OpModel* Pricer::Find(NodeId node) {
  const StringId name =
      model_.trace().slices.name[model_.tree().slice(node).value];
  const auto [it, is_new] = by_name_.try_emplace(name.value, nullptr);
  if (is_new) {
    const cost::OpModel* found = models().Find(model_.Name(node));
    if (found != nullptr && !found->native) it->second = found;
  }
  return it->second;
}

void Pricer::Evaluate(const cost::Call& call, bool backward,
                      std::string_view strides, std::string_view kernel,
                      Priced& priced) const {
  auto cost = models().Evaluate(*priced.model, call, backward);
  if (cost) priced.cost = std::move(*cost);
  // A call that cannot be priced has no parameters either.
  if (!priced.cost) return;
  priced.params =
      PerfParams(models(), *priced.model, call, &*priced.cost, strides, kernel);
}

StringId Pricer::KernelOf(NodeId node, bool product) {
  const Trace& trace = model_.trace();
  SliceId first;
  bool first_names = false;
  for (const SliceId s : model_.tree().DeviceWork(node)) {
    bool names = false;
    if (product) {
      const uint32_t id = trace.slices.name[s.value].value;
      const auto [it, is_new] = names_transpose_.try_emplace(id, false);
      if (is_new) it->second = !TransposeOf(trace.Name(s)).empty();
      names = it->second;
    }
    if (!first.valid() || names > first_names ||
        (names == first_names && trace.Start(s) < trace.Start(first))) {
      first = s;
      first_names = names;
    }
  }
  return first.valid() ? trace.slices.name[first.value] : StringId();
}

// As TraceLens: work without FLOPs has none.
void Pricer::AddRoofline(Priced& priced) const {
  if (!model_.options().rooflines || !priced.cost || priced.cost->flops <= 0)
    return;
  const auto& device = efficiency_.device;
  if (!device) return;
  priced.roofline = cost::RooflineOf(*priced.cost, *device, priced.spec);
}

const Priced& Pricer::Price(NodeId node, NodeId source, bool backward) {
  const Trace& trace = model_.trace();
  const SliceId slice = model_.tree().slice(source);
  const trace::OpArgs* op = trace.Op(slice);
  const cost::OpModel* const found = Find(source);
  const StringId kernel =
      KernelOf(node, found != nullptr && found->sheet == "GEMM");
  const StringId step = model_.context().steps.RequestsAt(source);
  const auto [it, is_new] = calls_.try_emplace(
      CallKey(trace.slices.name[slice.value].value, op ? op->dims.value : 0,
              op ? op->types.value : 0, op ? op->strides.value : 0,
              op ? op->concrete.value : 0, kernel.value, step.value, backward));
  Priced& priced = it->second;
  if (!is_new) return priced;
  priced.model = found;
  if (priced.model == nullptr) return priced;
  const auto text = [&](StringId id) { return trace.strings[id]; };
  const std::string name = model_.Name(source);
  auto call =
      cost::ParseCall(name, op ? text(op->dims) : "", op ? text(op->types) : "",
                      op ? text(op->concrete) : "");
  if (!call) return priced;
  call->step = cost::ParseStep(text(step));
  CountWeight(*priced.model, *call);
  Evaluate(*call, backward, op ? text(op->strides) : "", text(kernel), priced);
  if (priced.cost) priced.spec = Spec(priced, *call);
  AddRoofline(priced);
  return priced;
}

const Priced* Pricer::Price(const PseudoOp& pseudo) {
  const Trace& trace = model_.trace();
  const cost::OpModel* found = models().Find(pseudo.name);
  const trace::OpArgs* op = trace.Op(model_.tree().slice(pseudo.donor));
  if (found == nullptr || op == nullptr) return nullptr;
  const StringId kernel = trace.slices.name[pseudo.work[0].value];
  const StringId step = model_.context().steps.RequestsAt(pseudo.donor);
  const auto [it, is_new] = pseudo_.try_emplace(PseudoKey(
      pseudo.name, op->dims.value, op->types.value, op->concrete.value,
      kernel.value, step.value, pseudo.top_k.value_or(0)));
  Priced& priced = it->second;
  if (!is_new) return &priced;
  priced.model = found;
  const auto text = [&](StringId id) { return trace.strings[id]; };
  auto call = cost::ParseCall(pseudo.name, text(op->dims), text(op->types),
                              text(op->concrete));
  if (!call) return &priced;
  call->step = cost::ParseStep(text(step));
  if (pseudo.top_k) AddRouting(pseudo, text(kernel), *call);
  Evaluate(*call, false, text(op->strides), text(kernel), priced);
  if (priced.cost) priced.spec = priced.cost->Spec();
  AddRoofline(priced);
  return &priced;
}

namespace {

// A frame "aiter/mla.py(12): mla_decode_fwd" whose work is that of an op below.
struct FrameRule {
  std::string_view file;
  std::string_view function;
  std::string_view donor;
  std::string_view name;
};
constexpr FrameRule kFrames[] = {
    {"aiter/mla.py(", "): mla_decode_fwd", "aiter::mla_decode_stage1_asm_fwd",
     "pseudo_mla_decode_fwd"},
    {"", "mla_fp8_prefill_attn", "aiter::mla_prefill_ps_asm_fwd",
     "pseudo_mla_prefill_fwd"},
};

// Stages that run below "aiter::fused_moe_".
struct StageRule {
  std::string_view suffix;
  std::string_view name;
};
constexpr StageRule kStages[] = {
    {"flydsl_moe_stage1", "pseudo_op::moe_flydsl_stage1"},
    {"flydsl_moe_stage2", "pseudo_op::moe_flydsl_stage2"},
};

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), tree_(model.tree()) {}

  std::vector<PseudoOp> Run() {
    Look();
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      if (!tree_.HasDeviceWork(node)) continue;
      const std::string_view name = tree_.name(node);
      if (tree_.kind(node) == trace::Kind::kPython) {
        Frames(node, name);
      } else if (tree_.IsOp(node)) {
        if (name == "vllm::moe_forward" && !fused_) Unfused(node);
        if (name == "vllm::rocm_aiter_fused_moe" && forward_) OneStage(node);
        if (name == "vllm::outplace_fused_experts") FourBits(node);
      }
      for (const StageRule& rule : kStages) {
        if (name.ends_with(rule.suffix)) Stage(node, rule);
      }
    }
    if (!found_.empty()) {
      uint32_t last = 0;
      for (const uint32_t uid : model_.trace().slices.uid)
        last = std::max(last, uid);
      for (PseudoOp& op : found_) op.uid = ++last;
    }
    return std::move(found_);
  }

 private:
  void Look() {
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      if (!tree_.IsOp(NodeId(n))) continue;
      const std::string_view name = tree_.name(NodeId(n));
      forward_ = forward_ || name == "vllm::moe_forward";
      fused_ = fused_ || name == "vllm::rocm_aiter_fused_moe";
    }
  }

  // Kernels below a node by start whose names pass.
  template <class Accept>
  std::vector<SliceId> Kernels(NodeId node, Accept accept) const {
    std::vector<SliceId> out;
    for (const SliceId s : tree_.DeviceWork(node)) {
      if (model_.trace().KindOf(s) == trace::Kind::kKernel &&
          accept(model_.trace().Name(s)))
        out.push_back(s);
    }
    std::stable_sort(out.begin(), out.end(), [&](SliceId a, SliceId b) {
      return model_.trace().Start(a) < model_.trace().Start(b);
    });
    return out;
  }

  void Add(std::string_view name, NodeId donor, std::vector<SliceId> work,
           std::optional<double> top_k = {}, std::optional<bool> gated = {}) {
    found_.push_back({name, donor, std::move(work), top_k, gated, 0});
  }

  // The second argument of the op that routes.
  double TopK(NodeId donor) const {
    for (uint32_t n = donor.value + 1; n < tree_.end(donor).value; ++n) {
      const NodeId node(n);
      if (!tree_.IsOp(node) || !Contains(tree_.name(node), "TopK")) continue;
      const trace::OpArgs* op = model_.trace().Op(tree_.slice(node));
      if (op == nullptr || !op->concrete.valid()) break;
      const auto call = cost::ParseCall(tree_.name(node), "", "",
                                        model_.trace().Text(op->concrete));
      if (!call || call->arguments.size() < 2) break;
      const auto value = ParseDouble(call->arguments[1].concrete);
      if (value && *value > 0) return *value;
      break;
    }
    return 4;
  }

  void Unfused(NodeId donor) {
    const auto products = Kernels(donor, [](std::string_view name) {
      return Contains(LowerCase(name), "matmul_ogs");
    });
    if (products.empty()) return;
    const double top_k = TopK(donor);
    for (size_t i = 0; i < products.size(); ++i) {
      const std::string_view kernel = model_.trace().Name(products[i]);
      Add(i == 0 ? "pseudo_op::moe_triton_unfused_up"
                 : "pseudo_op::moe_triton_unfused_down",
          donor, {products[i]}, top_k,
          Contains(kernel, "_swiglu") || Contains(kernel, "_glu"));
    }
    auto scatter = Kernels(donor, [](std::string_view name) {
      return Contains(name, "matmul_scatter");
    });
    if (scatter.size() == 1) {
      Add("pseudo_op::moe_triton_unfused_finalize_matmul_scatter", donor,
          std::move(scatter));
    }
  }

  void OneStage(NodeId donor) {
    auto kernels = Kernels(donor, [](std::string_view name) {
      return Contains(name, "aiter::") && Contains(name, "fmoe") &&
             !Contains(name, "MoeSorting") && !Contains(name, "quant");
    });
    if (kernels.size() == 1) {
      Add("pseudo_op::moe_aiter_fused_1stage", donor, std::move(kernels));
    }
  }

  void FourBits(NodeId donor) {
    const auto kernels = Kernels(donor, [](std::string_view name) {
      return Contains(name, "fused_moe_kernel_gptq_awq");
    });
    if (!kernels.empty())
      Add("pseudo_op::moe_gptq_awq_up", donor, {kernels[0]}, {}, true);
    if (kernels.size() > 1)
      Add("pseudo_op::moe_gptq_awq_down", donor, {kernels[1]}, {}, false);
  }

  void Stage(NodeId node, const StageRule& rule) {
    for (NodeId up = tree_.parent(node); up.valid(); up = tree_.parent(up)) {
      if (!tree_.IsOp(up) || tree_.name(up) != "aiter::fused_moe_") continue;
      const auto work = tree_.DeviceWork(node);
      Add(rule.name, up, {work.begin(), work.end()});
      return;
    }
  }

  void Frames(NodeId frame, std::string_view name) {
    for (const FrameRule& rule : kFrames) {
      if (!Contains(name, rule.file) || !name.ends_with(rule.function))
        continue;
      for (uint32_t n = frame.value + 1; n < tree_.end(frame).value; ++n) {
        if (!tree_.IsOp(NodeId(n)) || tree_.name(NodeId(n)) != rule.donor)
          continue;
        const auto work = tree_.DeviceWork(frame);
        Add(rule.name, NodeId(n), {work.begin(), work.end()});
        break;
      }
    }
  }

  const Model& model_;
  const tree::Tree& tree_;
  bool forward_ = false;  // the trace has vllm::moe_forward
  bool fused_ = false;    // and vllm::rocm_aiter_fused_moe
  std::vector<PseudoOp> found_;
};

}  // namespace

std::vector<PseudoOp> FindPseudoOps(const Model& model) {
  if (!model.options().inference) return {};
  return Finder(model).Run();
}

}  // namespace lamina::compat::tracelens
