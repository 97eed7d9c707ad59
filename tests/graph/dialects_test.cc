// SPDX-License-Identifier: Apache-2.0
//
// Dumps of other compilers behind the reader: what layers, ranks and names
// come from depends on what the reader kept.
#include "graph/dialects/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/layers/groups.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/layers.h"
#include "graph/layers/rules.h"

namespace lamina::graph {
namespace {

std::shared_ptr<const GroupRules> Rules() {
  static const auto rules = GroupRules::Load(rules::DataSet());
  EXPECT_TRUE(rules.has_value()) << rules.error().ToString();
  return *rules;
}

Dump Read(const std::string& text) {
  auto dump = ParseAnyDump("test", text);
  EXPECT_TRUE(dump.has_value()) << dump.error().ToString();
  return std::move(*dump);
}

// Ranks of the collectives of a graph in its order.
std::vector<int64_t> Ranks(const Graph& graph) {
  const Layers layers = FindLayers(graph, *Rules());
  const auto groups = GroupNodes(graph, layers, *Rules());
  const LayerGraph layer =
      CutLayer(graph, layers, kShared, groups, *Rules(), false);
  std::vector<int64_t> out;
  for (const LayerNode& node : layer.nodes) {
    if (node.op.starts_with("dist.")) out.push_back(node.ranks);
  }
  return out;
}

// The op of several compilers has one name, their operands have not one order.
TEST(Dialects, RanksOfCollectivesAreReadByTheirOwnOp) {
  const Dump dump = Read(R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "bf16[16, 64]"):
        gather: "bf16[128, 64]" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 8, '0')
        wait: "bf16[128, 64]" = torch.ops._c10d_functional.wait_tensor.default(gather);  gather = None
        scatter: "bf16[32, 64]" = torch.ops._c10d_functional.reduce_scatter_tensor.default(wait, 'sum', 4, '0');  wait = None
        reduce: "bf16[32, 64]" = torch.ops._c10d_functional.all_reduce.default(scatter, 'sum', '0');  scatter = None
        return (reduce,)
)");
  EXPECT_THAT(Ranks(dump.graphs[0]), ::testing::ElementsAre(8, 4, 0));
}

}  // namespace
}  // namespace lamina::graph
