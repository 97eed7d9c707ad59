// SPDX-License-Identifier: Apache-2.0
#include "graph/draw/draw_layer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "rules/document.h"

namespace lamina::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

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
  const std::string dot =
      render::DotText(DrawLayer(layer, *Rules(), {.ids = true}));
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
  // The edge says over what it goes; the shortest way where there are two.
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  ASSERT_EQ(graph.edges.size(), 2U);
  EXPECT_EQ(graph.edges[1].from, "a");
  EXPECT_EQ(graph.edges[1].tooltip, "view");
}

TEST(Draw, EdgesSayTheShortestWayOverHiddenNodes) {
  const auto tooltip = [](size_t views, std::vector<std::string> inputs) {
    LayerGraph layer;
    layer.nodes = {Node("v0", "f.linear", {"x"})};
    for (size_t i = 0; i < views; ++i) {
      layer.nodes.push_back(
          Node("v" + std::to_string(i + 1),
               i % 2 == 0 ? "aten.view.default" : "aten.transpose.int",
               {"v" + std::to_string(i)}));
    }
    layer.nodes.push_back(Node("user", "f.linear", std::move(inputs)));
    HideNodes(layer, [](std::string_view op) {
      return op.starts_with("aten.view") || op.starts_with("aten.transpose");
    });
    EXPECT_EQ(layer.nodes.size(), 2U);
    return DrawLayer(layer, *Rules()).edges.back().tooltip;
  };
  EXPECT_EQ(tooltip(3, {"v3"}), "view, transpose, view");
  EXPECT_EQ(tooltip(3, {"v3", "v2"}), "view, transpose");
  EXPECT_EQ(tooltip(3, {"v2", "v3"}), "view, transpose");
  // A direct edge goes over nothing.
  EXPECT_EQ(tooltip(3, {"v3", "v0"}), "");
  EXPECT_EQ(tooltip(3, {"v0", "v3"}), "");
  EXPECT_EQ(tooltip(8, {"v8"}),
            "view, transpose, view, transpose, view, transpose, view, "
            "transpose");
  // What no one reads is counted: every node of a long chain keeps little.
  EXPECT_EQ(tooltip(20000, {"v20000"}),
            "view, transpose, view, transpose, view, transpose, view, "
            "transpose, and 19992 more");
}

TEST(Draw, TitlesSayWhichLayerOfHowMany) {
  LayerGraph layer;
  layer.nodes = {Node("a", "f.linear", {"x"})};
  layer.source_file = "086.txt";
  layer.section = "model";
  layer.index = 5;
  layer.of = 61;
  layer.kind = "A";
  layer.kind_layers = "3-60";
  EXPECT_EQ(DrawLayer(layer, *Rules()).title,
            "Layer 5 of 61, kind A (layers 3-60)\nmodel, 086.txt");
  layer.kind_layers = "5";
  layer.trace.emplace();
  layer.trace->total_ns = 655000;
  layer.trace->wall_ns = 612000;
  layer.trace->kernels = 31;
  layer.trace->streams = 2;
  layer.trace->replays = 20;
  EXPECT_EQ(DrawLayer(layer, *Rules()).title,
            "Layer 5 of 61, kind A (layer 5)\nmodel, 086.txt | wall 612 us, "
            "busy 655 us, 31 kernels on 2 streams | median of 20 replays");
  layer.part = "shared";
  layer.trace.reset();
  EXPECT_EQ(DrawLayer(layer, *Rules()).title, "shared\nmodel, 086.txt");
}

TEST(Draw, NamesOfNodesOnlyOnTwins) {
  LayerGraph layer;
  layer.nodes = {Node("a", "f.linear", {"x"}), Node("b", "f.linear", {"x"}),
                 Node("c", "f.silu", {"x"})};
  layer.nodes[1].weights.push_back({"model_layers_5_up_proj_weight", "4", "f"});
  const auto lines = [&](const DrawOptions& options) {
    std::string out;
    for (const render::DotNode& node :
         DrawLayer(layer, *Rules(), options).nodes) {
      for (const render::DotLine& line : node.lines) out += line.text + ",";
      out += ";";
    }
    return out;
  };
  const std::string linear = Rules()->LabelOf("f.linear");
  const std::string silu = Rules()->LabelOf("f.silu");
  const std::string shape = "s0\u00d74 bf16";
  // Weights stand in front of the shape.
  EXPECT_EQ(lines({}), linear + "," + shape + ",;" + linear + ",up," + shape +
                           ",;" + silu + "," + shape + ",;");
  EXPECT_EQ(lines({.ids = true}), linear + ",a," + shape + ",;" + linear +
                                      ",b,up," + shape + ",;" + silu + ",c," +
                                      shape + ",;");
  layer.nodes[1].weights.clear();
  EXPECT_THAT(lines({}), HasSubstr(linear + ",a," + shape));
  EXPECT_EQ(DrawLayer(layer, *Rules()).nodes[2].tooltip, "c: f.silu");
}

