// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compat/tracelens/model.h"
#include "lamina/result.h"

namespace lamina::compat::tracelens {

// Columns of the sheets; their meanings are in docs/tracelens.md.
Column Text(std::string name);
Column Number(std::string name);
Column Count(std::string name);

// One function per group of sheets; a sheet without rows is left out where
// TraceLens leaves it out.
void AddTimelineSheet(const Model& model, ResultSet& result);
void AddOpSheets(const Model& model, ResultSet& result);
void AddPerfSheets(const Model& model, ResultSet& result);
void AddKernelSheets(const Model& model, ResultSet& result);
void AddCollectiveSheet(const Model& model, ResultSet& result);

// All sheets of the layout. The context must hold a tree built with
// LinkMode::kFlow (and Python stacks for the inference layout and for
// recompute detection).
Result<ResultSet> MakeSheets(const Context& context, Options options);

}  // namespace lamina::compat::tracelens
