// SPDX-License-Identifier: Apache-2.0
#include "graph/draw/draw_layer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "rules/document.h"

namespace lamina::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const GroupRules> Rules() {
  const auto rules = GroupRules::Load(rules::DataSet());
  EXPECT_TRUE(rules.has_value());
  return *rules;
}

LayerNode Node(std::string id, std::string op, std::vector<std::string> inputs,
               std::string group = "attention") {
  LayerNode node;
  node.id = std::move(id);
  node.target = node.op = std::move(op);
  node.shape = "s0x4";
  node.dtype = "torch.bfloat16";
  node.group = std::move(group);
  node.inputs = std::move(inputs);
  return node;
}

TEST(Draw, TextIsEscapedBeforeLinesAreBroken) {
  LayerGraph layer;
  layer.source_file = "a \"quoted\" \\ name";
  layer.nodes.push_back(Node("a<b>\"&\xff", "f.x<BR/>", {}));
  layer.nodes[0].kernels.push_back({"k<int>", "k<int>(float)", 17300, {}, {}});
  const std::string dot = render::DotText(DrawLayer(layer, *Rules()));
  EXPECT_THAT(dot, HasSubstr("a&lt;b&gt;&quot;&amp;"));
  EXPECT_THAT(dot, HasSubstr("\"a<b>\\\"&"));
  EXPECT_THAT(dot, HasSubstr("f.x&lt;BR/&gt;"));
  EXPECT_THAT(dot, Not(HasSubstr("&lt;/FONT")));
  EXPECT_THAT(dot, Not(HasSubstr("&lt;BR/&gt;<FONT")));
  EXPECT_THAT(dot, HasSubstr("k&lt;int&gt;  17.3 us"));
  EXPECT_THAT(dot, HasSubstr("s0\u00d74 bf16"));
  EXPECT_THAT(dot, HasSubstr("a \\\"quoted\\\" \\\\ name"));
}

TEST(Draw, NormsStandWithWhatTheyFeed) {
  LayerGraph layer;
  layer.nodes = {Node("any_name", "f.rms_norm", {"x"}, "norm"),
                 Node("q", "f.linear", {"any_name"}),
                 Node("input_layernorm_like", "f.rms_norm", {"q"}, "norm"),
                 Node("up", "f.linear", {"input_layernorm_like"}, "mlp")};
  layer.externals.push_back({"x", "Layer 3 output", "4"});
  layer.externals.push_back({"y", "Layer 3 residual output", "4"});
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  std::vector<std::string> frames;
  for (const render::DotCluster& cluster : graph.clusters) {
    for (const uint32_t node : cluster.nodes)
      frames.push_back(cluster.title + ": " + graph.nodes[node].id);
  }
  EXPECT_THAT(
      frames,
      ElementsAre("Inputs: x", "Inputs: y", "Self attention: any_name",
                  "Self attention: q", "FFN: input_layernorm_like", "FFN: up"));
}

TEST(Draw, OneBoxAloneHasNoFrame) {
  LayerGraph layer;
  layer.nodes = {Node("q", "f.linear", {"x"}), Node("k", "f.linear", {"x"}),
                 Node("up", "f.linear", {"k"}, "mlp")};
  layer.nodes[0].sub_group = "q_branch";
  layer.externals.push_back({"x", "Layer 3 output", "4"});
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  ASSERT_EQ(graph.clusters.size(), 1u);
  EXPECT_EQ(graph.clusters[0].title, "Self attention");
  EXPECT_THAT(graph.clusters[0].nodes, ElementsAre(1, 0));
  EXPECT_TRUE(graph.clusters[0].clusters.empty());
}

