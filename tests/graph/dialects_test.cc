// SPDX-License-Identifier: Apache-2.0
//
// Dumps of other compilers behind the reader: what layers, ranks and names
// come from depends on what the reader kept.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/opened.h"
#include "graph/dialects/read.h"
#include "graph/layers/groups.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/layers.h"
#include "graph/layers/rules.h"

namespace lamina::graph {
namespace {

namespace fs = std::filesystem;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  EXPECT_THAT(Ranks(dump.graphs[0]), ElementsAre(8, 4, 0));
}

std::vector<std::string> Weights(const Graph& graph) {
  std::vector<std::string> out;
  for (const NodeId id : graph.Weights()) out.emplace_back(graph[id].name);
  return out;
}

// Messages of TORCH_LOGS as they stand in a log.
std::string Message(std::string_view artifact, std::string_view title,
                    std::string text) {
  std::string out;
  text = "TRACED GRAPH\n ===== " + std::string(title) + " =====\n" + text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out += "V1206 15:18:01.925000 1500233 torch/x.py:1288] [0/0] [__" +
           std::string(artifact) + "] " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// A graph inside of another has inputs of its own, which come later in the text
// and are called as those of AOT are.
TEST(Dialects, InputsOfAnInnerGraphAreNotThoseOfTheCompilation) {
  const std::string dynamo = R"(class GraphModule(torch.nn.Module):
    def forward(self, L_self_modules_fc_parameters_weight_: "bf16[64, 64]", L_x_: "bf16[8, 64]"):
        l_self_modules_fc_parameters_weight_ = L_self_modules_fc_parameters_weight_
        l_x_ = L_x_
        wrap_body_0 = self.wrap_body_0
        linear: "bf16[8, 64]" = torch._C._nn.linear(l_x_, l_self_modules_fc_parameters_weight_, None)
        wrap = torch.ops.higher_order.wrap(wrap_body_0, linear);  linear = None
        getitem: "bf16[8, 64]" = wrap[0];  wrap = None
        return (getitem,)

    class wrap_body_0(torch.nn.Module):
        def forward(self, primals_1: "bf16[64, 64]", primals_2: "bf16[8, 64]"):
            relu: "bf16[8, 64]" = torch.relu(primals_2);  primals_2 = None
            mul: "bf16[8, 64]" = torch.matmul(relu, primals_1);  relu = None
            return (mul,)
)";
  const std::string aot = R"(class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "bf16[64, 64]", primals_2: "bf16[8, 64]"):
        t: "bf16[64, 64]" = torch.ops.aten.t.default(primals_1);  primals_1 = None
        mm: "bf16[8, 64]" = torch.ops.aten.mm.default(primals_2, t);  primals_2 = t = None
        relu: "bf16[8, 64]" = torch.ops.aten.relu.default(mm);  mm = None
        return (relu,)

    class body(torch.nn.Module):
        def forward(self, primals_1: "bf16[64, 64]", primals_2: "bf16[8, 64]"):
            add: "bf16[8, 64]" = torch.ops.aten.matmul.default(primals_2, primals_1)
            return (add,)
)";
  const Dump dump = Read(Message("graph_code", "__compiled_fn_1", dynamo) +
                         Message("aot_graphs", "Forward graph 0", aot));
  ASSERT_EQ(dump.graphs.size(), 4u);
  EXPECT_THAT(Weights(dump.graphs[0]), Contains("fc_weight"));
  EXPECT_THAT(Weights(dump.graphs[2]), ElementsAre("fc_weight"));
  for (const size_t inner : {1, 3}) {
    EXPECT_THAT(dump.graphs[inner].name(), ::testing::HasSubstr("."));
    EXPECT_THAT(Weights(dump.graphs[inner]), IsEmpty());
  }
}

// A folder of files as tlparse writes them, gone with the test.
class Folder {
 public:
  Folder() : path_(fs::path(::testing::TempDir()) / "dialects_test_folder") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

TEST(Dialects, OtherFilesAreReadOnlyForInputsThatTheyMayName) {
  const Folder folder;
  const std::string dynamo = folder.Write("dynamo_output_graph_1.txt",
                                          R"(class GraphModule(torch.nn.Module):
    def forward(self, L_self_modules_fc_parameters_weight_: "bf16[64, 64]"):
        l_w_ = L_self_modules_fc_parameters_weight_
        relu: "bf16[64, 64]" = torch.relu(l_w_)
        return (relu,)
)");
  const auto backward = [](const std::string& input) {
    return "class GraphModule(torch.nn.Module):\n    def forward(self, " +
           input +
           ": \"bf16[64, 64]\", tangents_1: \"bf16[64, 64]\"):\n"
           "        mul: \"bf16[64, 64]\" = torch.ops.aten.mul.Tensor("
           "tangents_1, " +
           input + ")\n        return (mul,)\n";
  };
  const auto none =
      ReadDump(folder.Write("aot_backward_graph_2.txt", backward("sigmoid")));
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(IsInput(dynamo));
  const auto named =
      ReadDump(folder.Write("aot_backward_graph_3.txt", backward("primals_1")));
  ASSERT_TRUE(named.has_value());
  EXPECT_TRUE(IsInput(dynamo));
  EXPECT_THAT(Weights(named->graphs[0]), ElementsAre("fc_weight"));
}

}  // namespace
}  // namespace lamina::graph
