// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/cost_view.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>

#include "analysis/common/context.h"

namespace lamina::analysis {

class CostViewBuilder {
 public:
  CostViewBuilder(const tree::Tree& tree, const tree::Steps& steps,
                  const DeviceView& device, CostView& view)
      : tree_(tree),
        trace_(tree.trace()),
        steps_(steps),
        device_(device),
        view_(view) {}

  void Run() {
    models_by_name_.resize(trace_.strings.size());
    cover_.resize(tree_.size());
    // Preorder: a parent is before its children.
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      const NodeId parent = tree_.parent(node);
      cover_[n] = parent.valid() ? cover_[parent.value] : kNone;
      if (cover_[n] != kNone || !tree_.IsOp(node) || !tree_.HasDeviceWork(node))
        continue;
      const uint32_t group = CostedGroup(node);
      if (group != kNone) cover_[n] = AddCall(node, group);
    }
    Distribute();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Key {
    uint32_t shown, name, dims, types, concrete, step, kernel, instruction;
    bool backward;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.shown, k.name, k.dims, k.types,
                        k.concrete, k.step, k.kernel, k.instruction,
                        k.backward);
    }
  };

  const cost::OpModel* ModelOf(StringId name) {
    auto& entry = models_by_name_[name.value];
    if (!entry) entry = view_.models_->Find(trace_.strings[name]);
    return *entry;
  }

  Key KeyOf(NodeId node, bool backward) {
    const SliceId slice = tree_.slice(node);
    const trace::OpArgs* args = trace_.Op(slice);
    const auto work = tree_.DeviceWork(node);
    Key key{};
    key.instruction = trace::kNoRow;
    key.dims = key.types = key.concrete = key.step = StringId().value;
    key.name = key.shown = trace_.slices.name[slice.value].value;
    if (args != nullptr) {
      key.dims = args->dims.value;
      key.types = args->types.value;
      key.concrete = args->concrete.value;
      key.instruction = args->instruction;
    }
    const cost::OpModel* model = ModelOf(trace_.slices.name[slice.value]);
    if (model != nullptr && model->sheet == "InferenceAttention")
      key.step = steps_.RequestsAt(node).value;
    // What a kernel's name adds: element size of lists, TF32.
    key.kernel = work.empty() ? 0 : trace_.slices.name[work[0].value].value;
    key.backward = backward;
    return key;
  }

  // The group of a node whose cost is known; kNone without one.
  uint32_t CostedGroup(NodeId node) {
    const trace::Instruction* instruction =
        trace_.InstructionOf(tree_.slice(node));
    if (instruction != nullptr) {
      return instruction->flops >= 0 || instruction->bytes >= 0
                 ? GroupOf(node, node, false)
                 : kNone;
    }
    const StringId name = trace_.slices.name[tree_.slice(node).value];
    if (ModelOf(name) != nullptr) {
      const uint32_t group = GroupOf(node, node, false);
      return view_.groups_[group].cost ? group : kNone;
    }
    const NodeId forward = ForwardOf(node);
    if (!forward.valid() || HasModelBelow(node)) return kNone;
    const uint32_t group = GroupOf(node, forward, true);
    return view_.groups_[group].cost ? group : kNone;
  }

  bool HasModelBelow(NodeId node) {
    for (uint32_t n = node.value + 1; n < tree_.end(node).value; ++n) {
      const NodeId below(n);
      if (tree_.IsOp(below) && tree_.HasDeviceWork(below) &&
          ModelOf(trace_.slices.name[tree_.slice(below).value]) != nullptr)
        return true;
    }
    return false;
  }

  // The forward op whose model says what this op of the backward pass costs:
  // the op must be the only one with device work below its autograd wrapper.
  NodeId ForwardOf(NodeId node) {
    NodeId up = tree_.parent(node);
    for (int level = 0; level < 5 && up.valid();
         ++level, up = tree_.parent(up)) {
      const NodeId forward = tree_.forward(up);
      if (!forward.valid()) continue;
      if (tree_.DeviceWork(up).size() != tree_.DeviceWork(node).size())
        return {};
      const cost::OpModel* model =
          ModelOf(trace_.slices.name[tree_.slice(forward).value]);
      return model != nullptr && view_.models_->HasBackward(*model) ? forward
                                                                    : NodeId();
    }
    return {};
  }

  // The group of `node`, with the model and the arguments of `source`.
  uint32_t GroupOf(NodeId node, NodeId source, bool backward) {
    Key key = KeyOf(source, backward);
    const StringId name = trace_.slices.name[tree_.slice(node).value];
    const cost::OpModel* model =
        ModelOf(trace_.slices.name[tree_.slice(source).value]);
    key.shown = name.value;
    const auto [it, is_new] =
        groups_.try_emplace(key, static_cast<uint32_t>(view_.groups_.size()));
    if (!is_new) return it->second;
    CostView::Group group;
    group.first = node;
    group.name = name;
    group.dims = StringId(key.dims);
    group.types = StringId(key.types);
    group.concrete = StringId(key.concrete);
    group.model = model;
    group.backward = backward;
    if (key.instruction != trace::kNoRow) {
      TakeInstruction(trace_.instructions[key.instruction], group);
    } else if (model != nullptr) {
      Evaluate(key, node, source, group);
    }
    view_.groups_.push_back(std::move(group));
    return it->second;
  }

  // What the recording's own program says of the op.
  void TakeInstruction(const trace::Instruction& instruction,
                       CostView::Group& group) {
    group.model = nullptr;
    group.instruction = &instruction;
    if (instruction.flops < 0 && instruction.bytes < 0) return;
    cost::Cost cost;
    cost.flops = std::max(instruction.flops, 0.0);
    cost.bytes = std::max(instruction.bytes, 0.0);
    cost.unit = instruction.matrix ? "matrix" : "vector";
    const std::string_view type = trace_.Text(instruction.precision);
    for (const auto& [hlo, precision] : kPrecisions) {
      if (hlo == type) cost.precision = precision;
    }
    if (cost.precision.empty()) cost.unit = {};
    if (!instruction.exact) cost.fidelity = cost::Fidelity::kEstimated;
    group.spec = cost.Spec();
    group.cost = std::move(cost);
  }

  // Element types of HLO that devices have peaks for.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9>
      kPrecisions = {{{"f64", "fp64"},
                      {"f32", "fp32"},
                      {"bf16", "bf16"},
                      {"f16", "fp16"},
                      {"f8e4m3fn", "fp8"},
                      {"f8e5m2", "fp8"},
                      {"f8e4m3fnuz", "fp8"},
                      {"f8e5m2fnuz", "fp8"},
                      {"s8", "int8"}}};

  void Evaluate(const Key& key, NodeId node, NodeId source,
                CostView::Group& group) {
    const auto text = [&](uint32_t id) { return trace_.strings[StringId(id)]; };
    auto call = cost::ParseCall(
        trace_.strings[trace_.slices.name[tree_.slice(source).value]],
        text(key.dims), text(key.types), text(key.concrete));
    if (!call) {
      group.missing = cost::Missing::kNoValue;
      return;
    }
    const auto work = tree_.DeviceWork(node);
    const std::string_view kernel =
        work.empty() ? std::string_view() : trace_.Name(work[0]);
    call->kernel_element_bytes = cost::ElementBytesOf(kernel);
    call->step = cost::ParseStep(text(key.step));
    auto cost = view_.models_->Evaluate(*group.model, *call, group.backward);
    if (!cost) {
      group.missing = cost.error();
      return;
    }
    group.cost = std::move(*cost);
    group.spec = group.cost->Spec();
    if (group.spec == "matrix_fp32") {
      if (IsTf32(kernel)) {
        group.spec = "matrix_tf32";
      } else {
        group.assumed_spec = true;
      }
    }
  }

  // Products of fp32 that run as TF32 say so in the kernel's name only.
  static bool IsTf32(std::string_view kernel) {
    const auto has = [&](std::string_view word) {
      return kernel.find(word) != std::string_view::npos;
    };
    if (has("tf32") || has("_s1688gemm_") || has("s16816")) return true;
    // nvjet_<types>_...: a type letter t.
    if (!kernel.starts_with("nvjet_")) return false;
    const std::string_view letters = kernel.substr(6, 4);
    return letters.substr(0, letters.find('_')).find('t') !=
           std::string_view::npos;
  }

  uint32_t AddCall(NodeId node, uint32_t group) {
    const auto call = static_cast<uint32_t>(view_.calls_.size());
    view_.calls_.push_back({node, group, 0, 0});
    view_.groups_[group].calls.push_back(call);
    return call;
  }

  // Gives every linked slice that is no communication to its call.
  void Distribute() {
    std::vector<std::pair<uint32_t, SliceId>> owned;
    owned.reserve(tree_.launched().size());
    absl::flat_hash_map<uint32_t, uint32_t> plain;  // launcher -> call
    for (const SliceId s : tree_.launched()) {
      if (device_.communication(s)) continue;
      const NodeId launch = tree_.launch(s);
      uint32_t call = cover_[launch.value];
      if (call == kNone) {
        const NodeId launcher = device_.launcher(s);
        const auto [it, is_new] = plain.try_emplace(launcher.value, 0);
        if (is_new) it->second = AddCall(launcher, PlainGroup(launcher));
        call = it->second;
      }
      owned.emplace_back(call, s);
    }
    std::stable_sort(
        owned.begin(), owned.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    view_.work_.reserve(owned.size());
    for (const auto& [call, s] : owned) {
      CostView::Call& row = view_.calls_[call];
      if (row.end == 0) row.begin = static_cast<uint32_t>(view_.work_.size());
      view_.work_.push_back(s);
      row.end = static_cast<uint32_t>(view_.work_.size());
    }
  }

  // The group of an op or API call without a known cost.
  uint32_t PlainGroup(NodeId node) { return GroupOf(node, node, false); }

  const tree::Tree& tree_;
  const Trace& trace_;
  const tree::Steps& steps_;
  const DeviceView& device_;
  CostView& view_;
  std::vector<std::optional<const cost::OpModel*>> models_by_name_;
  std::vector<uint32_t> cover_;  // by node: call
  absl::flat_hash_map<Key, uint32_t> groups_;
};