// WCAG 2.1, relative luminance.
double Luminance(std::string_view colour) {
  const auto part = [&](size_t at) {
    const double v =
        std::stoi(std::string(colour.substr(at, 2)), nullptr, 16) / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

TEST(Draw, TextIsReadableOnEveryShade) {
  LayerGraph layer;
  layer.trace.emplace();
  layer.trace->total_ns = 100;
  // Of each shade one box, all of them twins: with ids, weights and kernels.
  for (const double share : {40.0, 15.0, 7.0, 3.0, 1.0}) {
    LayerNode node = Node(std::to_string(share), "f.linear", {"x"});
    node.weights.push_back({"model_layers_3_mlp_up_proj_weight", "4", "f"});
    node.kernels.push_back({"k", "k", share, {}, KernelFit::kSure});
    layer.nodes.push_back(std::move(node));
  }
  std::vector<std::string> fills;
  std::set<std::string> inks;
  const auto rules = Rules();
  for (const render::DotNode& node : DrawLayer(layer, *rules).nodes) {
    fills.push_back(node.fill);
    for (const render::DotLine& line : node.lines) inks.insert(line.colour);
  }
  EXPECT_GE(inks.size(), 4u);
  for (const auto& [group, colour] : rules->colours)
    fills.push_back(std::string(colour));
  for (const std::string& fill : fills) {
    for (const std::string& ink : inks) {
      EXPECT_GE((Luminance(fill) + 0.05) / (Luminance(ink) + 0.05), 4.5)
          << ink << " on " << fill;
    }
  }
}

TEST(Draw, ASecondStreamEndsWhereItMeetsTheFirst) {
  LayerGraph layer;
  layer.nodes = {Node("x", "f.linear", {"in"}),
                 Node("begin", "fn.begin_aux_stream_passthrough_9", {"x"}),
                 Node("shared", "f.mlp", {"begin"}),
                 Node("end", "fn.end_aux_stream_passthrough_4", {"shared"}),
                 Node("main", "f.moe", {"x"}),
                 Node("sum", "aten.add.Tensor", {"main", "end"}),
                 // One that nobody ends.
                 Node("begin2", "fn.begin_aux_stream_passthrough", {"sum"}),
                 Node("s2", "f.mlp", {"begin2"}), Node("m2", "f.moe", {"sum"}),
                 Node("sum2", "aten.add.Tensor", {"m2", "s2"})};
  const std::vector<bool> second = OnSecondStream(layer, *Rules());
  EXPECT_THAT(second, ElementsAre(false, true, true, true, false, false, true,
                                  true, false, false));
}

TEST(Draw, StreamsForkAndJoin) {
  LayerGraph layer;
  layer.nodes = {
      Node("x", "f.linear", {"in"}),
      Node("begin", "fn.begin_aux_stream_passthrough_9", {"x"}),
      Node("shared", "f.mlp", {"begin"}),
      Node("end", "fn.end_aux_stream_passthrough_4", {"shared"}),
      Node("main", "f.moe", {"x"}),
      Node("sum", "auto_deploy.trtllm_dist_all_reduce", {"main", "end"})};
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  std::vector<std::string> circles;
  std::vector<std::string> bars;
  for (const render::DotNode& node : graph.nodes) {
    if (node.circle) circles.push_back(node.id);
    if (!node.bar.empty()) bars.push_back(node.id);
  }
  EXPECT_THAT(circles, ElementsAre("begin", "end"));
  EXPECT_THAT(bars, ElementsAre("begin", "shared", "end"));
  std::vector<std::string> changes;
  for (const render::DotEdge& edge : graph.edges) {
    if (!edge.colour.empty()) changes.push_back(edge.from + " " + edge.to);
  }
  EXPECT_THAT(changes,
              ElementsAre("x begin", "begin shared", "shared end", "end sum"));
  EXPECT_EQ(graph.nodes[5].fill, "#f3b6c8");
  EXPECT_EQ(graph.nodes[5].pen, 2);
  EXPECT_EQ(graph.nodes[4].bar, "");
}

TEST(Draw, HiddenViewsAreBridged) {
  LayerGraph layer;
  layer.nodes = {Node("a", "f.linear", {"x"}),
                 Node("v", "aten.view.default", {"a", "size"}),
                 Node("w", "aten.view.default", {"v"}),
                 Node("b", "f.linear", {"w", "v"})};
  layer.externals = {{"x", "Layer 0 output", "4"},
                     {"size", "Shared value", "?"}};
  HideNodes(layer,
            [](std::string_view op) { return op == "aten.view.default"; });
  ASSERT_EQ(layer.nodes.size(), 2U);
  EXPECT_THAT(layer.nodes[1].inputs, ElementsAre("a"));
  ASSERT_EQ(layer.externals.size(), 1U);
}

TEST(Draw, ManyWeightsAreOneLine) {
  LayerNode node = Node("m", "f.moe", {});
  for (int i = 0; i < 256; ++i) {
    const std::string n = std::to_string(i);
    node.weights.push_back(
        {"model_layers_7_mlp_experts_" + n + "_up_proj_weight", "?", "?"});
  }
  node.weights.push_back({"model_layers_7_mlp_gate_bias", "4", "?"});
  EXPECT_THAT(WeightLabels(node, *Rules()),
              ElementsAre("experts_*_up_proj \u00d7256", "gate"));
}

TEST(Draw, WeightsByTheirUsefulEnd) {
  const auto labels = [](const std::vector<std::string>& names) {
    LayerNode node = Node("n", "f.linear", {});
    for (const std::string& name : names)
      node.weights.push_back({"model_layers_7_" + name, "?", "?"});
    return WeightLabels(node, *Rules());
  };
  EXPECT_THAT(labels({"self_attn_q_a_proj_weight",
                      "self_attn_q_a_proj_weight_scale_inv"}),
              ElementsAre("q_a_proj"));
  EXPECT_THAT(labels({"mlp_up_proj_weight", "mlp_up_proj_bias",
                      "mlp_up_proj_input_scale"}),
              ElementsAre("up_proj"));
  EXPECT_THAT(labels({"mlp_gate_e_score_correction_bias"}),
              ElementsAre("gate_e_score_correction"));
  EXPECT_THAT(labels({"mlp_shared_experts_down_proj_weight"}),
              ElementsAre("shared_experts_down_proj"));
  EXPECT_THAT(labels({"input_layernorm_weight"}),
              ElementsAre("input_layernorm"));
  // Scales without their weight, and names that are an owner's alone.
  EXPECT_THAT(labels({"mlp_up_proj_weight_scale"}),
              ElementsAre("up_proj_weight_scale"));
  EXPECT_THAT(labels({"mlp_weight"}), ElementsAre("mlp"));
}

TEST(Draw, KernelsKeepTheirUsefulEnd) {
  const std::pair<const char*, const char*> cases[] = {
      {"splitKreduce", "splitKreduce"},
      {"flashinfer::norm::RMSNormKernel", "flashinfer::norm::RMSNormKernel"},
      {"flashinfer::norm::FusedAddRMSNormKernel",
       "norm::FusedAddRMSNormKernel"},
      {"tensorrt_llm::kernels::dsv3MinLatencyKernels::"
       "router_gemm_kernel_float_output",
       "router_gemm_kernel_float_output"},
      {"nvjet_sm90_tst_64x16_64x16_4x2_h_bz_splitK_TNT",
       "nvjet_tst_64x16_64x...z_splitK_TNT"},
      {"fmhaSm100fKernel_QkvBfloat16OBfloat16HQk576HV512PagedKvDenseP64"
       "VarSeqQ16Kv128StaticSwapsAbForGen",
       "fmhaSm100fKernel_Qk...wapsAbForGen"},
  };
  for (const auto& [name, label] : cases) {
    EXPECT_EQ(KernelLabel(name), label);
    EXPECT_LE(KernelLabel(name).size(), 34u);
  }
}

}  // namespace
}  // namespace lamina::graph
