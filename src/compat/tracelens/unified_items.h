// SPDX-License-Identifier: Apache-2.0
//
// What the rows of unified_perf_summary add up: ops, such that every device
// event that is no communication is in one of them.
#pragma once

#include <string>
#include <vector>

#include "compat/tracelens/model.h"
#include "compat/tracelens/pricer.h"
#include "compat/tracelens/pseudo_ops.h"

namespace lamina::compat::tracelens {

// One row's worth of an op: the node, what it stands for and its work.
struct Item {
  NodeId node;
  std::string name;
  std::vector<SliceId> work;
  const Priced* priced = nullptr;  // null: no model
  bool synthetic = false;
  const PseudoOp* pseudo = nullptr;
};

// Ops with a model or kernels of their own, in the order of the tree; then
// pseudo-ops whose work is left; then a synthetic op for every kernel that is
// left. The items point into `pricer` and `pseudo_ops`.
std::vector<Item> UnifiedItems(const Model& model, Pricer& pricer,
                               const std::vector<PseudoOp>& pseudo_ops);

}  // namespace lamina::compat::tracelens
