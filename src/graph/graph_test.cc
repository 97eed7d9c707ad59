// SPDX-License-Identifier: Apache-2.0
//
// Graphs and dumps: what they know, and that damaged text is kept.

#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "graph/dump.h"
#include "graph/folder.h"
#include "graph/line_parser.h"
#include "graph/print.h"
#include "graph/tables.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace lamina::graph {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSmall =
    "# Transform: t\n"
    "# Stage: export\n"
    "# GraphModules found: 1\n"
    "\n"
    "\n"
    "=============================================================="
    "==================\n"
    "# GraphModule: (root)\n"
    "=============================================================="
    "==================\n"
    "\n"
    "%x : 4x8 : torch.float32\n"
    "%lin = aten.linear.default(%x : 4x8 : torch.float32, %w : 8x8 : "
    "torch.float32) : 4x8 : torch.float32\n"
    "%cat = aten.cat.default([lin, x, lin], -1) : 4x24 : torch.float32\n"
    "%split = aten.split.Tensor(%cat : 4x24 : torch.float32, 12, -1) : "
    "(4x12, 4x12) : (torch.float32, torch.float32)\n"
    "%item = <built-in function getitem>(%split : ? : tuple, 1) : 4x12 : "
    "torch.float32\n"
    "output %item, [lin]\n";

Dump Read(std::string_view text) {
  auto dump = ParseDump("test", std::string(text));
  EXPECT_TRUE(dump.has_value()) << dump.error().ToString();
  return std::move(*dump);
}

std::vector<std::string> Names(const Graph& graph,
                               const std::vector<NodeId>& ids) {
  std::vector<std::string> out;
  for (const NodeId id : ids) out.emplace_back(graph[id].name);
  return out;
}

void ExpectSound(const Graph& graph) {
  for (const Violation& violation : Verify(graph))
    ADD_FAILURE() << violation.what;
}

TEST(Graph, KnowsInputsUsersAndWeights) {
  const Dump dump = Read(kSmall);
  ASSERT_EQ(dump.graphs.size(), 1U);
  EXPECT_TRUE(dump.diagnostics.empty());
  const Graph& graph = dump.graphs[0];
  ExpectSound(graph);
  EXPECT_THAT(Names(graph, graph.Weights()), ElementsAre("w"));
  EXPECT_EQ(graph[graph.Find("w")].result, "8x8 : torch.float32");
  EXPECT_THAT(Names(graph, graph.Inputs(graph.Find("cat"))),
              ElementsAre("lin", "x"));
  EXPECT_THAT(Names(graph, graph.Users(graph.Find("lin"))),
              ElementsAre("cat", ""));
  EXPECT_EQ(graph.UseCount(graph.Find("lin")), 3U);
  const Graph::Element element = graph.ElementOf(graph.Find("item"));
  EXPECT_EQ(element.value, graph.Find("split"));
  EXPECT_EQ(element.index, 1);
  EXPECT_EQ(Print(dump), kSmall);
}

TEST(Graph, ChangesPrintFreshAnnotations) {
  Dump dump = Read(kSmall);
  Graph& graph = dump.graphs[0];
  const NodeId cat = graph.Find("cat");
  const auto relu = graph.Insert(
      cat,
      "%relu = aten.relu.default(%lin : 4x8 : torch.float32) : 4x8 : "
      "torch.float16");
  ASSERT_TRUE(relu.has_value());
  EXPECT_FALSE(graph.Insert(cat, "%relu = a.b() : 1 : int").has_value());
  graph.ReplaceUses(graph.Find("lin"), *relu);
  ExpectSound(graph);
  const std::string text = Print(dump);
  EXPECT_THAT(text, HasSubstr("%relu = aten.relu.default(%lin : 4x8"));
  EXPECT_THAT(text, HasSubstr("%cat = aten.cat.default([relu, x, relu], -1)"));
  EXPECT_THAT(text, HasSubstr("output %item, [relu]\n"));
  // What nobody touched is as it was.
  EXPECT_THAT(text, HasSubstr("%split = aten.split.Tensor(%cat : 4x24"));
  EXPECT_EQ(graph.FreshName("relu"), "relu_1");
}

