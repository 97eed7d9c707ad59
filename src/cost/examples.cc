// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cost/arguments.h"
#include "cost/models.h"

namespace lamina::cost {
namespace {

// Numbers of a file are written with what digits their author liked.
bool Equal(double a, double b) {
  return a == b || std::fabs(a - b) <= 1e-12 * std::max(a, b);
}

// What is wrong with one example; empty when it holds.
std::string Problem(const ModelSet& set, const Model& model,
                    const Example& example) {
  const OpModel* op = set.Find(example.op);
  if (op == nullptr) return "'" + example.op + "' has no model";
  if (op->model != &model)
    return "'" + example.op + "' belongs to another model";
  auto call =
      ParseCall(example.op, example.dims, example.types, example.concrete);
  if (!call) return "the arguments cannot be read";
  call->step = ParseStep(example.step);
  call->kernel_element_bytes = ElementBytesOf(example.kernel);
  const auto cost = set.Evaluate(*op, *call);
  if (!cost && !example.flops) return {};
  if (!cost) return "has no cost: " + std::string(MissingName(cost.error()));
  if (!example.flops || !example.bytes) {
    return fmt::format("costs {} FLOP and {} B, expected none or one of them",
                       cost->flops, cost->bytes);
  }
  if (Equal(cost->flops, *example.flops) && Equal(cost->bytes, *example.bytes))
    return {};
  return fmt::format("costs {} FLOP and {} B, expected {} and {}", cost->flops,
                     cost->bytes, *example.flops, *example.bytes);
}

}  // namespace

std::vector<std::string> CheckExamples(const ModelSet& set) {
  std::vector<std::string> problems;
  for (const auto& model : set.models()) {
    for (const Example& example : model->examples) {
      const std::string problem = Problem(set, *model, example);
      if (!problem.empty()) {
        problems.push_back(model->name + ": the example at " + example.place +
                           " " + problem);
      }
    }
  }
  return problems;
}

}  // namespace lamina::cost
