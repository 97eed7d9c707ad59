// SPDX-License-Identifier: Apache-2.0
//
// What ops cost by the models that TraceLens has, too.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/common/cost_view.h"
#include "compat/tracelens/model.h"
#include "compat/tracelens/perf_params.h"
#include "compat/tracelens/pseudo_ops.h"
#include "cost/device.h"

namespace lamina::compat::tracelens {

// What one op costs by its model, as the layout shows it.
struct Priced {
  const cost::OpModel* model = nullptr;
  std::optional<cost::Cost> cost;
  std::vector<Param> params;
  std::string spec;
  std::optional<cost::Roofline> roofline;  // when the layout shows them
};

// Calls that look the same are priced once.
class Pricer {
 public:
  Pricer(const Model& model, const analysis::Efficiency& efficiency)
      : model_(model), efficiency_(efficiency), costs_(*efficiency.costs) {}

  const cost::ModelSet& models() const { return costs_.models(); }

  // The model that TraceLens has, too; null if none.
  const cost::OpModel* Find(NodeId node);

  static bool IsCompiled(const cost::OpModel& model) {
    return model.model->name == "triton";
  }

  // Of the call `source`; kernels are those of `node`.
  const Priced& Price(NodeId node, NodeId source, bool backward);

  // Null when no model knows the pseudo-op.
  const Priced* Price(const PseudoOp& pseudo);

 private:
  // Name, the four texts of its arguments, kernel, step, backward.
  using CallKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                             uint32_t, uint32_t, bool>;
  // Name, three texts, kernel, step, experts of a token.
  using PseudoKey = std::tuple<std::string_view, uint32_t, uint32_t, uint32_t,
                               uint32_t, uint32_t, double>;

  void Evaluate(const cost::Call& call, bool backward, std::string_view strides,
                std::string_view kernel, Priced& priced) const;

  // Of the kernels below `node`: the first whose name tells how a product was
  // called, where `product`, else the first.
  StringId KernelOf(NodeId node, bool product);
  void AddRoofline(Priced& priced) const;

  const Model& model_;
  const analysis::Efficiency& efficiency_;
  const analysis::CostView& costs_;
  std::map<uint32_t, bool> names_transpose_;  // by name of a kernel
  std::map<uint32_t, const cost::OpModel*> by_name_;
  std::map<CallKey, Priced> calls_;
  std::map<PseudoKey, Priced> pseudo_;
};

}  // namespace lamina::compat::tracelens
