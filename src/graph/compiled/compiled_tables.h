// SPDX-License-Identifier: Apache-2.0
//
// What compiled kernels compute, as tables and as columns of others.
#pragma once

#include "analysis/common/compiled_work.h"
#include "lamina/result.h"

namespace lamina::graph {

// Tables `compiled_kernels` and `compiled_nodes`, with the notes of the join.
ResultSet CompiledTables(const trace::Trace& trace,
                         const analysis::CompiledWork& work);

// The columns `computes`, `where` and `lines` in a table whose rows name an
// event of the device in `uid_column`.
void AddCompiledColumns(const trace::Trace& trace,
                        const analysis::CompiledWork& work,
                        std::string_view uid_column, Table& table);

}  // namespace lamina::graph