// Two streams: what runs beside the main one, and who waits for whom.
LayerGraph TwoStreams() {
  LayerGraph layer;
  layer.trace.emplace();
  layer.trace->total_ns = 60000;
  layer.nodes = {
      Node("x", "f.linear", {"in"}),
      Node("begin", "fn.begin_aux_stream_passthrough_9", {"x"}),
      Node("shared", "f.mlp", {"begin"}),
      Node("end", "fn.end_aux_stream_passthrough_4", {"shared"}),
      Node("main", "f.moe", {"x"}),
      Node("wait", "fn.wait_aux_stream_passthrough_4", {"main"}),
      Node("sum", "auto_deploy.trtllm_dist_all_reduce", {"wait", "end"})};
  const auto run = [&](size_t node, double start, double ns, uint32_t stream) {
    LayerKernel kernel{"k", "k", ns, {}, KernelFit::kSure};
    kernel.start_ns = start;
    kernel.stream = stream;
    layer.nodes[node].kernels.push_back(kernel);
  };
  run(0, 0, 10000, 0);
  run(4, 10500, 10000, 0);
  run(2, 14200, 12000, 1);
  run(6, 30000, 5000, 0);
  return layer;
}

std::map<std::string, std::string> EdgeLabels(const render::DotGraph& graph) {
  std::map<std::string, std::string> out;
  for (const render::DotEdge& edge : graph.edges) {
    if (!edge.label.empty()) out[edge.from + " " + edge.to] = edge.label;
  }
  return out;
}

TEST(Draw, ForksAndJoinsSayWhatTheyWait) {
  LayerGraph layer = TwoStreams();
  // The main stream stands still from 20.5 us to 30 us.
  EXPECT_EQ(
      EdgeLabels(DrawLayer(layer, *Rules())),
      (std::map<std::string, std::string>{{"begin shared", "waits 4.20 us"},
                                          {"end sum", "waits 9.50 us"}}));
  // 1 us is the pace of launches; a join that comes early waits for nobody.
  layer.nodes[2].kernels[0].start_ns = 10900;
  layer.nodes[2].kernels[0].duration_ns = 4000;
  EXPECT_TRUE(EdgeLabels(DrawLayer(layer, *Rules())).empty());
  // Kernels that are said to be of no node have no times there.
  layer = TwoStreams();
  layer.trace->claimed = false;
  EXPECT_TRUE(EdgeLabels(DrawLayer(layer, *Rules())).empty());
}

TEST(Draw, KernelsOnNoNodeKeepTheMainStreamBusy) {
  LayerGraph layer = TwoStreams();
  layer.off_nodes.resize(1, {"memset", "memset", 5500, {}, KernelFit::kNone});
  layer.off_nodes[0].start_ns = 20500;
  // The main stream stands still from 26 us on, 0.2 us before the other ends.
  render::DotGraph graph = DrawLayer(layer, *Rules());
  EXPECT_EQ(EdgeLabels(graph)["end sum"], "waits 4.00 us");
  EXPECT_EQ(graph.nodes[2].lines.back().text, "hidden 11.8 us");
  // On another stream it is not in the way.
  layer.off_nodes[0].stream = 1;
  graph = DrawLayer(layer, *Rules());
  EXPECT_EQ(EdgeLabels(graph)["end sum"], "waits 9.50 us");
  EXPECT_EQ(graph.nodes[2].lines.back().text, "hidden 6.30 us");
}