std::unique_ptr<CostView> CostView::Build(
    const tree::Tree& tree, const tree::Steps& steps, const DeviceView& device,
    std::shared_ptr<const cost::ModelSet> models) {
  auto view = std::make_unique<CostView>();
  view->models_ = std::move(models);
  CostViewBuilder(tree, steps, device, *view).Run();
  return view;
}

Result<Efficiency> Efficiency::Of(const Context& context) {
  LAMINA_ASSIGN(const CostModels* const models, context.Get<CostModels>());
  LAMINA_ASSIGN(const TargetDevice* const target, context.Get<TargetDevice>());
  Efficiency efficiency;
  efficiency.costs = CostView::Build(context.tree, context.steps,
                                     context.device, models->models);
  efficiency.device = target->device;
  return efficiency;
}

std::optional<int64_t> LookedUpTokens(const tree::Tree& tree, NodeId node) {
  constexpr double kLeastWords = 1000, kMostTokens = 1e15;
  if (tree.name(node) != "aten::embedding") return std::nullopt;
  const Trace& trace = tree.trace();
  const trace::OpArgs* const args = trace.Op(tree.slice(node));
  if (args == nullptr || !args->dims.valid()) return std::nullopt;
  const auto call =
      cost::ParseCall(tree.name(node), trace.Text(args->dims),
                      trace.Text(args->types), trace.Text(args->concrete));
  if (!call || call->arguments.size() < 2) return std::nullopt;
  const auto& weight = call->arguments[0].dims;
  const auto& indices = call->arguments[1].dims;
  if (weight.empty() || weight[0] < kLeastWords || indices.empty() ||
      indices.size() > 2)
    return std::nullopt;
  double count = 1;
  for (const double dim : indices) count *= dim;
  if (!(count > 0 && count < kMostTokens)) return std::nullopt;
  return static_cast<int64_t>(count);
}

