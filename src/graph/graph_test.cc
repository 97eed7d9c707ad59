// SPDX-License-Identifier: Apache-2.0
//
// Graphs and dumps: what they know, and that damaged text is kept.
#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "graph/dump.h"
#include "graph/folder.h"
#include "graph/print.h"
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
}  // namespace lamina::graph
