// SPDX-License-Identifier: Apache-2.0
//
// Why each device slice is of its family.
#pragma once

#include <string>
#include <vector>

#include "analysis/common/device_view.h"

namespace lamina::analysis {

enum class FamilyBy : uint8_t {
  kCollective,  // it is communication
  kOp,          // an op above its launch
  kName,        // its own name
  kKind,        // it is a copy or a fill
  kNothing      // no rule knows it: "other"
};
struct FamilyDecision {
  size_t family = 0;
  FamilyBy by = FamilyBy::kNothing;
  NodeId op;  // kOp
};

// By row of device arguments; the families are those of `view`.
std::vector<FamilyDecision> FamilyReasons(const DeviceView& view,
                                          const tree::Tree& tree,
                                          const rules::Catalog& catalog);

// The name that the rules for ops are asked about: that of the slice, of an HLO
// instruction "hlo::" and what it does.
std::string FamilyName(const Trace& trace, SliceId s);

}  // namespace lamina::analysis
