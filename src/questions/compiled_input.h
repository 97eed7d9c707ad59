// SPDX-License-Identifier: Apache-2.0
//
// --compiled: the code of a compiler beside a trace.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/compiled_work.h"
#include "analysis/common/context.h"
#include "graph/compiled/compiled_code.h"
#include "lamina/result.h"
#include "questions/description.h"

namespace lamina::questions {

void AddCompiledTo(Description& args, std::vector<std::string>& files);

// The programs of these files and folders; null: there are none.
Result<std::shared_ptr<const std::vector<graph::CompiledProgram>>> ReadCompiled(
    const std::vector<std::string>& files);

// What the kernels of the trace are by these files and folders.
Result<analysis::CompiledWork> JoinCompiledFiles(
    const std::vector<std::string>& files, const analysis::Context& context);

// Whether a table is one of those that follow.
bool IsCompiledTable(std::string_view name);
// Puts the tables behind `kernels` and the columns into it.
void AddCompiledTables(const analysis::Context& context,
                       const analysis::CompiledWork& work, ResultSet& result);

}  // namespace lamina::questions
