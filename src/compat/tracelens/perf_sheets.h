// SPDX-License-Identifier: Apache-2.0
//
// The sheets that price ops: what AddPerfSheets (sheets.h) consists of.
#pragma once

#include <vector>

#include "compat/tracelens/model.h"
#include "compat/tracelens/pricer.h"
#include "compat/tracelens/pseudo_ops.h"
#include "lamina/result.h"

namespace lamina::compat::tracelens {

// unified_perf_summary.
void AddUnifiedSheet(const Model& model, Pricer& pricer,
                     const std::vector<PseudoOp>& pseudo_ops,
                     ResultSet& result);

// GEMM, SDPA_fwd ...: a sheet per family of ops.
void AddFamilySheets(const Model& model, Pricer& pricer,
                     const std::vector<PseudoOp>& pseudo_ops,
                     ResultSet& result);

}  // namespace lamina::compat::tracelens
