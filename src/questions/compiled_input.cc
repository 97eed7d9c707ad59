// SPDX-License-Identifier: Apache-2.0
#include "questions/compiled_input.h"

#include <algorithm>
#include <iterator>

#include "graph/compiled/compiled_join.h"
#include "graph/compiled/compiled_tables.h"

namespace lamina::questions {

void AddCompiledTo(Description& args, std::vector<std::string>& files) {
  args.Add("--compiled", files,
           "Output code of Inductor (output_code.py), a log or TORCH_TRACE "
           "file that holds it, or a folder of tlparse or "
           "TORCH_COMPILE_DEBUG: says which ops and lines of the model each "
           "compiled kernel is; may be repeated")
      .OneWord();
}

Result<std::shared_ptr<const std::vector<graph::CompiledProgram>>> ReadCompiled(
    const std::vector<std::string>& files) {
  if (files.empty()) return nullptr;
  LAMINA_ASSIGN(auto programs, graph::ReadAllPrograms(files));
  return std::make_shared<const std::vector<graph::CompiledProgram>>(
      std::move(programs));
}

Result<analysis::CompiledWork> JoinCompiledFiles(
    const std::vector<std::string>& files, const analysis::Context& context) {
  LAMINA_ASSIGN(const auto programs, graph::ReadAllPrograms(files));
  return graph::JoinCompiled(context.tree, programs);
}

bool IsCompiledTable(std::string_view name) {
  return name == "compiled_kernels" || name == "compiled_nodes";
}

void AddCompiledTables(const analysis::Context& context,
                       const analysis::CompiledWork& work, ResultSet& result) {
  ResultSet own = graph::CompiledTables(context.trace, work);
  const auto kernels =
      std::find_if(result.tables.begin(), result.tables.end(),
                   [](const Table& one) { return one.name() == "kernels"; });
  auto behind = result.tables.end();
  if (kernels != result.tables.end()) {
    graph::AddCompiledColumns(context, work, *kernels);
    behind = kernels + 1;
  }
  result.tables.insert(behind, std::make_move_iterator(own.tables.begin()),
                       std::make_move_iterator(own.tables.end()));
  result.notes.insert(result.notes.end(), own.notes.begin(), own.notes.end());
}

}  // namespace lamina::questions