TEST(Draw, TimeBesideTheMainStreamIsHidden) {
  LayerGraph layer = TwoStreams();
  const auto last = [&](size_t node) {
    return DrawLayer(layer, *Rules()).nodes[node].lines.back().text;
  };
  EXPECT_EQ(last(2), "hidden 6.30 us");
  EXPECT_NE(last(4).substr(0, 6), "hidden");
  // Less than half of it.
  layer.nodes[2].kernels[0].duration_ns = 15800;
  EXPECT_NE(last(2).substr(0, 6), "hidden");
  // A kernel says its stream without markers, too.
  layer.nodes[4].kernels[0].stream = 2;
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  EXPECT_EQ(graph.nodes[2].bar, "#7b4fa3");
  EXPECT_EQ(graph.nodes[4].bar, "#0b7f6f");
  EXPECT_TRUE(graph.nodes[4].dashed);
  std::vector<std::string> legend;
  for (const render::DotLine& line : graph.nodes.back().lines) {
    if (line.text.starts_with("stream")) legend.push_back(line.text);
  }
  EXPECT_THAT(legend, ElementsAre("stream 2: 1 kernel, 15.8 us",
                                  "stream 3: 1 kernel, 10.0 us"));
}

TEST(Draw, TheLegendNamesTheStreamsOfTheTrace) {
  LayerGraph layer = TwoStreams();
  const auto streams = [&] {
    std::vector<std::string> out;
    const render::DotGraph graph = DrawLayer(layer, *Rules());
    for (const render::DotLine& line : graph.nodes.back().lines) {
      if (line.text.find("stream") != std::string::npos)
        out.push_back(line.text);
    }
    return out;
  };
  EXPECT_THAT(streams(), ElementsAre("main stream: 3 kernels, 25.0 us",
                                     "stream 2: 1 kernel, 12.0 us"));
  layer.stream_ids = {7, 14};
  EXPECT_THAT(streams(),
              ElementsAre("main stream (7 in the trace): 3 kernels, 25.0 us",
                          "stream 2 (14 in the trace): 1 kernel, 12.0 us"));
  // One alone is no news.
  layer.nodes[2].kernels[0].stream = 0;
  EXPECT_THAT(streams(), IsEmpty());
}

TEST(Draw, NamesOfOpsKeepTheirUsefulEnd) {
  const auto rules = Rules();
  EXPECT_EQ(OpLabel("aten.relu.default", *rules), "relu");
  const std::string name = "vllm.a_very_long_name_of_an_op_that_nobody_reads";
  const std::string label = OpLabel(name, *rules);
  EXPECT_EQ(label.size(), 28u);
  EXPECT_TRUE(label.ends_with("nobody_reads")) << label;
  // Everywhere the same, and whole in the tooltip.
  LayerGraph layer;
  layer.nodes = {Node("a", "f.linear", {"x"}), Node("v", name, {"a"}),
                 Node("b", name, {"v"})};
  const render::DotNode box = DrawLayer(layer, *rules).nodes[2];
  EXPECT_EQ(box.lines[0].text, label);
  EXPECT_EQ(box.tooltip, "b: " + name);
  size_t seen = 0;
  HideNodes(layer,
            [&](std::string_view op) { return op == name && seen++ == 0; });
  EXPECT_EQ(DrawLayer(layer, *rules).edges.back().tooltip, label);
}

// What begins, ends and waits for the third stream has its colour.
TEST(Draw, ForksHaveTheColourOfTheirStream) {
  LayerGraph layer = TwoStreams();
  const auto add = [&](const char* id, const char* op, const char* input) {
    layer.nodes.push_back(Node(id, op, {input}));
  };
  add("begin2", "fn.begin_aux_stream_passthrough_10", "sum");
  add("view2", "aten.view.default", "begin2");
  add("work2", "f.mlp", "view2");
  add("end2", "fn.end_aux_stream_passthrough_5", "work2");
  add("wait2", "fn.wait_aux_stream_passthrough_5", "sum");
  layer.nodes.push_back(Node("last", "aten.add.Tensor", {"wait2", "end2"}));
  LayerKernel kernel{"k", "k", 3000, {}, KernelFit::kSure};
  kernel.start_ns = 36000;
  kernel.stream = 2;
  layer.nodes[9].kernels.push_back(kernel);
  kernel.stream = 0;
  kernel.start_ns = 40000;
  layer.nodes[12].kernels.push_back(kernel);
  const auto colours = [&] {
    std::map<std::string, std::string> out;
    for (const render::DotNode& node : DrawLayer(layer, *Rules()).nodes) {
      if (node.circle || !node.bar.empty())
        out[node.id] = node.circle ? node.fill : node.bar;
    }
    return out;
  };
  const char* const kSecond = "#7b4fa3";
  const char* const kThird = "#0b7f6f";
  EXPECT_EQ(colours(), (std::map<std::string, std::string>{{"begin", kSecond},
                                                           {"shared", kSecond},
                                                           {"end", kSecond},
                                                           {"wait", kSecond},
                                                           {"begin2", kThird},
                                                           {"view2", kThird},
                                                           {"work2", kThird},
                                                           {"end2", kThird},
                                                           {"wait2", kThird}}));
  // Without kernels nobody knows how many streams there are.
  for (LayerNode& node : layer.nodes) node.kernels.clear();
  for (const auto& [id, colour] : colours()) EXPECT_EQ(colour, kSecond) << id;
}

