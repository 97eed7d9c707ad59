// SPDX-License-Identifier: Apache-2.0
#include "cli/graph/graph_input.h"

#include <algorithm>
#include <cstdio>

#include "base/escape.h"
#include "graph/dialects/read.h"

namespace lamina::cli {
namespace {

void Say(const Common& common, const std::string& text) {
  if (common.host == nullptr)
    std::fprintf(stderr, "lamina: %s\n", text.c_str());
}

}  // namespace

std::string GraphInput::FileName() const {
  return path.substr(path.rfind('/') + 1);
}

Result<graph::Dump> ReadGraphDump(const std::string& path,
                                  const graph::ParseOptions& options,
                                  Common& common, std::vector<Note>* told) {
  const ScopedStage stage(&common.times, "read");
  LAMINA_ASSIGN(graph::Dump dump, graph::ReadDump(path, options));
  if (told == nullptr) return dump;
  graph::DumpFile file;
  if (graph::ParseDumpName(path, file)) {
    const std::string conflict = graph::NameConflict(file, dump.header);
    if (!conflict.empty()) {
      Say(common, conflict);
      told->push_back(MakeNote(Severity::kInfo, "dump_name", conflict));
    }
  }
  if (!dump.weights_from.empty()) {
    const auto name = [](const std::string& whole) {
      return EscapeTerminal(whole.substr(whole.rfind('/') + 1));
    };
    const std::string named =
        name(path) + ": weights are named as in " + name(dump.weights_from);
    Say(common, named);
    told->push_back(MakeNote(Severity::kInfo, "weights_named", named));
  }
  // A note is of one line.
  std::string faults = graph::Format(dump.diagnostics, dump.name);
  if (common.host == nullptr) std::fputs(faults.c_str(), stderr);
  std::replace(faults.begin(), faults.end(), '\n', ' ');
  if (!faults.empty()) {
    told->push_back(
        MakeNote(Severity::kWarning, "dump_faults", std::move(faults)));
  }
  return dump;
}

Result<GraphInput> OpenGraph(const std::string& path,
                             const std::string& section, Common& common,
                             const graph::ParseOptions& options) {
  GraphInput input;
  LAMINA_ASSIGN(input.path, graph::PickDump(path));
  if (input.path != path) Say(common, "reading " + EscapeTerminal(input.path));
  LAMINA_ASSIGN(input.dump,
                ReadGraphDump(input.path, options, common, &input.told));
  LAMINA_ASSIGN(input.graph, graph::ChooseGraph(input.dump, section));
  if (section.empty() && input.dump.graphs.size() > 1) {
    const std::string choice = "graph '" + EscapeTerminal(input.graph->name()) +
                               "' of " +
                               std::to_string(input.dump.graphs.size()) +
                               " (--section NAME takes another)";
    Say(common, choice);
    input.told.push_back(MakeNote(Severity::kInfo, "graph_choice", choice));
  }
  return input;
}

void AddDialectOption(Arguments& args, std::string& dialect) {
  std::string names;
  for (const std::string_view one : graph::Dialects())
    names += (names.empty() ? "" : ", ") + std::string(one);
  args.Add("--dialect", dialect,
           "Read the dump as this one of " + names +
               ", whatever its content looks like");
  args.Check([&dialect] {
    const std::string wrong =
        dialect.empty() ? std::string() : graph::WrongDialect(dialect);
    return wrong.empty() ? wrong : "--dialect: " + wrong;
  });
}

void TellHost(const Common& common, const std::vector<Note>& told,
              ResultSet& result) {
  if (common.host == nullptr) return;
  result.notes.insert(result.notes.end(), told.begin(), told.end());
}

}  // namespace lamina::cli
