// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/pseudo_ops.h"

#include <algorithm>

#include "base/decimal.h"
#include "base/text.h"
#include "cost/arguments.h"

namespace lamina::compat::tracelens {
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
