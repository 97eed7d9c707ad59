// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/perf_sheets.h"

#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {

void AddPerfSheets(const Model& model, ResultSet& result) {
  if (model.tree().size() == 0 || model.context().efficiency == nullptr) return;
  Pricer pricer(model);
  const std::vector<PseudoOp> pseudo_ops = FindPseudoOps(model);
  AddUnifiedSheet(model, pricer, pseudo_ops, result);
  AddFamilySheets(model, pricer, pseudo_ops, result);
}

}  // namespace lamina::compat::tracelens