TEST(Graph, LinesOutOfOrder) {
  const std::string text =
      "%b = f.g(%a : 2 : torch.int8) : 2 : torch.int8\n"
      "%a : 2 : torch.int8\n"
      "%a : 3 : torch.int8\n"
      "output %a\n";
  const Dump dump = Read(text);
  EXPECT_EQ(Print(dump), text);
  ASSERT_EQ(dump.diagnostics.kept().size(), 2U);
  EXPECT_THAT(dump.diagnostics.kept()[0].what, HasSubstr("used before"));
  EXPECT_THAT(dump.diagnostics.kept()[1].what, HasSubstr("second time"));
  EXPECT_FALSE(Verify(dump.graphs[0]).empty());
  ParseOptions strict;
  strict.strict = true;
  const auto refused = ParseDump("test", text, strict);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().line, 2U);
}

TEST(Graph, ADeletedLineIsAnError) {
  const std::string text =
      "%x : 2 : torch.int8\n"
      "%mul = aten.mul.Tensor(%x : 2 : torch.int8, 2) : 2 : torch.int8\n"
      "%neg = aten.neg.default(%mul_1 : 2 : torch.int8) : 2 : torch.int8\n"
      "%add = aten.add.Tensor(%neg : 2 : torch.int8, %model_mul_weight_2 : 2 : "
      "torch.int8) : 2 : torch.int8\n"
      "output %add, %mul\n";
  const Dump dump = Read(text);
  EXPECT_EQ(Print(dump), text);
  EXPECT_TRUE(dump.graphs[0].incomplete());
  ASSERT_EQ(dump.diagnostics.Count(Level::kError), 1U);
  const Diagnostic& told = dump.diagnostics.kept()[0];
  EXPECT_THAT(told.what, HasSubstr("'%mul_1' is used and defined nowhere"));
  EXPECT_EQ(told.line, 3U);
  EXPECT_EQ(told.column, 25U);
}

TEST(Graph, BadLinesAreToldAndKept) {
  const std::string text =
      "%a : 2 : torch.int8\n"
      "%x = aten.view.default(%a : 2 : torch.int8, [-1, 8]\n"
      "\n"
      "output %a";
  const Dump dump = Read(text);
  EXPECT_TRUE(dump.graphs[0].incomplete());
  EXPECT_EQ(Print(dump), text);
  ASSERT_EQ(dump.diagnostics.Count(Level::kError), 1U);
  EXPECT_EQ(Format(dump.diagnostics, "d.txt"),
            "d.txt:2:52: error: expected ')' at the end of the operand list\n"
            "  %x = aten.view.default(%a : 2 : torch.int8, [-1, 8]\n"
            "                                                     ^\n"
            "  note: the operand list opened at column 23\n");
}

// Cut at every byte: never a crash, and what is accepted prints back.
TEST(Graph, TruncationAnywhere) {
  const size_t whole = kSmall.find("output %item") + 12;
  for (size_t size = 0; size < kSmall.size(); ++size) {
    const std::string text(kSmall.substr(0, size));
    const auto dump = ParseDump("test", text);
    if (dump) {
      EXPECT_EQ(Print(*dump), text);
      EXPECT_EQ(dump->diagnostics.empty(), size == whole || size >= whole + 7)
          << size;
    } else {
      EXPECT_FALSE(dump.error().what.empty());
    }
  }
}

// Random edits of a valid dump: what is read prints back, users agree.
TEST(Graph, MutatedTextPrintsBack) {
  std::mt19937 random(7);
  const std::string_view bytes = "%,()[]{}: x\n'\"<>=s8#\r";
  for (int round = 0; round < 3000; ++round) {
    std::string text(kSmall);
    for (int edits = 0; edits < 1 + round % 4; ++edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 5);
      } else {
        text.insert(at, 1, bytes[random() % bytes.size()]);
      }
    }
    const auto dump = ParseDump("test", text);
    if (!dump) continue;
    ASSERT_EQ(Print(*dump), text);
    for (const Graph& graph : dump->graphs) {
      for (const Violation& violation : Verify(graph))
        ASSERT_THAT(violation.what, ::testing::Not(HasSubstr("list of users")));
    }
  }
}