TEST(Draw, WorkOfTheMainStreamHidesNotItself) {
  LayerGraph layer = TwoStreams();
  // Most of "shared" is on the second stream, a part on the main one.
  LayerKernel own{"own", "own", 9000, {}, KernelFit::kSure};
  own.start_ns = 40000;
  layer.nodes[2].kernels.push_back(own);
  const auto last = [&] {
    return DrawLayer(layer, *Rules()).nodes[2].lines.back().text;
  };
  EXPECT_EQ(last(), "hidden 6.30 us");
  // Half of the second stream, not of both.
  layer.nodes[2].kernels[0].duration_ns = 12700;
  EXPECT_NE(last().substr(0, 6), "hidden");
}

// Nodes of the next layer have the clock of that one.
TEST(Draw, TimesOfTheNextLayerAreNotOfThisOne) {
  LayerGraph layer = TwoStreams();
  const auto add = [&](const char* input, double start, uint32_t stream) {
    LayerNode next = Node(std::string("next_") + input, "f.norm", {input});
    next.boundary = true;
    LayerKernel kernel{"k", "k", 6000, {}, KernelFit::kSure};
    kernel.start_ns = start;
    kernel.stream = stream;
    next.kernels.push_back(kernel);
    layer.nodes.push_back(std::move(next));
  };
  // Hides nothing more, and stands not behind an end.
  add("sum", 21000, 0);
  add("end", 20600, 0);
  // What it runs beside is not known.
  add("wait", 11000, 1);
  // Not what ran before.
  layer.off_nodes.resize(1, {"memset", "memset", 5000, {}, KernelFit::kNone});
  layer.off_nodes[0].start_ns = 29000;
  layer.off_nodes[0].stream = 2;  // not in the way of the main one
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  EXPECT_EQ(graph.nodes[2].lines.back().text, "hidden 6.30 us");
  EXPECT_NE(graph.nodes[9].id, "");
  EXPECT_NE(graph.nodes[9].lines.back().text.substr(0, 6), "hidden");
  EXPECT_EQ(graph.nodes[9].bar, "#7b4fa3");
  EXPECT_EQ(EdgeLabels(graph)["end sum"], "waits 9.50 us");
  EXPECT_EQ(graph.edges.back().from + ">" + graph.edges.back().to,
            "shared>" + std::string(kOffNodes));
}

