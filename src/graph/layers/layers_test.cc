// SPDX-License-Identifier: Apache-2.0

#include "graph/layers/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "graph/dump.h"
#include "graph/layers/groups.h"
#include "graph/layers/kinds.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/names.h"
#include "graph/layers/repeats.h"
#include "graph/layers/rules.h"
#include "rules/pattern_table.h"

namespace lamina::graph {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<const GroupRules> Rules() {
  static const auto rules = GroupRules::Load(rules::DataSet());
  EXPECT_TRUE(rules.has_value()) << rules.error().ToString();
  return *rules;
}

// Lines of ops: "name = target(a, b, w)"; every name is written as a value.
Dump Read(const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops) {
    const size_t open = op.find('(');
    if (open == std::string::npos) {
      text += "%" + op + " : 2 : torch.int8\n";
      continue;
    }
    text += "%" + op.substr(0, open + 1);
    std::string rest = op.substr(open + 1, op.size() - open - 2);
    for (size_t at = 0; at < rest.size();) {
      const size_t end = std::min(rest.find(", ", at), rest.size());
      text += (at > 0 ? ", %" : "%") + rest.substr(at, end - at) +
              " : 2 : torch.int8";
      at = end + 2;
    }
    text += ") : 2 : torch.int8\n";
  }
  auto dump = ParseDump("test", text + "output None\n");
  EXPECT_TRUE(dump.has_value()) << dump.error().ToString();
  EXPECT_EQ(dump->diagnostics.Count(Level::kError), 0U) << text;
  return std::move(*dump);
}

struct Found {
  explicit Found(const std::vector<std::string>& ops)
      : dump(Read(ops)),
        graph(dump.graphs[0]),
        layers(FindLayers(graph, *Rules())) {}

  std::string Of(std::string_view name) const {
    return layers.NameOf(layers.PlaceOf(graph.Find(name)));
  }

  Dump dump;
  const Graph& graph;
  Layers layers;
};

TEST(LayerNames, WholeWordsWithANumber) {
  const auto name = ParseLayerName("model_layers_5_mlp_experts_3_weight");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->stack, "model");
  EXPECT_EQ(name->index, 5U);
  EXPECT_EQ(name->rest, "mlp_experts_3_weight");
  EXPECT_EQ(ParseLayerName("transformer.h.12.ln_1.bias")->index, 12U);
  EXPECT_EQ(ParseLayerName("layers_0_x")->stack, "");
  // Counters of passes, caches and nodes.
  for (const char* other :
       {"fused_moe_w3_w1_stacked_7", "kv_cache_3", "fused_weight_12",
        "players_3_x", "layers_3", "layers_x_3_y", "layers_99999999999_x", ""})
    EXPECT_FALSE(ParseLayerName(other).has_value()) << other;
}

TEST(Layers, DataFlowsIntoTheLastLayer) {
  const Found f({"x", "emb = aten.embedding(x, embed_weight)",
                 "a = f.linear(emb, model_layers_0_w_weight)", "b = f.silu(a)",
                 "c = f.linear(b, model_layers_1_w_weight)", "d = f.silu(c)",
                 "n = f.norm(d, model_norm_weight)", "l = f.cast(n)"});
  EXPECT_EQ(f.Of("emb"), "shared");
  EXPECT_EQ(f.Of("b"), "0");
  EXPECT_EQ(f.Of("d"), "1");
  EXPECT_EQ(f.Of("n"), "epilogue");
  EXPECT_EQ(f.Of("l"), "epilogue");
}

TEST(Layers, WhatOneLayerUsesIsItsOwn) {
  const Found f({"x", "one = f.view(x)", "two = f.view(x)",
                 "a = f.linear(one, two, model_layers_0_w_weight)",
                 "b = f.linear(a, two, model_layers_1_w_weight)",
                 "c = f.norm(b, lm_head_weight)"});
  EXPECT_EQ(f.Of("one"), "0");
  EXPECT_EQ(f.Of("two"), "shared");
  EXPECT_EQ(f.layers.absorbed, 1U);
}

