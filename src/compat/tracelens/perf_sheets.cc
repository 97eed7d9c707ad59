// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/perf_sheets.h"

#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {

Status AddPerfSheets(const Model& model, const Overlaps* overlaps,
                     ResultSet& result) {
  if (model.gpu_only()) return {};
  LAMINA_ASSIGN(const auto* const efficiency,
                model.context().Get<analysis::Efficiency>());
  Pricer pricer(model, *efficiency);
  const std::vector<PseudoOp> pseudo_ops = FindPseudoOps(model);
  AddUnifiedSheets(model, pricer, pseudo_ops, overlaps, result);
  AddFamilySheets(model, pricer, pseudo_ops, overlaps, result);
  return {};
}

}  // namespace lamina::compat::tracelens
