// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/perf_sheets.h"

#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {

void AddPerfSheets(const Model& model, const Overlaps* overlaps,
                   ResultSet& result) {
  if (model.gpu_only() || model.context().efficiency == nullptr) return;
  Pricer pricer(model);
  const std::vector<PseudoOp> pseudo_ops = FindPseudoOps(model);
  AddUnifiedSheets(model, pricer, pseudo_ops, overlaps, result);
  AddFamilySheets(model, pricer, pseudo_ops, overlaps, result);
}

}  // namespace lamina::compat::tracelens