TEST(Layers, TheInsideOfANormGoesToItsWeight) {
  const Found f(
      {"x", "a = f.linear(x, model_layers_0_w_weight)",
       "e = f.linear(a, model_layers_0_v_weight)",
       "res = aten.add.Tensor(a, e)", "p = f.pow(res)", "q = f.rsqrt(p)",
       "m = f.mul(res, q)", "w = f.mul(m, model_layers_1_norm_weight)",
       "b = f.linear(w, model_layers_1_w_weight)",
       "r2 = aten.add.Tensor(res, b)", "z = f.norm(r2, model_norm_weight)"});
  EXPECT_EQ(f.Of("res"), "0");
  EXPECT_EQ(f.Of("p"), "1");
  EXPECT_EQ(f.Of("q"), "1");
  EXPECT_EQ(f.Of("m"), "1");
  EXPECT_EQ(f.layers.norm_nodes_moved, 3U);
}

TEST(Layers, ACollectiveEndsItsLayer) {
  const Found f({"x", "a = f.linear(x, model_layers_0_w_weight)",
                 "e = f.linear(x, model_layers_0_v_weight)",
                 "sum = aten.add.Tensor(a, e)", "r = dist.all_reduce(sum)",
                 "n = f.fused_add_rms_norm(r, x, model_layers_1_norm_weight)",
                 "z = f.norm(n, model_norm_weight)"});
  EXPECT_EQ(f.Of("r"), "0");
  ASSERT_EQ(f.layers.boundaries.size(), 1U);
  EXPECT_EQ(f.layers.NameOf(f.layers.boundaries[0].from), "0");
  EXPECT_EQ(f.layers.NameOf(f.layers.boundaries[0].to), "1");
}

TEST(Layers, AWeightWithoutAKnownNameCloses) {
  const Found f({"x", "a = f.linear(x, blocks_0_w_weight, scale_0)",
                 "b = f.linear(a, blocks_1_w_weight, scale_1)",
                 "n = f.norm(b, last_gain)", "l = f.mul(n, table)"});
  EXPECT_EQ(f.Of("b"), "1");
  EXPECT_EQ(f.Of("n"), "epilogue");
}

TEST(Layers, StacksAreApart) {
  const Found f({"x", "a = f.linear(x, vision_layers_0_w_weight)",
                 "b = f.linear(a, vision_layers_1_w_weight)",
                 "c = f.linear(b, text_layers_0_w_weight)",
                 "d = f.linear(c, text_layers_1_w_weight)",
                 "e = f.linear(d, text_layers_2_w_weight)"});
  EXPECT_EQ(f.Of("b"), "vision:1");
  EXPECT_EQ(f.Of("c"), "0");
  ASSERT_EQ(f.layers.stacks.size(), 2U);
  EXPECT_EQ(f.layers.main_stack, 1);
}

TEST(Layers, NoneIsNoError) {
  const Found f({"x", "a = f.linear(x, weight)"});
  EXPECT_THAT(f.layers.layers, IsEmpty());
  EXPECT_EQ(f.layers.shared.size(), 1U);
}

