// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/pricer.h"

#include "base/decimal.h"
#include "base/text.h"
#include "compat/tracelens/family_params.h"
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

}  // namespace lamina::compat::tracelens
