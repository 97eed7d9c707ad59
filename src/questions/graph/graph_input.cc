// SPDX-License-Identifier: Apache-2.0
#include "questions/graph/graph_input.h"

#include <algorithm>
#include <optional>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/dialects/read.h"

namespace lamina::questions {

std::string GraphInput::FileName() const {
  return path.substr(path.rfind('/') + 1);
}

Result<std::string> PickDump(const std::string& path, Asker& asker) {
  LAMINA_ASSIGN(std::string file, graph::PickDump(path));
  if (file != path) asker.Mention("reading " + EscapeTerminal(file));
  return file;
}

Result<graph::Dump> ReadGraphDump(const std::string& path,
                                  const graph::ParseOptions& options,
                                  Asker& asker, bool is_quiet) {
  const ScopedStage stage(&asker.times, "read");
  LAMINA_ASSIGN(graph::Dump dump, graph::ReadDump(path, options));
  if (is_quiet) return dump;
  graph::DumpFile file;
  if (graph::ParseDumpName(path, file)) {
    const std::string conflict = graph::NameConflict(file, dump.header);
    if (!conflict.empty()) asker.Say("dump_name", conflict);
  }
  if (!dump.weights_from.empty()) {
    const auto name = [](const std::string& whole) {
      return EscapeTerminal(whole.substr(whole.rfind('/') + 1));
    };
    asker.Say("weights_named", name(path) + ": weights are named as in " +
                                   name(dump.weights_from));
  }
  // Lines that name their places.
  const std::string faults = graph::Format(dump.diagnostics, dump.name);
  if (!faults.empty()) asker.Warn("dump_faults", faults);
  return dump;
}

Result<GraphInput> OpenGraph(const std::string& path,
                             const std::string& section, Asker& asker,
                             const graph::ParseOptions& options) {
  GraphInput input;
  LAMINA_ASSIGN(input.path, PickDump(path, asker));
  LAMINA_ASSIGN(input.dump, ReadGraphDump(input.path, options, asker));
  LAMINA_ASSIGN(input.graph, graph::ChooseGraph(input.dump, section));
  if (section.empty() && input.dump.graphs.size() > 1) {
    asker.Say("graph_choice", "graph '" + EscapeTerminal(input.graph->name()) +
                                  "' of " +
                                  std::to_string(input.dump.graphs.size()) +
                                  " (⟨section⟩ NAME takes another)");
  }
  return input;
}

Result<graph::Bindings> ParseBindings(const std::vector<std::string>& texts,
                                      int64_t least) {
  graph::Bindings out;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const auto value =
        equals == std::string::npos
            ? std::nullopt
            : ParseInt(std::string_view(text).substr(equals + 1));
    if (!value || *value < least || equals == 0) {
      return Fail(UsageError("⟨bind⟩: expected SYMBOL=NUMBER, found '" +
                                 EscapeTerminal(text) + "'",
                             "for example ⟨bind⟩ s72=1,s70=128"));
    }
    out[text.substr(0, equals)] = *value;
  }
  return out;
}

void AddDialectOption(Description& args, std::string& dialect) {
  std::string names;
  for (const std::string_view one : graph::Dialects())
    names += (names.empty() ? "" : ", ") + std::string(one);
  args.Add("--dialect", dialect,
           "Read the dump as this one of " + names +
               ", whatever its content looks like");
  args.Check([&dialect] {
    const std::string wrong =
        dialect.empty() ? std::string() : graph::WrongDialect(dialect);
    return wrong.empty() ? wrong : "⟨dialect⟩: " + wrong;
  });
}

}  // namespace lamina::questions
