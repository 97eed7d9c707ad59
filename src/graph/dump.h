// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a dump, each with its place and the line with a caret.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace lamina::graph {

enum class Level : uint8_t {
  kError,    // the line is not in the graph
  kWarning,  // it is, and something about it is doubtful
};

struct Diagnostic {
  Level level = Level::kError;
  uint32_t line = 0;    // 1-based; 0: the whole file
  uint32_t column = 0;  // 1-based byte
  std::string what;
  std::string excerpt;  // the line with a caret below; may be empty
  std::string note;
};

// Keeps the first of each level and counts all.
class Diagnostics {
 public:
  static constexpr size_t kKept = 20;

  void Add(Diagnostic diagnostic);
  // Whether one more of this level will be kept: saves making its text.
  bool Wants(Level level) const { return Count(level) < kKept; }
  void CountOnly(Level level) {
    ++(level == Level::kError ? errors_ : warnings_);
  }
  size_t Count(Level level) const {
    return level == Level::kError ? errors_ : warnings_;
  }
  bool empty() const { return errors_ + warnings_ == 0; }
  const std::vector<Diagnostic>& kept() const { return kept_; }

 private:
  std::vector<Diagnostic> kept_;
  size_t errors_ = 0;
  size_t warnings_ = 0;
};

// The line and a caret below byte `column` (0-based). Lines of more than 200
// bytes are cut to a window around the caret; control bytes are escaped.
std::string Excerpt(std::string_view line, size_t column);

// "FILE:LINE:COLUMN: error: what" with excerpt and note on lines of their own.
std::string Format(const Diagnostic& diagnostic, std::string_view file);
// All that were kept, then how many were not.
std::string Format(const Diagnostics& diagnostics, std::string_view file);
// As the error that ends a command.
Error ToError(const Diagnostic& diagnostic, std::string_view file);

// A dump file: its header and its graphs. The format, with its traps, is in
// docs/dumps.md.

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