// The order that is kept along with changes is that of a walk, also when all
// new nodes come at one place.
TEST(Graph, OrderOfTwoNodesAtAnyTime) {
  Dump dump = Read(kSmall);
  Graph& graph = dump.graphs[0];
  std::mt19937 random(11);
  const auto in_order = [&] {
    std::vector<NodeId> out;
    for (const NodeId id : graph.nodes()) out.push_back(id);
    return out;
  };
  for (int round = 0; round < 400; ++round) {
    const std::vector<NodeId> nodes = in_order();
    const NodeId place =
        round % 2 == 0 ? nodes[3] : nodes[random() % nodes.size()];
    if (round % 5 == 4) {
      graph.MoveBefore(nodes[random() % nodes.size()], place);
    } else {
      ASSERT_TRUE(graph.Insert(place, "%n" + std::to_string(round) +
                                          " = a.b(%x : 4x8 : torch.float32) "
                                          ": 4x8 : torch.float32"));
    }
    const std::vector<NodeId> now = in_order();
    ASSERT_GE(now.size(), nodes.size());
    for (size_t i = 1; i < now.size(); ++i) {
      ASSERT_TRUE(graph.ComesBefore(now[i - 1], now[i])) << round;
      ASSERT_FALSE(graph.ComesBefore(now[i], now[i - 1])) << round;
    }
  }
}

TEST(Graph, NormalizedTextForgetsNamesAndAddresses) {
  std::string other(kSmall);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"split", "split_77"},
        {"lin,", "linear_3,"},
        {"lin]", "linear_3]"},
        {"%lin ", "%linear_3 "}}) {
    for (size_t at = other.find(from); at != std::string::npos;
         at = other.find(from, at + to.size())) {
      if (from == "split" && other[at - 1] == '.') continue;
      other.replace(at, from.size(), to);
    }
  }
  ASSERT_NE(other, kSmall);
  const Dump first = Read(kSmall);
  const Dump second = Read(other);
  std::string a;
  std::string b;
  AppendNormalized(a, first.graphs[0]);
  AppendNormalized(b, second.graphs[0]);
  EXPECT_EQ(a, b);
  EXPECT_THAT(a, HasSubstr("%v2 = aten.cat.default([v1, v0, v1], -1)"));
}

TEST(Dump, SectionsAndTheDefaultOne) {
  const std::string ruler(80, '=');
  const auto section = [&](const std::string& name, const std::string& body) {
    return ruler + "\n# GraphModule: " + name + "\n" + ruler + "\n\n" + body;
  };
  const std::string op = "%y = a.b(%x : 1 : int) : 1 : int\n";
  const std::string text =
      "# Transform: t\n# Stage: s\n# GraphModules found: 3\n\n\n" +
      section("one", "%x : 1 : int\noutput %x\n\n") +
      section("two", "%x : 1 : int\n" + op + "output %y\n\n");
  const Dump dump = Read(text);
  EXPECT_EQ(Print(dump), text);
  ASSERT_EQ(dump.graphs.size(), 2U);
  EXPECT_EQ(DefaultGraph(dump)->name(), "two");
  ASSERT_EQ(dump.diagnostics.kept().size(), 1U);
  EXPECT_THAT(dump.diagnostics.kept()[0].what,
              HasSubstr("truncated: the header promises 3"));
  EXPECT_FALSE(ChooseGraph(dump, "three").has_value());
  EXPECT_EQ((*ChooseGraph(dump, "one"))->name(), "one");
}

TEST(Dump, GarbageIsRefused) {
  EXPECT_FALSE(ParseDump("test", "").has_value());
  EXPECT_FALSE(ParseDump("test", std::string(1000, '\0')).has_value());
  EXPECT_FALSE(ParseDump("test", "{\"traceEvents\": []}").has_value());
}

