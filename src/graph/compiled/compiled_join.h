// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of a trace are those of compiled programs: by their names, told
// apart by the call of the program that launched them and by their order in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/compiled_work.h"
#include "analysis/common/context.h"
#include "graph/compiled/compiled_code.h"
#include "tree/tree.h"

namespace lamina::graph {

// The code that was given with a trace, joined to it; nothing where none was.
struct JoinedCode {
  static constexpr std::string_view kFact = "compiled code";
  static Result<JoinedCode> Of(const analysis::Context& context);

  std::optional<analysis::CompiledWork> work;
};

analysis::CompiledWork JoinCompiled(
    const tree::Tree& tree, const std::vector<CompiledProgram>& programs);

// The programs of files and folders, one after another. Errors: as those of
// ReadCompiledPrograms.
Result<std::vector<CompiledProgram>> ReadAllPrograms(
    const std::vector<std::string>& paths);

}  // namespace lamina::graph
