// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compat/tracelens/model.h"
#include "compat/tracelens/overlaps.h"
#include "lamina/result.h"

namespace lamina::compat::tracelens {

// Columns of the sheets; their meanings are in docs/tracelens.md.
Column Text(std::string name);
Column Number(std::string name);
Column Count(std::string name);
Column Flag(std::string name);

// One function per group of sheets; a sheet without rows is left out where
// TraceLens leaves it out.
void AddTimelineSheet(const Model& model, ResultSet& result);
// `overlaps` may be null: without the sheets *_kl_overlap.
void AddOpSheets(const Model& model, const Overlaps* overlaps,
                 ResultSet& result);
Status AddPerfSheets(const Model& model, const Overlaps* overlaps,
                     ResultSet& result);
void AddKernelSheets(const Model& model, ResultSet& result);
void AddCollectiveSheet(const Model& model, ResultSet& result);

// Instead of all of them for a recording of XLA's profiler, which is what JAX
// makes.
void AddJaxSheets(const Model& model, ResultSet& result);

// What the names of sheets end in that tell calls apart by what ran beside
// them.
inline constexpr const char* kOverlapSheet = "_kl_overlap";

// All sheets of the layout. The context must hold a tree with Python stacks for
// the inference layout and for recompute detection.
Result<ResultSet> MakeSheets(const Context& context, Options options);

}  // namespace lamina::compat::tracelens