TEST(Folder, NamesSplitAtTheLongestStage) {
  DumpFile file;
  ASSERT_TRUE(ParseDumpName("a/b/1000_post_load_fusion_fuse_moe.txt.gz", file));
  EXPECT_EQ(file.number, 1000);
  EXPECT_EQ(file.stage, "post_load_fusion");
  EXPECT_EQ(file.transform, "fuse_moe");
  EXPECT_EQ(file.stem, "1000_post_load_fusion_fuse_moe");
  ASSERT_TRUE(ParseDumpName("001_export_onnx_run.txt", file));
  EXPECT_EQ(file.stage, "export_onnx");
  ASSERT_TRUE(ParseDumpName("001_export_export_to_gm.txt", file));
  EXPECT_EQ(file.stage, "export");
  EXPECT_EQ(file.transform, "export_to_gm");
  Header header;
  header.stage = "export";
  header.transform = "other";
  EXPECT_THAT(NameConflict(file, header), HasSubstr("header says"));
  EXPECT_FALSE(ParseDumpName("transform.log", file));
  EXPECT_FALSE(ParseDumpName("notes.txt", file));
}

}  // namespace

namespace {

ParsedLine Parse(std::string_view line) {
  ParsedLine out;
  LineError error;
  EXPECT_TRUE(ParseLine(line, out, error)) << line << ": " << error.what;
  return out;
}

LineError Wrong(std::string_view line) {
  ParsedLine out;
  LineError error;
  EXPECT_FALSE(ParseLine(line, out, error)) << line;
  return error;
}

// "value name[annotation]", "literal text", containers with their entries.
std::string Shape(const ParsedLine& line) {
  std::string out;
  for (const ParsedOperand& operand : line.operands) {
    if (!out.empty()) out += " | ";
    if (operand.kind == OperandKind::kValue) {
      out += "%" + std::string(operand.name);
      if (!operand.annotation.empty())
        out += "<" + std::string(operand.annotation) + ">";
    } else {
      out += operand.text;
      if (operand.extent > 0) out += "{" + std::to_string(operand.extent) + "}";
    }
  }
  return out;
}

TEST(LineParser, Placeholder) {
  const ParsedLine line = Parse("%mask : s0x3x2*s1x(s2//14) : torch.bool");
  EXPECT_EQ(line.kind, NodeKind::kPlaceholder);
  EXPECT_EQ(line.name, "mask");
  EXPECT_EQ(line.result, "s0x3x2*s1x(s2//14) : torch.bool");
}

TEST(LineParser, NamesInListsAreReferences) {
  const ParsedLine line =
      Parse("%a = aten.cat.default([neg, slice_1, None], -1) : 4 : torch.int8");
  EXPECT_EQ(line.target, "aten.cat.default");
  EXPECT_EQ(Shape(line),
            "[neg, slice_1, None]{3} | %neg | %slice_1 | None | -1");
}

TEST(LineParser, WordsThatAreNoReferences) {
  const ParsedLine line = Parse(
      "%a = f.g((slice(None, x, 2), Ellipsis, torch.float16, 'name', "
      "device(type='cuda', index=0), {'k': y})) : 4 : torch.int8");
  std::string names;
  for (const ParsedOperand& operand : line.operands) {
    if (operand.kind == OperandKind::kValue) names += operand.name;
  }
  EXPECT_EQ(names, "xy");
}

TEST(LineParser, TheListEndsWhereItsBracketCloses) {
  // The result holds brackets, operands hold " : ".
  const ParsedLine line = Parse(
      "%t = aten.t(%a : s0x(s2//14) : torch.bfloat16) : (s2//14)xs0 : "
      "torch.bfloat16");
  EXPECT_EQ(Shape(line), "%a<s0x(s2//14) : torch.bfloat16>");
  EXPECT_EQ(line.result, "(s2//14)xs0 : torch.bfloat16");
}

TEST(LineParser, SeveralResults) {
  const ParsedLine line = Parse(
      "%s = aten.split(%a : 4 : torch.int8, 2) : (2x3, ?) : "
      "(torch.int8, None)");
  EXPECT_EQ(line.result, "(2x3, ?) : (torch.int8, None)");
}

TEST(LineParser, FunctionTargets) {
  EXPECT_EQ(Parse("%a = <function f.<locals>.g at 0x7f>(%x : ? : int) : ? : "
                  "N/A")
                .target,
            "<function f.<locals>.g at 0x7f>");
  EXPECT_EQ(Parse("%a = <built-in function getitem>(%x : ? : tuple, 0) : 2 : "
                  "torch.int8")
                .target,
            "<built-in function getitem>");
  EXPECT_EQ(
      Parse("%a = layers.0.mlp(%x : 2 : torch.int8) : 2 : torch.int8").target,
      "layers.0.mlp");
}

TEST(LineParser, StringsWithoutQuotes) {
  const ParsedLine plain =
      Parse("%a = f.g(%x : 2 : torch.int8, NCCL, bsnd) : 2 : torch.int8");
  EXPECT_FALSE(plain.ambiguous);
  EXPECT_EQ(Shape(plain), "%x<2 : torch.int8> | NCCL | bsnd");
  const ParsedLine odd =
      Parse("%a = f.g(%x : 2 : torch.int8, (x) : y) : 2 : torch.int8");
  EXPECT_TRUE(odd.ambiguous);
  // An unbalanced string: only one place can end the list.
  const ParsedLine open =
      Parse("%a = f.g(%x : 2 : torch.int8, a) : b) : 2 : torch.int8");
  EXPECT_TRUE(open.ambiguous);
  EXPECT_EQ(open.result, "2 : torch.int8");
  EXPECT_TRUE(
      Parse("%a = f.g(%x : 2 : torch.int8, (() : 2 : torch.int8").ambiguous);
}

TEST(LineParser, Outputs) {
  EXPECT_EQ(Shape(Parse("output %a, [b, c], None")),
            "%a | [b, c]{2} | %b | %c | None");
  EXPECT_TRUE(Parse("output(%a, %b)").call_form);
  EXPECT_EQ(Shape(Parse("output None")), "None");
  EXPECT_EQ(Parse("output").operands.size(), 0U);
}

TEST(LineParser, ErrorsNameTheirPlace) {
  EXPECT_EQ(Wrong("hello").column, 0U);
  EXPECT_EQ(Wrong("% : 2 : torch.int8").column, 1U);
  EXPECT_EQ(Wrong("%x").column, 2U);
  EXPECT_EQ(Wrong("%x : 2").column, 5U);
  const LineError open = Wrong("%x = f.g(%a : 2 : torch.int8, [1, 2");
  EXPECT_EQ(open.column, 35U);
  EXPECT_EQ(open.note, "the operand list opened at column 9");
  const LineError result = Wrong("%x = f.g(%a : 2 : torch.int8)");
  EXPECT_EQ(result.what,
            "expected ' : ' and a result after the operand list, found ''");
  EXPECT_EQ(result.column, 29U);
  EXPECT_EQ(Wrong(std::string_view("%x\0 : 2 : int", 13)).column, 2U);
}

TEST(LineParser, DepthIsLimitedAndNotOnTheStack) {
  const auto nested = [](size_t depth) {
    return "%x = f.g(" + std::string(depth, '[') + "1" +
           std::string(depth, ']') + ") : 2 : torch.int8";
  };
  EXPECT_EQ(Parse(nested(900)).operands.size(), 901U);
  EXPECT_NE(Wrong(nested(1001)).what.find("nested"), std::string::npos);
}

TEST(LineParser, ManyOperands) {
  std::string line = "%x = f.g(";
  for (int i = 0; i < 100000; ++i)
    line += "%v" + std::to_string(i) + " : 4x8 : torch.float32, ";
  line += "[";
  for (int i = 0; i < 100000; ++i) line += "w" + std::to_string(i) + ", ";
  line += "last]) : 4 : torch.float32";
  EXPECT_EQ(Parse(line).operands.size(), 200002U);
}

// Every prefix of a line is either read or refused at a place inside it.
TEST(LineParser, PrefixesNeverCrash) {
  const std::string line =
      "%a = <function f.<locals>.g at 0x7f>(%x : s0x(s2//14) : torch.int8, "
      "[(slice(None, 'a\\'b', {'k': y}), 1e-5)], NCCL, cuda:0) : (2, ?) : "
      "(torch.int8, None)";
  for (size_t size = 0; size < line.size(); ++size) {
    ParsedLine out;
    LineError error;
    if (!ParseLine(std::string_view(line).substr(0, size), out, error)) {
      EXPECT_LE(error.column, size);
      EXPECT_FALSE(error.what.empty());
    }
  }
  Parse(line);
}

}  // namespace

