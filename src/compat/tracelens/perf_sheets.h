// SPDX-License-Identifier: Apache-2.0
//
// The sheets that price ops: what AddPerfSheets (sheets.h) consists of.
#pragma once

#include <vector>

#include "compat/tracelens/model.h"
#include "compat/tracelens/overlaps.h"
#include "compat/tracelens/pricer.h"
#include "compat/tracelens/pseudo_ops.h"
#include "lamina/result.h"

namespace lamina::compat::tracelens {

// unified_perf_summary, and with `overlaps`, which may be null, its overlap
// sheet.
void AddUnifiedSheets(const Model& model, Pricer& pricer,
                      const std::vector<PseudoOp>& pseudo_ops,
                      const Overlaps* overlaps, ResultSet& result);

// GEMM, SDPA_fwd ...: a sheet per family of ops.
void AddFamilySheets(const Model& model, Pricer& pricer,
                     const std::vector<PseudoOp>& pseudo_ops,
                     const Overlaps* overlaps, ResultSet& result);

}  // namespace lamina::compat::tracelens
