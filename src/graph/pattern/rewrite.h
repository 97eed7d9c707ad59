// SPDX-License-Identifier: Apache-2.0
//
// Putting the lines of a rule in place of its matches.
//
// Lines of a replacement are those of a pattern, and besides:
//
//   {k}                  number of this replacement in the pass, from 0
//   {u}                  number of the distinct weights of the match, from 0
//   {name:value}         an option of the pass, or the value
//   dim(%x, 2)           a dimension as a literal
//   dtype(%x)            an element type as a literal
//   weight(name, A)      a new weight with the annotation A
//   ?x                   the operand that the pattern calls ?x
//   ...                  the operands of the last line behind those it names
//   %p = &target(...)    shared: made once for equal operands
//   %out = %x            uses of out become uses of x
//
// Behind " : " stands what the result is; without it, an output keeps what the
// replaced value was, and views and casts are worked out.
//
//   %x                   as that value
//   (%a, %b)             both, as a tuple
//   transpose(%x, 1, 2)  with these two dimensions swapped
//   concat(%a, %b, 0)    joined along a dimension
//   flat(%x)             one dimension
//   cast(%x, dtype)      with another element type
//   4x8 : torch.float32  exactly this
//   unknown()            not known from a dump
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern/rule.h"

namespace lamina::graph {

// What lasts over the replacements of one pass.
struct RewriteState {
  OptionOf option;
  uint32_t replaced = 0;                            // {k}
  std::map<std::vector<NodeId>, uint32_t> weights;  // {u}
  std::map<std::string, NodeId> shared;             // by target and operands
};

// Whether the lines can be filled from the pattern.
Parsed<void> ValidateTemplate(const std::vector<Statement>& after,
                              const Pattern& pattern);

// Replaces one match. Nodes that lose their last user are taken out, with what
// only they used. Returns why not, when there is no place for the new lines
// (an operand is defined behind a user of an output); the graph is then as it
// was.
struct Replaced {
  bool done = false;
  std::string reason;
};
Replaced Replace(Graph& graph, const Alternative& alternative,
                 const Match& match, RewriteState& state);

// --- what native passes use too ---

// The annotation of a use of a value, and of one of which nothing is known.
inline constexpr std::string_view kUnknownUse = "? : unknown";
std::string AnnotationOf(const Graph& graph, NodeId id);
// "%name : shape : dtype".
std::string UseOf(const Graph& graph, NodeId id);
// An operand as it prints now.
std::string OperandText(const Graph& graph, OperandId id);
// The target as a dump shows it: "builtin.getitem" -> "<built-in function
// getitem>".
std::string PrintedTarget(std::string_view target);
// Name of a new node by its target: "auto_deploy.torch_rmsnorm.default" ->
// "torch_rmsnorm_default".
std::string BaseName(std::string_view target);
// Where lines with these inputs can stand so that all `users` come behind:
// the place of `wished` if possible. Invalid: nowhere.
NodeId PlaceFor(const Graph& graph, const std::vector<NodeId>& inputs,
                const std::vector<NodeId>& users, NodeId wished);
// Takes out nodes of `candidates` without users and then their inputs.
// Returns how many.
size_t EraseUnused(Graph& graph, std::vector<NodeId> candidates);

}  // namespace lamina::graph