namespace {

using ::testing::ElementsAre;

TEST(Types, ShapesSplitBetweenDimensionsOnly) {
  EXPECT_THAT(*SplitShape("s0x3x2*s1x(s2//14)"),
              ElementsAre("s0", "3", "2*s1", "(s2//14)"));
  EXPECT_THAT(*SplitShape("s0xMax(1, u0)x3"),
              ElementsAre("s0", "Max(1, u0)", "3"));
  EXPECT_THAT(*SplitShape("s0xu0 + 2*u1x3"),
              ElementsAre("s0", "u0 + 2*u1", "3"));
  EXPECT_THAT(*SplitShape("0x128"), ElementsAre("0", "128"));
  EXPECT_TRUE(SplitShape("scalar")->empty());
  EXPECT_FALSE(SplitShape("?").has_value());
}

TEST(Types, DimensionsEvaluate) {
  const Bindings bindings = {{"s70", 128}, {"s72", 3}, {"u0", 0}};
  EXPECT_EQ(EvaluateDim("s70*s72", bindings), 384);
  EXPECT_EQ(EvaluateDim("s70 - 2*(s72 + 1)", bindings), 120);
  EXPECT_EQ(EvaluateDim("Max(1, u0)", bindings), 1);
  EXPECT_EQ(EvaluateDim("(s70//14)", bindings), 9);
  EXPECT_EQ(EvaluateDim("-7//2", bindings), -4);
  EXPECT_EQ(EvaluateDim("s1", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("s70//u0", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("9223372036854775807*s72", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("s70 +", bindings), std::nullopt);
  EXPECT_EQ(Elements("s72xs70x8", bindings), 3 * 128 * 8);
  EXPECT_EQ(Elements("scalar", bindings), 1);
}

TEST(Types, CanonicalDimensions) {
  EXPECT_EQ(CanonicalDim("s72*s70"), CanonicalDim("s70*s72"));
  EXPECT_EQ(CanonicalDim("a + b*c"), CanonicalDim("c*b + a"));
  EXPECT_NE(CanonicalDim("a - b"), CanonicalDim("b - a"));
  EXPECT_NE(CanonicalDim("(a + b)*c"), CanonicalDim("a + b*c"));
  EXPECT_NE(CanonicalDim("a//b//c"), CanonicalDim("a//(b//c)"));
  EXPECT_EQ(CanonicalDim("Max(1, u0)"), CanonicalDim("Max(u0, 1)"));
  // What cannot be read stays.
  EXPECT_EQ(CanonicalDim("a <= b"), "a <= b");
  EXPECT_EQ(CanonicalShape("s72xs70*s72x4"), "s72xs70*s72x4");
}

TEST(Types, Results) {
  EXPECT_TRUE(IsResult("4x8 : torch.float32"));
  EXPECT_TRUE(IsResult("? : N/A"));
  EXPECT_TRUE(IsResult("(u0x32, ?) : (torch.float32, None)"));
  EXPECT_TRUE(IsResult("(s2//14)x3 : torch.float32"));
  EXPECT_FALSE(IsResult("4x8"));
  EXPECT_FALSE(IsResult("4x8 : torch.float32) : 2"));
  EXPECT_FALSE(IsResult("4(x8 : torch.float32"));
  EXPECT_EQ(ResultBytes("(2x3, 4) : (torch.float32, torch.int8)", {}), 28);
  EXPECT_EQ(ResultBytes("s0 : torch.float32", {}), std::nullopt);
  EXPECT_EQ(ResultBytes("4 : unknown", {}), std::nullopt);
}

TEST(Types, Targets) {
  EXPECT_EQ(NormalizeTarget("<built-in function getitem>"), "builtin.getitem");
  EXPECT_EQ(NormalizeTarget("<built-in method narrow of type object at 0x7f>"),
            "builtin.narrow");
  EXPECT_EQ(NormalizeTarget("<function a.<locals>.b.<locals>.split at 0x7f>"),
            "fn.split");
  EXPECT_EQ(QualifiedName("<function a.<locals>.split at 0x7f>"),
            "a.<locals>.split");
  EXPECT_EQ(NormalizeTarget("aten.add.Tensor"), "aten.add.Tensor");
  EXPECT_TRUE(MatchesTarget("aten.to.dtype", "aten.to"));
  EXPECT_FALSE(MatchesTarget("aten.topk", "aten.to"));
}

}  // namespace

}  // namespace lamina::graph
