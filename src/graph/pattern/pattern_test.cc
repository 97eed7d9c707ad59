// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/pattern.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "graph/dump.h"
#include "graph/pattern/match.h"
#include "graph/print.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

Pattern Compile(std::string_view text, std::vector<std::string> outputs) {
  auto statements = ParseStatements(text);
  EXPECT_TRUE(statements) << statements.error().what;
  auto pattern = CompilePattern(*statements, outputs);
  EXPECT_TRUE(pattern) << pattern.error().what;
  return std::move(*pattern);
}

SyntaxError ErrorOf(std::string_view text, std::vector<std::string> outputs) {
  auto statements = ParseStatements(text);
  if (!statements) return statements.error();
  auto pattern = CompilePattern(*statements, outputs);
  return pattern ? SyntaxError() : pattern.error();
}

Dump Parse(const std::string& lines) {
  auto dump = ParseDump("t", HeaderText({}) + SectionHead("g") + lines);
  EXPECT_TRUE(dump);
  return std::move(*dump);
}

TEST(PatternSyntax, ErrorsHaveAPlace) {
  SyntaxError error = ErrorOf("%a = aten.add(%x, %y", {"a"});
  EXPECT_EQ(error.place.line, 1u);
  EXPECT_EQ(error.place.column, 21u);
  EXPECT_EQ(error.what, "expected ',' or ')', found the end of the line");
  error = ErrorOf("%a = aten.neg(%x)\n%b = aten.neg(%z)", {"b"});
  EXPECT_EQ(error.place.line, 1u);
  EXPECT_EQ(error.what,
            "unreachable line: no value connects it with the last line");
  error = ErrorOf("%a = aten.neg(%x)", {"b"});
  EXPECT_EQ(error.what, "output 'b' is not the result of a line");
  error = ErrorOf("%a = aten.neg($x)\n%b = aten.add(%a, %x)", {"b"});
  EXPECT_EQ(error.place.line, 2u);
  EXPECT_EQ(error.place.column, 19u);
  error = ErrorOf("%a = aten.add(..., %x)", {"a"});
  EXPECT_EQ(error.what, "'...' must be the last operand");
  error = ErrorOf("\n  %a aten.add(%x)", {"a"});
  EXPECT_EQ(error.place.line, 2u);
  EXPECT_EQ(error.place.column, 6u);
}

TEST(PatternMatch, BindsNamesOnce) {
  const Dump dump = Parse(
      "%x : 4 : torch.float32\n%y : 4 : torch.float32\n"
      "%a = aten.mul.Tensor(%x : 4 : torch.float32, %x : 4 : torch.float32) : "
      "4 : torch.float32\n"
      "%b = aten.mul.Tensor(%x : 4 : torch.float32, %y : 4 : torch.float32) : "
      "4 : torch.float32\n"
      "output %a, %b\n");
  const OpIndex index(dump.graphs[0]);
  const Pattern square = Compile("%o = aten.mul(%x, %x)", {"o"});
  Finder finder(index, square);
  const auto accept = [](Match&) { return true; };
  ASSERT_EQ(finder.anchors().size(), 2u);
  EXPECT_TRUE(finder.Find(finder.anchors()[0], accept));
  EXPECT_FALSE(finder.Find(finder.anchors()[1], accept));
}

TEST(PatternMatch, NamesTheCheapestReason) {
  const Dump dump = Parse(
      "%x : 4 : torch.float32\n"
      "%a = aten.neg.default(%x : 4 : torch.float32) : 4 : torch.float32\n"
      "%c = aten.relu.default(%a : 4 : torch.float32) : 4 : torch.float32\n"
      "%b = aten.pow.Tensor_Scalar(%a : 4 : torch.float32, 2) : 4 : "
      "torch.float32\n"
      "output %b, %c\n");
  const Graph& graph = dump.graphs[0];
  const OpIndex index(graph);
  const Pattern pattern =
      Compile("%a = aten.neg(%x)\n%b = aten.pow(%a, 2)", {"b"});
  Finder finder(index, pattern);
  const auto accept = [](Match& match) { return !match.deviations.empty(); };
  const auto match = finder.FindNear(graph.Find("b"), accept);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->deviations[0].miss, Miss::kExtraUser);
  EXPECT_EQ(match->deviations[0].node, graph.Find("a"));
  EXPECT_EQ(match->deviations[0].other, graph.Find("c"));
}

// --- a slow twin: every assignment of nodes to lines ---