TEST(Draw, CollectivesSayBytesAndRanks) {
  LayerGraph layer;
  layer.nodes = {Node("a", "auto_deploy.trtllm_dist_all_reduce", {"x"}),
                 Node("b", "_c10d_functional.all_gather_into_tensor", {"a"}),
                 Node("c", "f.linear", {"b"})};
  layer.nodes[1].shape = "16x1024";
  layer.nodes[1].ranks = 8;
  const auto last = [&](size_t node) {
    return DrawLayer(layer, *Rules()).nodes[node].lines.back().text;
  };
  EXPECT_EQ(last(0), "8 B \u00d7 s0");
  EXPECT_EQ(last(1), "32.0 KiB, 8 ranks");
  EXPECT_EQ(last(2), "s0\u00d74 bf16");
  // What a scatter reduces is what all ranks get.
  LayerNode& scatter = layer.nodes[2];
  scatter = Node("c", "_c10d_functional.reduce_scatter_tensor", {"b"});
  scatter.shape = "2x1024";
  scatter.ranks = 8;
  EXPECT_EQ(last(2), "32.0 KiB, 8 ranks");
  // Of ranks that are not known: what goes in, if no hidden view made it.
  scatter.ranks = 0;
  EXPECT_EQ(last(2), "32.0 KiB");
  scatter.over["b"].ops = {"aten.slice.Tensor"};
  EXPECT_EQ(last(2), "2\u00d71024 bf16");
  // The rest counts what goes in, also from outside: results may be tuples.
  LayerNode& fused = layer.nodes[2];
  fused = Node("c", "trtllm.all_reduce_rms_norm", {"b"});
  fused.shape = "(16x1024, 16x1024)";
  fused.dtype = "(torch.bfloat16, torch.bfloat16)";
  EXPECT_EQ(last(2), "32.0 KiB");
  layer.externals.push_back({"in", "Layer 2 output", "4x1024"});
  fused = Node("c", "aten.all_to_all_single", {"in"});
  EXPECT_EQ(last(2), "8.00 KiB");
  // Sizes that cannot be.
  for (const char* const shape :
       {"-1x4", "?x4", "9223372036854775807x4", "4294967296x4294967296x0x8"}) {
    layer.nodes[1].shape = shape;
    EXPECT_THAT(last(1), Not(HasSubstr("B"))) << shape;
  }
  scatter = Node("c", "_c10d_functional.reduce_scatter_tensor", {"b"});
  scatter.shape = "1073741824x1073741824";
  scatter.ranks = 1 << 20;
  EXPECT_EQ(last(2), "1,048,576 ranks");
  layer.nodes[0].shape = "?";
  EXPECT_EQ(last(0), "bf16");  // not known
  // A trace knows better.
  layer.trace.emplace();
  layer.nodes[0].kernels.push_back({"k", "k", 5000, {}, KernelFit::kSure});
  layer.nodes[0].kernels[0].bytes = 4096;
  layer.nodes[0].kernels[0].ranks = 4;
  EXPECT_EQ(last(0), "4.00 KiB, 4 ranks");
}

TEST(Draw, KernelsOnNoNodeAreDrawn) {
  LayerGraph layer = TwoStreams();
  layer.off_nodes.resize(2, {"memset", "memset", 5000, {}, KernelFit::kNone});
  layer.off_nodes[0].start_ns = 21000;
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  EXPECT_THAT(graph.title, HasSubstr(" | 85 % of the time is on nodes"));
  const auto box =
      std::find_if(graph.nodes.begin(), graph.nodes.end(),
                   [](const auto& one) { return one.id == kOffNodes; });
  ASSERT_NE(box, graph.nodes.end());
  EXPECT_EQ(box->lines[0].text, "not on any node: 2 kernels, 10.0 us");
  // Behind what was launched before.
  EXPECT_EQ(graph.edges.back().from + ">" + graph.edges.back().to,
            "shared>" + std::string(kOffNodes));
  layer.off_nodes.resize(1);
  layer.off_nodes[0].duration_ns = 2000;
  EXPECT_THAT(DrawLayer(layer, *Rules()).title, Not(HasSubstr("on nodes")));
  layer.off_nodes[0].duration_ns = 3424.6;  // of 94.6 %
  EXPECT_THAT(DrawLayer(layer, *Rules()).title,
              HasSubstr(" | 94 % of the time is on nodes"));
  layer.off_nodes[0].duration_ns = 3157.8948;  // hardly below 95 %
  EXPECT_THAT(DrawLayer(layer, *Rules()).title,
              HasSubstr(" | 94 % of the time is on nodes"));
  // Kernels that are said to be of no node: none of them is on one.
  layer.off_nodes[0].duration_ns = 20000;
  EXPECT_THAT(DrawLayer(layer, *Rules()).title, HasSubstr("on nodes"));
  layer.trace->claimed = false;
  const render::DotGraph hollow = DrawLayer(layer, *Rules());
  EXPECT_THAT(hollow.title, Not(HasSubstr("on nodes")));
  EXPECT_TRUE(
      std::none_of(hollow.nodes.begin(), hollow.nodes.end(),
                   [](const auto& one) { return one.id == kOffNodes; }));
}

