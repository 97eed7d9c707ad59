// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of a trace are those of compiled programs: by their names, told
// apart by the call of the program that launched them and by their order in it.
#pragma once

#include <string>
#include <vector>

#include "analysis/common/compiled_work.h"
#include "graph/compiled/compiled_code.h"
#include "tree/tree.h"

namespace lamina::graph {

analysis::CompiledWork JoinCompiled(
    const tree::Tree& tree, const std::vector<CompiledProgram>& programs);

// The programs of files and folders, one after another. Errors: as those of
// ReadCompiledPrograms.
Result<std::vector<CompiledProgram>> ReadAllPrograms(
    const std::vector<std::string>& paths);

}  // namespace lamina::graph
