// SPDX-License-Identifier: Apache-2.0
//
// What compiled kernels compute, as tables and as columns of others.
#pragma once

#include <vector>

#include "analysis/common/compiled_work.h"
#include "analysis/common/context.h"
#include "lamina/result.h"

namespace lamina::graph {

// The columns of these tables, in their order.
std::vector<Schema> CompiledSchemas();

// These tables of a trace that was given code.
analysis::AnalysisInfo CompiledInfo();

// Tables `compiled_kernels` and `compiled_nodes`, with the notes of the join.
ResultSet CompiledTables(const trace::Trace& trace,
                         const analysis::CompiledWork& work);

// The columns `computes`, `where` and `lines` in the table kernels.
void AddCompiledColumns(const analysis::Context& context,
                        const analysis::CompiledWork& work, Table& table);

}  // namespace lamina::graph
