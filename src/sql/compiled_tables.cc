// SPDX-License-Identifier: Apache-2.0
//
// What kernels of a compiler compute, of sources that were given its code;
// without it these tables have no rows.
#include "graph/compiled/compiled_join.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

using analysis::CompiledWork;

TableDef CompiledEvents() {
  return FilledTable(
      "compiled_kernel",
      "Device work that a compiler's code explains (--compiled): the ops and "
      "lines of the model that it computes.",
      {{"uid", Type::kInt, "Event number of the device work."},
       {"program", Type::kText, "Compile id, or the file."},
       {"kernel", Type::kText, "As the code names it."},
       {"ops", Type::kText, "Ops that it computes."},
       {"place", Type::kText,
        "Lines of the model that they come from, in short."},
       {"lines", Type::kText, "The same in full, with the code."},
       {"nodes", Type::kText, "Nodes of the compiled graph."},
       {"join", Type::kText, "exact, sure or likely, as in compiled_kernels."}},
      [](const Asked& source, Table& out) -> Status {
        LAMINA_ASSIGN(const auto* const code, source.Get<graph::JoinedCode>());
        if (!code->work) return {};
        const auto& work = code->work;
        const trace::Trace* const trace = &source.trace();
        for (const trace::SliceId s : trace->device_slices()) {
          const auto use = work->uses.find(s);
          if (use == work->uses.end()) continue;
          const CompiledWork::Kernel& kernel =
              work->kernels[use->second.kernel];
          out.Add(trace->Uid(s), kernel.program, kernel.name, kernel.ops,
                  kernel.where, kernel.lines, kernel.nodes,
                  Name(use->second.join));
        }
        return {};
      });
}

}  // namespace

void AddCompiledTables(std::vector<TableDef>& tables) {
  tables.push_back(CompiledEvents());
}

}  // namespace lamina::sql