class SlowMatcher {
 public:
  SlowMatcher(const Graph& graph, const Pattern& pattern)
      : graph_(graph), pattern_(pattern) {
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind == NodeKind::kOp) ops_.push_back(id);
    }
  }
  bool Matches(NodeId anchor) {
    std::vector<NodeId> nodes(pattern_.lines.size());
    nodes.back() = anchor;
    return Assign(nodes, 0);
  }

 private:
  bool Assign(std::vector<NodeId>& nodes, size_t line) {
    if (line + 1 == nodes.size()) return Holds(nodes);
    for (const NodeId id : ops_) {
      nodes[line] = id;
      if (Assign(nodes, line + 1)) return true;
    }
    return false;
  }

  // Orders of the lines that commute, one bit each.
  bool Holds(const std::vector<NodeId>& nodes) {
    if (std::set<NodeId>(nodes.begin(), nodes.end()).size() != nodes.size())
      return false;
    for (uint32_t swaps = 0; swaps < (1u << nodes.size()); ++swaps) {
      if (HoldsInOrder(nodes, swaps)) return true;
    }
    return false;
  }

  bool HoldsInOrder(const std::vector<NodeId>& nodes, uint32_t swaps) {
    std::vector<NodeId> bound(pattern_.slots.size());
    const auto bind = [&](uint32_t slot, NodeId id) {
      if (!bound[slot].valid()) bound[slot] = id;
      return bound[slot] == id;
    };
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!bind(pattern_.lines[i].slot, nodes[i])) return false;
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const PatternLine& line = pattern_.lines[i];
      if (!MatchesTarget(graph_.op(nodes[i]), line.targets[0])) return false;
      std::vector<NodeId> inputs;
      for (const OperandId operand : graph_.TopOperands(nodes[i]))
        inputs.push_back(graph_.operand(operand).value());
      if (inputs.size() != line.operands.size()) return false;
      const bool swap = swaps >> i & 1;
      if (swap && !line.commutes) return false;
      if (swap) std::swap(inputs[0], inputs[1]);
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (!bind(line.operands[k].slot, inputs[k])) return false;
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (pattern_.slots[pattern_.lines[i].slot].output) continue;
      for (const NodeId user : graph_.Users(nodes[i])) {
        if (std::find(nodes.begin(), nodes.end(), user) == nodes.end())
          return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const Pattern& pattern_;
  std::vector<NodeId> ops_;
};

TEST(PatternMatch, AgreesWithEveryAssignment) {
  const Pattern patterns[] = {
      Compile("%a = aten.neg(%x)\n%o = aten.mul(%a, %x)", {"o"}),
      Compile("%a = aten.neg(%x)\n%o = ~aten.mul(%a, %y)", {"o"}),
      Compile("%a = aten.mul(%x, %y)\n%b = aten.neg(%a)\n%o = aten.add(%b, %a)",
              {"o"}),
      Compile("%a = aten.neg(%x)\n%o = aten.neg(%x)", {"a", "o"}),
      Compile("%a = ~aten.mul(%x, %y)\n%b = aten.add(%x, %z)\n"
              "%o = ~aten.add(%a, %b)",
              {"o", "b"}),
  };
  std::mt19937 random(7);
  const auto pick = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  size_t found = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> names = {"x", "y"};
    std::string text = "%x : 4 : torch.float32\n%y : 4 : torch.float32\n";
    const size_t count = 3 + pick(5);
    for (size_t i = 0; i < count; ++i) {
      const auto use = [&] {
        return "%" + names[pick(names.size())] + " : 4 : torch.float32";
      };
      const std::string name = "n" + std::to_string(i);
      const size_t kind = pick(3);
      text += "%" + name + " = " +
              (kind == 0   ? "aten.neg.default(" + use()
               : kind == 1 ? "aten.mul.Tensor(" + use() + ", " + use()
                           : "aten.add.Tensor(" + use() + ", " + use()) +
              ") : 4 : torch.float32\n";
      names.push_back(name);
    }
    text += "output %" + names.back() + "\n";
    const Dump dump = Parse(text);
    const Graph& graph = dump.graphs[0];
    const OpIndex index(graph);
    for (const Pattern& pattern : patterns) {
      Finder fast(index, pattern);
      SlowMatcher slow(graph, pattern);
      for (const NodeId id : graph.nodes()) {
        if (graph[id].kind != NodeKind::kOp) continue;
        const bool match =
            fast.Find(id, [](Match&) { return true; }).has_value();
        EXPECT_EQ(match, slow.Matches(id)) << text << graph[id].name;
        found += match;
      }
    }
  }
  EXPECT_GT(found, 100u);
}

}  // namespace
}  // namespace lamina::graph