TEST(Draw, AmbiguousTimeIsNotShaded) {
  LayerGraph layer = TwoStreams();
  layer.nodes[0].kernels[0].fit = KernelFit::kAmbiguous;
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  EXPECT_EQ(graph.nodes[0].fill, "#ffffff");
  EXPECT_NE(graph.nodes[4].fill, "#ffffff");
}

TEST(Draw, LargeLayersAreTwoColumns) {
  LayerGraph layer;
  for (int i = 0; i < 41; ++i) {
    layer.nodes.push_back(Node("a" + std::to_string(i), "f.linear", {}));
    layer.nodes.push_back(Node("f" + std::to_string(i), "f.linear",
                               {"a" + std::to_string(i)}, "mlp"));
  }
  layer.nodes[3].inputs.push_back("f0");
  const std::string dot = render::DotText(DrawLayer(layer, *Rules()));
  EXPECT_THAT(dot, HasSubstr("\"a0\" -> \"f0\" [constraint=false];"));
  EXPECT_THAT(dot, HasSubstr("\"f0\" -> \"f1\";"));
  layer.nodes.resize(80);
  EXPECT_THAT(render::DotText(DrawLayer(layer, *Rules())),
              Not(HasSubstr("constraint")));
}

TEST(Draw, ResidualsGoAroundWhatIsAdded) {
  LayerGraph layer;
  layer.nodes = {Node("n", "f.rms_norm", {"x"}, "norm"),
                 Node("up", "f.linear", {"n"}, "mlp"),
                 Node("sum", "aten.add.Tensor", {"up", "x"}, "mlp"),
                 // No op with weights between: part of a gelu.
                 Node("cube", "aten.pow.Tensor_Scalar", {"sum"}, "mlp"),
                 Node("inner", "aten.add.Tensor", {"sum", "cube"}, "mlp"),
                 Node("down", "f.linear", {"inner"}, "mlp"),
                 Node("out", "aten.add.Tensor", {"sum", "down"}, "mlp")};
  layer.nodes[0].weights.push_back({"w0", "4", "f"});
  layer.nodes[1].weights.push_back({"w1", "4x4", "f"});
  layer.nodes[5].weights.push_back({"w2", "4x4", "f"});
  layer.externals.push_back({"x", "Layer 3 output", "4"});
  std::vector<std::string> around;
  for (const render::DotEdge& edge : DrawLayer(layer, *Rules()).edges) {
    if (!edge.label.empty())
      around.push_back(edge.from + " " + edge.to + " " + edge.label);
  }
  EXPECT_THAT(around, ElementsAre("x sum residual", "sum out residual"));
  // Of a tuple.
  layer.nodes = {Node("n", "f.fused_add_rms_norm", {"x", "y"}, "norm"),
                 Node("h", "builtin.getitem", {"n"}, "norm"),
                 Node("r", "builtin.getitem", {"n"}, "norm"),
                 Node("up", "f.linear", {"h"}, "mlp"),
                 Node("sum", "aten.add.Tensor", {"up", "r"}, "mlp")};
  layer.nodes[3].weights.push_back({"w1", "4x4", "f"});
  around.clear();
  for (const render::DotEdge& edge : DrawLayer(layer, *Rules()).edges) {
    if (!edge.label.empty()) around.push_back(edge.from + " " + edge.to);
  }
  EXPECT_THAT(around, ElementsAre("r sum"));
  // A view with sizes is the same value, what an activation makes of it is not.
  const auto around_by = [&](std::string op) {
    layer.nodes = {Node("n", "f.fused_add_rms_norm", {"x", "y"}, "norm"),
                   Node("h", "builtin.getitem", {"n"}, "norm"),
                   Node("r", std::move(op), {"h", "size"}, "mlp"),
                   Node("up", "f.linear", {"h"}, "mlp"),
                   Node("sum", "aten.add.Tensor", {"up", "r"}, "mlp")};
    layer.nodes[3].weights.push_back({"w1", "4x4", "f"});
    return EdgeLabels(DrawLayer(layer, *Rules()));
  };
  EXPECT_THAT(around_by("aten.view.default"),
              ElementsAre(Pair("r sum", kResidual)));
  EXPECT_THAT(around_by("aten.to.dtype"),
              ElementsAre(Pair("r sum", kResidual)));
  EXPECT_THAT(around_by("aten.silu.default"), IsEmpty());
  EXPECT_THAT(around_by("aten.neg.default"), IsEmpty());
}

