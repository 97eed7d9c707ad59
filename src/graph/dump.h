// SPDX-License-Identifier: Apache-2.0
//
// A dump file: its header and its graphs. The format, with its traps, is in
// docs/dumps.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/diagnostics.h"
#include "graph/graph.h"

namespace lamina::graph {

struct Header {
  std::string transform;
  std::string stage;
  std::optional<int64_t> modules;  // as the file says; not to be trusted
};

struct Dump {
  std::string name;  // shown in messages
  std::shared_ptr<const std::string> text;
  std::string_view preamble;  // everything in front of the first graph
  Header header;
  std::string_view dialect;  // as Graph::dialect
  std::string main;          // the graph to take by default; may be empty
  // The file beside it whose graph named its weights; empty: none did.
  std::string weights_from;
  std::vector<Graph> graphs;
  Diagnostics diagnostics;

  Graph* Find(std::string_view graph);
  const Graph* Find(std::string_view graph) const;
};

struct ParseOptions {
  // Stop at the first bad line.
  bool strict = false;
  // Interned ops to use; a pool of its own when null.
  std::shared_ptr<StringPool> ops;
  // Name of the dialect to read the text as; empty: what the content says.
  std::string dialect;
};

// Files beyond this are refused before they are read.
inline constexpr size_t kMaxDumpBytes = size_t{1} << 30;

// Reads text. Bad lines are skipped and told in `diagnostics`. Errors: nothing
// of a dump in it; with `strict` the first bad line.
Result<Dump> ParseDump(std::string name, std::string text,
                       const ParseOptions& options = {});

// Whether text may be the begin of an AutoDeploy dump.
bool LooksLikeDump(std::string_view head);

// The graph to take when none is named: Dump::main, monolithic.model, else the
// one with most ops, the first of equals. Null for a dump without graphs.
const Graph* DefaultGraph(const Dump& dump);
// The graph of that name, or the default one for "". Errors: no such graph
// (the hint lists the names), or none at all.
Result<const Graph*> ChooseGraph(const Dump& dump, std::string_view name);

}  // namespace lamina::graph