int64_t WholeBytes(double bytes) {
  constexpr double kLargest = 9.2e18;  // what int64 holds
  return std::llround(std::clamp(bytes, 0.0, kLargest));
}

Result<const cost::Device*> Input::Device() const {
  LAMINA_ASSIGN(const TargetDevice* const target, Get<TargetDevice>());
  return target->device ? &*target->device : nullptr;
}

Result<CostModels> CostModels::Of(const Input& input) {
  LAMINA_ASSIGN(auto models, cost::ModelSet::Load(input.data));
  return CostModels{std::move(models)};
}

Result<TargetDevice> TargetDevice::Of(const Input& input) {
  LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(input.data));
  if (!input.device.empty()) {
    LAMINA_ASSIGN(cost::Device device, devices->Find(input.device));
    return TargetDevice{std::move(device)};
  }
  if (input.trace.info.devices.empty()) return TargetDevice{};
  const trace::DeviceInfo& info = input.trace.info.devices[0];
  cost::DeviceFacts facts;
  facts.name = info.name;
  if (info.memory_bytes != trace::kNoInt)
    facts.memory_bytes = static_cast<double>(info.memory_bytes);
  if (info.sm_count != trace::kNoInt)
    facts.multiprocessors = static_cast<double>(info.sm_count);
  if (info.compute_major != trace::kNoInt) {
    facts.compute_capability = std::to_string(info.compute_major) + "." +
                               std::to_string(info.compute_minor);
  }
  return TargetDevice{devices->Match(facts)};
}

}  // namespace lamina::analysis