TEST(Draw, NodesInACircleAreDrawn) {
  LayerGraph layer;
  layer.nodes = {Node("p", "aten.relu.default", {"q"}),
                 Node("q", "aten.relu.default", {"p"}),
                 Node("self", "aten.relu.default", {"self"}),
                 Node("u", "aten.add.Tensor", {"p", "w"}),
                 Node("v", "aten.add.Tensor", {"self", "u"})};
  layer.externals.push_back({"w", "Shared value", "4"});
  const render::DotGraph graph = DrawLayer(layer, *Rules());
  ASSERT_EQ(graph.edges.size(), 7u);
  for (const render::DotEdge& edge : graph.edges) EXPECT_EQ(edge.label, "");
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
              ElementsAre("experts \u00d7256 up", "router"));
  node.weights.clear();
  for (int i = 0; i < 4; ++i) {
    for (const char* const one : {"gate", "up", "down"}) {
      node.weights.push_back({"model_layers_7_mlp_experts_" +
                                  std::to_string(i) + "_" + one +
                                  "_proj_weight",
                              "?", "?"});
    }
  }
  EXPECT_THAT(WeightLabels(node, *Rules()), ElementsAre("experts \u00d74"));
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
              ElementsAre("up"));
  EXPECT_THAT(labels({"mlp_gate_e_score_correction_bias"}),
              ElementsAre("router score correction"));
  EXPECT_THAT(labels({"mlp_shared_experts_down_proj_weight"}),
              ElementsAre("shared experts down"));
  EXPECT_THAT(labels({"self_attn_q_proj_weight", "self_attn_k_proj_weight",
                      "self_attn_v_proj_weight", "self_attn_v_proj_bias"}),
              ElementsAre("q k v proj"));
  EXPECT_THAT(labels({"mlp_shared_experts_gate_proj_weight",
                      "mlp_shared_experts_up_proj_weight", "mlp_table_4"}),
              ElementsAre("shared experts gate up", "table_4"));
  const std::pair<const char*, const char*> one[] = {
      {"input_layernorm_weight", "input norm"},
      {"post_attention_layernorm_weight", "post-attention norm"},
      {"pre_feedforward_layernorm_weight", "pre-feedforward norm"},
      {"attention_norm_weight", "input norm"},
      {"ffn_norm_weight", "post-attention norm"},
      {"ln_1_weight", "input norm"},
      {"self_attn_q_a_layernorm_weight", "q_a norm"},
      {"self_attn_k_norm_weight", "k norm"},
      {"self_attn_o_proj_weight", "o_proj"},
      {"mlp_gate_proj_weight", "gate"},
      {"mlp_gate_up_proj_weight", "gate up"},
      {"mlp_up_proj_kernel", "up"},
      {"mlp_gate_weight", "router"},
      {"block_sparse_moe_gate_weight", "router"},
      // A gate of attention is no router.
      {"self_attn_gate_weight", "gate"},
      {"mlp_experts_3_up_proj_weight", "experts 3 up"},
      {"mlp_setup_proj_weight", "setup_proj"},
      {"fused_swiglu_gate_up_5", "gate up"},
      {"norm_weight", "norm"},
  };
  for (const auto& [name, label] : one)
    EXPECT_THAT(labels({name}), ElementsAre(label)) << name;
  // Experts: all their weights are one line.
  EXPECT_THAT(labels({"block_sparse_moe_experts_0_w1_weight",
                      "block_sparse_moe_experts_0_w2_weight",
                      "block_sparse_moe_experts_1_w1_weight",
                      "block_sparse_moe_experts_1_w2_weight"}),
              ElementsAre("experts \u00d72"));
  LayerNode fused = Node("n", "f.moe", {});
  fused.weights = {{"fused_moe_w3_w1_stacked_4", "256x4096x7168", "?"},
                   {"fused_moe_w2_stacked_4", "256x7168x2048", "?"}};
  EXPECT_THAT(WeightLabels(fused, *Rules()), ElementsAre("experts \u00d7256"));
  fused.weights.pop_back();
  EXPECT_THAT(WeightLabels(fused, *Rules()),
              ElementsAre("experts \u00d7256 w3 w1"));
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
