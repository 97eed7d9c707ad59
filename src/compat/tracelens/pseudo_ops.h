// SPDX-License-Identifier: Apache-2.0
//
// Ops that the inference layout makes up: one host op may cover several kernels
// of which only some do what a cost model describes. A pseudo-op stands for
// those kernels and borrows the arguments of the host op, its donor.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compat/tracelens/model.h"

namespace lamina::compat::tracelens {

struct PseudoOp {
  std::string_view name;
  NodeId donor;
  std::vector<SliceId> work;
  // Of a mixture of experts, where the donor does not record it.
  std::optional<double> top_k;
  std::optional<bool> gated;
  uint32_t uid = 0;  // after those of all events
};

// In the order of their donors.
std::vector<PseudoOp> FindPseudoOps(const Model& model);

}  // namespace lamina::compat::tracelens
