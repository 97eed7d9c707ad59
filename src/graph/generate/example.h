// SPDX-License-Identifier: Apache-2.0
//
// The first place of a rule in a dump as a small graph of its own: what tests
// are made of. It prints as lines of a dump, so that lamina's matcher says
// what a test must count, and as Python.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern/rule.h"

namespace lamina::generate {

struct ExampleArg {
  enum class Kind : uint8_t { kNode, kText, kList, kTuple };
  Kind kind = Kind::kText;
  std::string text;  // name of a node, or a literal as in a dump
  std::vector<ExampleArg> items;
};

struct ExampleNode {
  enum class Kind : uint8_t { kInput, kWeight, kOp };
  Kind kind = Kind::kOp;
  std::string name;
  std::string op;  // normalised target
  std::vector<ExampleArg> args;
  std::string result;  // "2x3x4096 : torch.bfloat16"; empty: not known
};

struct Example {
  std::vector<ExampleNode> nodes;    // inputs, weights, ops in order
  std::vector<std::string> outputs;  // results that the rule lets out

  ExampleNode* Find(std::string_view name);
  const ExampleNode* Find(std::string_view name) const;
  // With this behind every name; `chain` (an input) becomes the node `to`.
  Example Copy(std::string_view tag, std::string_view chain,
               std::string_view to) const;
};

// The nodes of a match with symbols of shapes bound to small primes. Nothing
// when an operand has no form that can be written.
std::optional<Example> ExampleOf(const graph::Graph& graph,
                                 const graph::Pattern& pattern,
                                 const graph::Match& match);

// As lines of a dump, with `spies` as further outputs.
std::string DumpLines(const Example& example,
                      const std::vector<std::string>& spies = {});

// Matches of the rule in the lines of a dump. Shapes that are not known let a
// guard that reads them fail; what no dump can show is taken to hold.
size_t CountMatches(const graph::Rule& rule, std::string_view lines,
                    const graph::OptionOf& option);

}  // namespace lamina::generate
