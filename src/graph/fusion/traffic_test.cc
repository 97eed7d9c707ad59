// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/traffic.h"

#include <gtest/gtest.h>

#include "graph/dump.h"
#include "graph/print.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;

graph::Dump Parse(const std::string& lines) {
  auto dump = graph::ParseDump(
      "t", graph::HeaderText({}) + graph::SectionHead("g") + lines);
  EXPECT_TRUE(dump);
  return std::move(*dump);
}

const OpTable& Ops() {
  static const auto ops = *OpTable::Load(rules::DataSet());
  return *ops;
}

std::vector<NodeId> OpsOf(const Graph& graph) {
  std::vector<NodeId> out;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind == graph::NodeKind::kOp) out.push_back(id);
  }
  return out;
}

// 1,000 rows of 64 floats; 10 are asked for.
constexpr char kEmbedding[] =
    "%w : 1000x64 : torch.float32\n%ids : 2x5 : torch.int64\n"
    "%e = aten.embedding.default(%w : 1000x64 : torch.float32, %ids : 2x5 : "
    "torch.int64) : 2x5x64 : torch.float32\noutput %e\n";

TEST(Traffic, ALookupReadsOnlyTheRowsOfItsResult) {
  const graph::Dump dump = Parse(kEmbedding);
  const Graph& graph = dump.graphs[0];
  const Traffic traffic = Separate(graph, Ops(), OpsOf(graph), {});
  EXPECT_EQ(traffic.read_bytes, 10 * 64 * 4 + 10 * 8);
  EXPECT_EQ(traffic.written_bytes, 10 * 64 * 4);
  EXPECT_EQ(traffic.unknown, 0u);
}

TEST(Traffic, ALookupReadsTheRowsThatAnotherInputNames) {
  const std::string q = "2x5x4x8 : torch.bfloat16";
  const graph::Dump dump =
      Parse("%q : " + q + "\n%k : " + q +
            "\n%pos : 10 : torch.int64\n%table : 1000x8 : torch.float32\n"
            "%r = auto_deploy.flashinfer_rope.default(%q : " +
            q + ", %k : " + q +
            ", %pos : 10 : torch.int64, %table : 1000x8 : torch.float32, "
            "True) : (2x5x4x8, 2x5x4x8) : (torch.bfloat16, torch.bfloat16)\n"
            "output %r\n");
  const Graph& graph = dump.graphs[0];
  const NodeId rope = graph.Find("r");
  EXPECT_EQ(BytesRead(graph, Ops(), rope, graph.Find("table"), {}), 10 * 8 * 4);
  EXPECT_EQ(BytesRead(graph, Ops(), rope, graph.Find("q"), {}), 320 * 2);
}

// Two kernels that read half of a value each save nothing by reading it in one:
// two that read all of it save one of the two readings.
TEST(Traffic, ReadsThroughViewsCountWhatTheyRead) {
  const std::string half = "512 : torch.float32";
  const std::string views =
      "%x : 1024 : torch.float32\n"
      "%a = aten.narrow.default(%x : 1024 : torch.float32, 0, 0, 512) : " +
      half +
      "\n%b = aten.narrow.default(%x : 1024 : torch.float32, 0, 512, 512) : " +
      half + "\n";
  const graph::Dump parts =
      Parse(views + "%s = aten.silu.default(%a : " + half + ") : " + half +
            "\n%t = aten.silu.default(%b : " + half + ") : " + half +
            "\noutput %s, %t\n");
  const Saving none =
      SavingOf(parts.graphs[0], Ops(), OpsOf(parts.graphs[0]), {});
  EXPECT_EQ(none.bytes, 0);
  EXPECT_EQ(none.remaining_bytes, 4 * 512 * 4);
  const graph::Dump whole = Parse(
      "%x : 1024 : torch.float32\n"
      "%s = aten.silu.default(%x : 1024 : torch.float32) : 1024 : "
      "torch.float32\n"
      "%t = aten.relu.default(%x : 1024 : torch.float32) : 1024 : "
      "torch.float32\noutput %s, %t\n");
  const Saving once =
      SavingOf(whole.graphs[0], Ops(), OpsOf(whole.graphs[0]), {});
  EXPECT_EQ(once.bytes, 1024 * 4);
  EXPECT_EQ(once.remaining_bytes, 3 * 1024 * 4);
}

TEST(Traffic, ValuesLargerThanAnyMemoryAreUnknown) {
  const std::string huge = "4000000000x1000000000 : torch.bfloat16";
  std::string lines = "%x : " + huge + "\n";
  for (int i = 0; i < 8; ++i) {
    lines += "%s" + std::to_string(i) + " = aten.silu.default(%x : " + huge +
             ") : " + huge + "\n";
  }
  const graph::Dump dump = Parse(lines + "output %s7\n");
  const Traffic traffic =
      Separate(dump.graphs[0], Ops(), OpsOf(dump.graphs[0]), {});
  EXPECT_EQ(traffic.bytes(), 0);
  EXPECT_EQ(traffic.unknown, 16u);
}

TEST(OpTable, KnowsLookupsUpToADot) {
  const Lookup* const rope =
      Ops().FindLookup("auto_deploy.flashinfer_rope.default");
  ASSERT_NE(rope, nullptr);
  EXPECT_EQ(rope->table, 3u);
  EXPECT_EQ(rope->rows, 2u);
  EXPECT_EQ(Ops().FindLookup("aten.index_add.default"), nullptr);
}

}  // namespace
}  // namespace lamina::fusion
