// SPDX-License-Identifier: Apache-2.0
//
// Which kernels exist already: ops of a built-in table, or of a source tree
// that is scanned as text. Nothing of the tree is run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/fusion/meaning.h"
#include "graph/fusion/traffic.h"
#include "graph/pattern/rule.h"
#include "lamina/table.h"

namespace lamina::fusion {

// Something of a source tree that a line of it says.
struct Mention {
  enum class Kind : uint8_t {
    kDefinition,      // custom_op("ns::name"), define(...), m.def(...)
    kFake,            // register_fake: the op can be traced
    kImplementation,  // m.impl
    kUse,             // torch.ops.ns.name
    kTransform,       // TransformRegistry.register("key")
    kPattern,         // register_ad_pattern(...), ADPatternMatcherPass
    kTriton,          // @triton.jit, an inner kernel and no op
    kTest,            // def test_...
  };
  Kind kind = Kind::kUse;
  std::string name;  // "auto_deploy.flashinfer_rms_norm", key or function
  std::string file;  // below the tree
  uint32_t line = 0;
};
std::string_view Name(Mention::Kind kind);

struct SourceIndex {
  std::string tree;
  size_t files = 0;
  std::vector<Mention> mentions;  // by file and line
  // First mention of the kind; null if there is none.
  const Mention* Find(std::string_view name, Mention::Kind kind) const;
};

// Reads the Python and C++ files of the folders of a TensorRT-LLM checkout
// that define ops, transforms and tests; the whole tree when it has none of
// them. Errors: no such folder.
Result<SourceIndex> ScanTree(const std::string& tree);
// The mentions of one file, for tests.
void ScanText(std::string_view file, std::string_view text,
              std::vector<Mention>& out);

struct FoundKernel {
  std::string op;
  double score = 0;       // 1: named by a rule or every word fits
  std::string evidence;   // file:line, or file and how it is known
  std::string tests;      // file:line of one, or empty
  Fit fit = Fit::kEqual;  // with what it is held against
  std::string why_not;    // what speaks against it; empty: nothing
};

class KernelLookup {
 public:
  // `tree` may be null. Both must live longer.
  KernelLookup(const OpTable& ops, const SourceIndex* tree);

  // An op by its name: the definition in the tree, else the table. The score
  // is 0 when neither knows it.
  FoundKernel ByName(std::string_view op) const;
  // The transform of a rule that puts no op of its own in place: views and
  // products that PyTorch has. Its file, or where the tree registers it; the
  // score is 0 when the tree does not.
  FoundKernel Transform(const graph::Rule& rule) const;
  // The ops that compute what the nodes compute, and those that nearly do:
  // by fit, the best first. Only `kEqual` and `kLayout` have a score. Ops that
  // say nothing of what they compute are `kUnknown` when their names say what
  // the words say.
  std::vector<FoundKernel> ByMeaning(
      const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
      const std::vector<std::string>& words) const;
  // What the ops of a form compute, as words of the op table.
  std::vector<std::string> WordsOf(
      const graph::Graph& graph, const std::vector<graph::NodeId>& nodes) const;

 private:
  std::vector<std::string> WordsOfName(std::string_view name) const;
  const OpTable& ops_;
  const SourceIndex* tree_;
};

// The mentions as a table.
Table SourceTable(const SourceIndex& index);

}  // namespace lamina::fusion
