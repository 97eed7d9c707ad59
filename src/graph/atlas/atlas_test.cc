// SPDX-License-Identifier: Apache-2.0
#include "graph/atlas/atlas.h"

#include <gtest/gtest.h>

#include "graph/dump.h"
#include "graph/print.h"

namespace lamina::graph {
namespace {

std::string Linear(const std::string& name, const std::string& from,
                   const std::string& weight) {
  return "%" + name + " = auto_deploy.torch_linear_simple.default(%" + from +
         " : 4 : torch.int8, %" + weight +
         " : 4x4 : torch.int8, None) : 4 : torch.int8\n";
}

// Layers of an up and a down projection each; the last one has a silu as well.
Dump Model(int layers) {
  std::string text = "%x : 4 : torch.int8\n";
  std::string last = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const std::string weight = "model_layers_" + n + "_mlp_";
    text += Linear("up" + n, last, weight + "up_proj_weight");
    last = "up" + n;
    if (i + 1 == layers) {
      text += "%silu = aten.silu.default(%" + last +
              " : 4 : torch.int8) : 4 : torch.int8\n";
      last = "silu";
    }
    text += Linear("down" + n, last, weight + "down_proj_weight");
    last = "down" + n;
  }
  auto dump = ParseDump(
      "t", HeaderText({}) + SectionHead("g") + text + "output %" + last + "\n");
  EXPECT_TRUE(dump);
  EXPECT_EQ(dump->diagnostics.Count(Level::kError), 0U) << text;
  return std::move(*dump);
}

struct Made {
  std::shared_ptr<const GroupRules> rules = *GroupRules::Load(rules::DataSet());
  std::shared_ptr<const LaunchTable> launches =
      *LaunchTable::Load(rules::DataSet());
  Atlas atlas{*rules, *launches};

  ResultSet Tables() { return std::move(atlas).Tables(); }
};

// Values of a column, one after the other.
std::vector<int64_t> Ints(const ResultSet& result, std::string_view table,
                          std::string_view column) {
  const Table& found = *result.Find(table);
  std::vector<int64_t> out;
  for (size_t row = 0; row < found.rows(); ++row)
    out.push_back(found.At(row, column).integer());
  return out;
}

using Numbers = std::vector<int64_t>;

TEST(Atlas, KeepsAlikeLayersOnce) {
  Made made;
  const Dump dump = Model(4);
  made.atlas.Add({"a.txt", "export", "x"}, dump.graphs[0]);
  const ResultSet result = made.Tables();
  // The first layer reads the input of the model, the last has a node more.
  EXPECT_EQ(Ints(result, "graph_layers", "kind"), (Numbers{0, 1, 1, 2}));
  EXPECT_EQ(Ints(result, "graph_layers", "cut"), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(Ints(result, "graph_layers", "nodes"), (Numbers{2, 2, 2, 3}));
  // Ops first, then the input of the layer.
  EXPECT_EQ(Ints(result, "graph_nodes", "kind"),
            (Numbers{0, 0, 0, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(Ints(result, "graph_nodes", "carried"),
            (Numbers{0, 0, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(Ints(result, "graph_edges", "from"),
            (Numbers{2, 0, 2, 0, 3, 0, 1}));
  EXPECT_EQ(Ints(result, "graph_edges", "to"), (Numbers{0, 1, 0, 1, 0, 1, 2}));
  EXPECT_EQ(result.Find("graph_names")->At(3, "node").text(), "up1");
  EXPECT_EQ(result.Find("graph_names")->At(3, "weights").text(),
            "model_layers_1_mlp_up_proj_weight 4x4 torch.int8");
  EXPECT_EQ(result.Find("graph_names")->At(5, "label").text(),
            "Layer 0 output");
}

TEST(Atlas, KeepsUnchangedLayersOfOtherFilesOnce) {
  Made made;
  const Dump dump = Model(3);
  made.atlas.Add({"a.txt", "export", "x"}, dump.graphs[0]);
  made.atlas.Add({"b.txt", "compile", "y"}, dump.graphs[0]);
  const ResultSet result = made.Tables();
  EXPECT_EQ(Ints(result, "graph_layers", "file"), (Numbers{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(Ints(result, "graph_layers", "cut"), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(result.Find("graph_names")->rows(), 3U + 3U + 4U);
}

TEST(Atlas, TellsLayersWithTimesApart) {
  Made made;
  const Dump dump = Model(2);
  double ns = 1000;
  const auto decorate = [&](LayerGraph& layer) {
    layer.nodes[0].kernels.push_back(
        {"gemm", "gemm<1>", ns, 2000, KernelFit::kSure});
  };
  made.atlas.Add({"a.txt", "", ""}, dump.graphs[0], decorate);
  ns = 1500.5;
  made.atlas.Add({"a.txt", "", ""}, dump.graphs[0], decorate);
  const ResultSet result = made.Tables();
  EXPECT_EQ(Ints(result, "graph_layers", "kind"), (Numbers{0, 1, 0, 1}));
  EXPECT_EQ(Ints(result, "graph_layers", "cut"), (Numbers{0, 1, 2, 3}));
  const Table& kernels = *result.Find("graph_node_kernels");
  ASSERT_EQ(kernels.rows(), 4U);
  EXPECT_EQ(kernels.At(2, "median_ns").real(), 1500.5);
  EXPECT_EQ(kernels.At(2, "node").text(), "up0");
}

// The page says them beside the picture, as pictures have a box for them.
TEST(Atlas, KernelsOnNoNodeAreToldByLayer) {
  Made made;
  const Dump dump = Model(2);
  made.atlas.Add({"a.txt", "", ""}, dump.graphs[0], [](LayerGraph& layer) {
    layer.trace.emplace();
    layer.trace->total_ns = 1000;
    if (layer.index == 0) return;
    layer.off_nodes.resize(2, {"mem\nset", "", 2000, {}, KernelFit::kNone});
  });
  const ResultSet result = made.Tables();
  const Table& layers = *result.Find("graph_layers");
  EXPECT_EQ(layers.At(0, "off_nodes").text(), "");
  EXPECT_EQ(layers.At(1, "off_nodes").text(),
            "not on any node: 2 kernels, 4.00 us\nmem set  2.00 us\nmem set  "
            "2.00 us");
}

// What stands in front of and behind the layers has a graph too.
TEST(Atlas, HoldsWhatIsNoLayer) {
  Made made;
  const auto dump = ParseDump(
      "t", HeaderText({}) + SectionHead("g") +
               "%x : 4 : torch.int8\n"
               "%a = aten.silu.default(%x : 4 : torch.int8) : 4 : torch.int8\n"
               "output %a\n");
  ASSERT_TRUE(dump);
  made.atlas.Add({"a.txt", "", ""}, dump->graphs[0]);
  const ResultSet result = made.Tables();
  ASSERT_EQ(result.Find("graph_layers")->rows(), 1U);
  EXPECT_EQ(result.Find("graph_layers")->At(0, "layer").text(), "shared");
  EXPECT_EQ(result.Find("graph_names")->At(1, "label").text(), "Model input");
  EXPECT_EQ(Ints(result, "graph_edges", "from"), (Numbers{1}));
}

}  // namespace
}  // namespace lamina::graph