TEST(Kinds, TheOddOneIsTold) {
  std::vector<std::string> ops = {"x"};
  std::string last = "x";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    ops.push_back("a" + n + " = f.linear(" + last + ", h_" + n + "_w_weight)");
    last = "b" + n;
    ops.push_back(last + (i == 7 ? " = f.gelu(a" : " = f.silu(a") + n + ")");
  }
  const Found f(ops);
  const auto groups = GroupNodes(f.graph, f.layers, *Rules());
  const Kinds kinds = FindKinds(f.graph, f.layers, groups);
  ASSERT_EQ(kinds.kinds.size(), 2U);
  EXPECT_EQ(kinds.kinds[0].note, "");
  EXPECT_EQ(kinds.kinds[1].note, "odd");
  EXPECT_EQ(kinds.kinds[1].difference, "+1 f.gelu, -1 f.silu");
  EXPECT_EQ(RangesOf({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

TEST(LayerGraph, HasBothEndsOfEveryEdge) {
  const Found f({"x", "kv_cache_0", "table = f.cos(x)",
                 "a = f.linear(x, table, h_0_w_weight, rope_buffer)",
                 "b = f.attn(a, kv_cache_0, h_0_v_weight)",
                 "c = f.linear(b, table, h_1_w_weight, rope_buffer)"});
  const auto groups = GroupNodes(f.graph, f.layers, *Rules());
  const LayerGraph layer =
      CutLayer(f.graph, f.layers, 0, groups, *Rules(), false);
  ASSERT_EQ(layer.nodes.size(), 2U);
  EXPECT_THAT(layer.nodes[0].inputs, ElementsAre("x", "table", "rope_buffer"));
  ASSERT_EQ(layer.nodes[0].weights.size(), 1U);
  std::vector<std::string> labels;
  for (const ExternalInput& input : layer.externals)
    labels.push_back(input.id + ": " + input.label);
  EXPECT_THAT(labels,
              ElementsAre("x: Model input", "table: Shared value",
                          "rope_buffer: RoPE cache", "kv_cache_0: KV cache"));
}

TEST(LayerGraph, RanksAreANumberThatMayBe) {
  for (const auto& [operand, ranks] : {std::pair{"8", 8},
                                       {"0", 0},
                                       {"-8", 0},
                                       {"1048576", 1 << 20},
                                       {"1048577", 0},
                                       {"9223372036854775807", 0},
                                       {"s0", 0}}) {
    const auto dump =
        ParseDump("test",
                  "%x : 16x4 : torch.bfloat16\n%r = "
                  "_c10d_functional.reduce_scatter_tensor.default(%x : 16x4 : "
                  "torch.bfloat16, 'sum', " +
                      std::string(operand) +
                      ", '0') : 2x4 : torch.bfloat16\noutput None\n");
    ASSERT_TRUE(dump.has_value());
    const Graph& graph = dump->graphs[0];
    const Layers layers = FindLayers(graph, *Rules());
    const LayerGraph layer =
        CutLayer(graph, layers, layers.PlaceOf(graph.Find("r")),
                 GroupNodes(graph, layers, *Rules()), *Rules(), false);
    int64_t found = -1;
    for (const LayerNode& node : layer.nodes) {
      if (node.id == "r") found = node.ranks;
    }
    EXPECT_EQ(found, ranks) << operand;
  }
}

TEST(Data, ExamplesOfGroupRulesHold) {
  const auto rules = Rules();
  for (const auto& [name, table] : rules->Tables()) {
    for (const std::string& violation : rules::CheckExamples(*table))
      ADD_FAILURE() << name << ": " << violation;
  }
  EXPECT_EQ(rules->LabelOf("auto_deploy.torch_linear_simple.default"),
            "Linear");
  EXPECT_EQ(rules->LabelOf("torch.ops.aten.neg.default"), "neg");
  EXPECT_EQ(rules->ColourOf("norm"), "#d9ead3");
}

}  // namespace

namespace {

// `front` ops, then `count` layers of `unit` ops; layer `odd` has one more.
std::vector<uint32_t> Model(size_t front, size_t unit, size_t count, size_t odd,
                            size_t back, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> layer;
  for (size_t i = 0; i < unit; ++i) layer.push_back(random() % 9);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < front; ++i)
    out.push_back(100 + static_cast<uint32_t>(i));
  for (size_t i = 0; i < count; ++i) {
    out.insert(out.end(), layer.begin(), layer.end());
    if (i == odd) out.push_back(50);
  }
  for (size_t i = 0; i < back; ++i)
    out.push_back(200 + static_cast<uint32_t>(i));
  return out;
}

TEST(FindRepeats, FindsLayersAndTheOddOne) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    for (const size_t odd : {size_t{99}, size_t{3}}) {
      const std::vector<uint32_t> ops = Model(4, 60, 6, odd, 3, seed);
      const std::vector<Repeat> got = FindRepeats(ops);
      ASSERT_EQ(got.size(), 6u) << seed;
      EXPECT_EQ(got[0].begin, 4u);
      for (size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(got[i].end - got[i].begin, i == odd ? 61u : 60u);
        if (i > 0) {
          EXPECT_EQ(got[i].begin, got[i - 1].end);
        }
      }
    }
  }
}

TEST(FindRepeats, NothingRepeatsInNoise) {
  std::mt19937 random(7);
  std::vector<uint32_t> ops;
  for (int i = 0; i < 500; ++i) ops.push_back(random() % 40);
  EXPECT_TRUE(FindRepeats(ops).empty());
  EXPECT_TRUE(FindRepeats({}).empty());
  EXPECT_TRUE(FindRepeats(std::vector<uint32_t>{1, 2, 1, 2, 1, 2}).empty());
}

TEST(FindRepeats, TwoAreNotEnough) {
  EXPECT_TRUE(FindRepeats(Model(4, 60, 2, 99, 3, 1)).empty());
}

}  // namespace

}  // namespace lamina::graph
