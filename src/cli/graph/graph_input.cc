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

// A note is of one line.
std::string FaultsOf(const graph::Dump& dump) {
  std::string faults = graph::Format(dump.diagnostics, dump.name);
  std::replace(faults.begin(), faults.end(), '\n', ' ');
  return faults;
}

}  // namespace

std::string GraphInput::FileName() const {
  return path.substr(path.rfind('/') + 1);
}

Result<graph::Dump> ReadGraphDump(const std::string& path,
                                  const graph::ParseOptions& options,
                                  bool quiet, Common& common) {
  const ScopedStage stage(&common.times, "read");
  LAMINA_ASSIGN(graph::Dump dump, graph::ReadDump(path, options));
  if (quiet) return dump;
  if (common.host != nullptr) {
    std::string faults = FaultsOf(dump);
    if (!faults.empty()) common.Warn("dump_faults", faults);
    return dump;
  }
  graph::DumpFile file;
  if (graph::ParseDumpName(path, file)) {
    const std::string conflict = graph::NameConflict(file, dump.header);
    if (!conflict.empty()) Say(common, conflict);
  }
  std::fputs(graph::Format(dump.diagnostics, dump.name).c_str(), stderr);
  return dump;
}

Result<GraphInput> OpenGraph(const std::string& path,
                             const std::string& section, Common& common,
                             const graph::ParseOptions& options) {
  GraphInput input;
  LAMINA_ASSIGN(input.path, graph::PickDump(path));
  if (input.path != path) Say(common, "reading " + EscapeTerminal(input.path));
  // What a host is told of it is in `told`.
  LAMINA_ASSIGN(input.dump, ReadGraphDump(input.path, options,
                                          common.host != nullptr, common));
  LAMINA_ASSIGN(input.graph, graph::ChooseGraph(input.dump, section));
  if (!input.dump.weights_from.empty()) {
    const std::string& from = input.dump.weights_from;
    const std::string named = "weights are named as in " +
                              EscapeTerminal(from.substr(from.rfind('/') + 1));
    Say(common, named);
    input.told.push_back(MakeNote(Severity::kInfo, "weights_named", named));
  }
  std::string faults = FaultsOf(input.dump);
  if (!faults.empty()) {
    input.told.push_back(
        MakeNote(Severity::kWarning, "dump_faults", std::move(faults)));
  }
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

void TellHost(const Common& common, const GraphInput& input,
              ResultSet& result) {
  if (common.host == nullptr) return;
  result.notes.insert(result.notes.end(), input.told.begin(), input.told.end());
}

}  // namespace lamina::cli
