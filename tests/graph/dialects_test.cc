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
#include "graph/fusion/census.h"
#include "graph/fusion/mining.h"
#include "graph/layers/groups.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/layers.h"
#include "graph/layers/rules.h"
#include "graph/passes/rule_file.h"
#include "graph/print.h"

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
                    std::string text, std::string_view compile = "0/0") {
  std::string out;
  text = "TRACED GRAPH\n ===== " + std::string(title) + " =====\n" + text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out += "V1206 15:18:01.925000 1500233 torch/x.py:1288] [" +
           std::string(compile) + "] [__" + std::string(artifact) + "] " +
           text.substr(at, end - at) + "\n";
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

// A graph of some relus.
std::string Relus(int ops) {
  std::string out =
      "class GraphModule(torch.nn.Module):\n    def forward(self, y0: "
      "\"f32[8]\"):\n";
  for (int i = 1; i <= ops; ++i) {
    const std::string n = std::to_string(i);
    out += "        y" + n + ": \"f32[8]\" = torch.ops.aten.relu.default(y" +
           std::to_string(i - 1) + ")\n";
  }
  return out + "        return (y" + std::to_string(ops) + ",)\n";
}

TEST(Dialects, TheLastCompileOfTheLargestFrameIsTaken) {
  const auto chosen = [](const std::string& text) {
    const Dump dump = Read(text);
    const auto graph = ChooseGraph(dump, "");
    EXPECT_TRUE(graph.has_value());
    return (*graph)->name();
  };
  const auto graph = [](const char* compile, int ops) {
    return Message("aot_graphs", "Forward graph", Relus(ops), compile);
  };
  EXPECT_EQ(chosen(graph("0/0", 5) + graph("0/1", 4) + graph("1/0", 3)),
            "0/1 Forward graph");
  EXPECT_EQ(chosen(graph("0/0", 3) + graph("1/0", 5) + graph("1/0_1", 4)),
            "1/0_1 Forward graph");
  // Within a compile the largest, within one compile all there is.
  EXPECT_EQ(chosen(graph("0/0", 5) + graph("0/1", 2) + graph("0/1", 4)),
            "0/1 Forward graph_1");
  EXPECT_EQ(chosen(graph("0/0", 2) + graph("0/0", 4)), "Forward graph_1");
}

// What JAX prints: locations are names for what stands at the end of the file.
std::string WithAliases(int layers) {
  std::string args;
  std::string body;
  std::string aliases = "#loc = loc(unknown)\n";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    args += (i > 0 ? ", %arg" : "%arg") + n + ": tensor<64x64xf32> loc(#loc_w" +
            n + ")";
    aliases += "#loc_w" + n + " = loc(\"params['layers_" + n +
               "']['mlp']['kernel']\"(#loc))\n";
    body += "    %d" + n + " = stablehlo.dot_general " +
            (i == 0 ? "%x" : "%a" + std::to_string(i - 1)) + ", %arg" + n +
            ", contracting_dims = [1] x [0] : (tensor<8x64xf32>, "
            "tensor<64x64xf32>) -> tensor<8x64xf32> loc(#loc_d" +
            n + ")\n    %a" + n + " = stablehlo.tanh %d" + n +
            " : tensor<8x64xf32> loc(#loc_a" + n + ")\n";
    aliases += "#loc_d" + n + " = loc(\"jit(f)/layers_" + n +
               "/dot_general\"(#loc_f))\n#loc_a" + n +
               " = loc(fused<\"x > y\">[\"jit(f)/layers_" + n +
               "/tanh\", callsite(#loc_g at #loc_h)])\n";
  }
  aliases +=
      "#loc_f = loc(\"model.py\":12:8)\n"
      "#loc_g = loc(\"forward\"(\"model.py\":14:4 to :9))\n"
      "#loc_h = loc(\"main\"(\"run.py\":3:0))\n"
      // One that leads to itself, twice.
      "#loc_r = loc(callsite(#loc_r at #loc_r))\n";
  return "module @jit_f {\n  func.func public @main(" + args +
         ", %x: tensor<8x64xf32> loc(\"x\"), %y: tensor<4xf32> loc(#loc_r)) "
         "-> tensor<8x64xf32> {\n" +
         body + "    return %a" + std::to_string(layers - 1) +
         " : tensor<8x64xf32> loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n" +
         aliases;
}

TEST(Dialects, LocationsOfMlirAreFollowed) {
  const Dump dump = Read(WithAliases(3));
  ASSERT_EQ(dump.graphs.size(), 1u);
  const Graph& graph = dump.graphs[0];
  EXPECT_THAT(Weights(graph), ElementsAre("params_layers_0_mlp_kernel",
                                          "params_layers_1_mlp_kernel",
                                          "params_layers_2_mlp_kernel"));
  EXPECT_EQ(graph.OriginOf(graph.Find("d1")).source, "model.py:12");
  EXPECT_EQ(graph.OriginOf(graph.Find("d1")).scope,
            "jit(f)_layers_1_dot_general");
  EXPECT_EQ(graph.OriginOf(graph.Find("a2")).source, "model.py:14 in forward");
  EXPECT_EQ(graph.OriginOf(graph.Find("a2")).scope, "jit(f)_layers_2_tanh");
  const Layers layers = FindLayers(graph, *Rules());
  ASSERT_EQ(layers.layers.size(), 3u);
  for (const char* const name : {"d1", "a1"})
    EXPECT_EQ(layers.NameOf(layers.PlaceOf(graph.Find(name))), "1") << name;
  EXPECT_EQ(Print(dump), *dump.text);
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

// One layer as AOT writes it: a gated MLP of products with transposed weights.
// `x` is what its products read and `rows` what makes two dimensions of it.
std::string Mlp(const std::string& up, const std::string& transposed) {
  return R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "bf16[2, 4, 64]", b: "bf16[128]", )" +
         std::string(
             R"(L_self_modules_layers_modules_0_modules_gate_parameters_weight_: "bf16[128, 64]", L_self_modules_layers_modules_0_modules_up_parameters_weight_: "bf16[128, 64]", L_self_modules_layers_modules_0_modules_down_parameters_weight_: "bf16[64, 128]"):
        t: "bf16[64, 128]" = torch.ops.aten.)") +
         transposed + R"(
        view: "bf16[8, 64]" = torch.ops.aten.view.default(x, [8, 64])
        mm: "bf16[8, 128]" = torch.ops.aten.mm.default(view, t)
        view_1: "bf16[2, 4, 128]" = torch.ops.aten.view.default(mm, [2, 4, 128])
        silu: "bf16[2, 4, 128]" = torch.ops.aten.silu.default(view_1)
        t_1: "bf16[64, 128]" = torch.ops.aten.permute.default(L_self_modules_layers_modules_0_modules_up_parameters_weight_, [1, 0])
        view_2: "bf16[8, 64]" = torch.ops.aten.view.default(x, [8, 64])
        mm_1: "bf16[8, 128]" = torch.ops.aten.)" +
         up + R"(
        view_3: "bf16[2, 4, 128]" = torch.ops.aten.view.default(mm_1, [2, 4, 128])
        mul: "bf16[2, 4, 128]" = torch.ops.aten.mul.Tensor(silu, view_3)
        t_2: "bf16[128, 64]" = torch.ops.aten.t.default(L_self_modules_layers_modules_0_modules_down_parameters_weight_)
        view_4: "bf16[8, 128]" = torch.ops.aten.view.default(mul, [8, 128])
        mm_2: "bf16[8, 64]" = torch.ops.aten.mm.default(view_4, t_2)
        view_5: "bf16[2, 4, 64]" = torch.ops.aten.view.default(mm_2, [2, 4, 64])
        return (view_5,)
)";
}

const std::string kGate =
    "L_self_modules_layers_modules_0_modules_gate_parameters_weight_";
const std::string kT = "t.default(" + kGate + ")";

const RuleSet& AllRules() {
  static const auto rules = LoadRuleSet(rules::DataSet());
  EXPECT_TRUE(rules.has_value()) << rules.error().ToString();
  return *rules;
}

fusion::FileCensus Census(const Dump& dump) {
  fusion::CensusOptions options;
  options.groups = Rules();
  return fusion::TakeCensus({}, dump, AllRules(), options);
}

// "matches possible" of a rule in the first graph.
std::pair<size_t, size_t> Count(const fusion::FileCensus& census,
                                std::string_view rule) {
  for (const fusion::RuleCount& count : census.graphs[0].rules) {
    if (count.rule->name == rule) return {count.matches, count.possible};
  }
  return {0, 0};
}

using Counted = std::pair<size_t, size_t>;

TEST(Dialects, ProductsWithATransposedWeightAreLinears) {
  const std::string swiglu = "match_swiglu_pattern";
  const std::string mm = "mm.default(view_2, t_1)";
  for (const std::string& transposed :
       {kT, "permute.default(" + kGate + ", [1, 0])",
        "transpose.int(" + kGate + ", 0, 1)"}) {
    EXPECT_EQ(Count(Census(Read(Mlp(mm, transposed))), swiglu), Counted(1, 1))
        << transposed;
  }
  EXPECT_EQ(
      Count(Census(Read(Mlp("addmm.default(b, view_2, t_1)", kT))), swiglu),
      Counted(1, 1));
  // What is no product with that weight, or of other rows.
  for (const std::string& other :
       {std::string("mm.default(view_2, t_9)"),
        std::string("addmm.default(b, view_2, t_1, beta = 2)"),
        std::string("mm.default(view_2, silu)")})
    EXPECT_EQ(Count(Census(Read(Mlp(other, kT))), swiglu), Counted(0, 0))
        << other;
  EXPECT_EQ(
      Count(Census(Read(Mlp(mm, "permute.default(" + kGate + ", [0, 1])"))),
            swiglu),
      Counted(0, 0));
  std::string other_rows = Mlp(mm, kT);
  const std::string shape = "view_3: \"bf16[2, 4, 128]\"";
  other_rows.replace(other_rows.find(shape), shape.size(),
                     "view_3: \"bf16[4, 2, 128]\"");
  EXPECT_EQ(Count(Census(Read(other_rows)), swiglu), Counted(0, 0));
}

TEST(Dialects, MatchesHoldTheProductsOfTheirViews) {
  const auto census = Census(Read(Mlp("mm.default(view_2, t_1)", kT)));
  for (const fusion::RuleCount& count : census.graphs[0].rules) {
    if (count.rule->name != "match_swiglu_pattern") continue;
    ASSERT_EQ(count.places.size(), 1u);
    EXPECT_EQ(count.places[0].nodes,
              "view mm view_1 silu view_2 mm_1 view_3 mul view_4 mm_2 view_5");
    EXPECT_TRUE(count.places[0].possible);
    return;
  }
  ADD_FAILURE() << "no match";
}

std::vector<std::string> NoteIds(const ResultSet& result) {
  std::vector<std::string> out;
  for (const Note& note : result.notes) out.push_back(note.id);
  return out;
}

TEST(Dialects, RulesSayNothingOfGraphsOfXla) {
  const Dump hlo = Read(R"(HloModule m

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %s = f32[4]{0} logistic(%p)
  ROOT %m = f32[4]{0} multiply(%p, %s)
}
)");
  const auto none = fusion::CensusTables({Census(hlo)}, AllRules(), nullptr);
  EXPECT_THAT(NoteIds(none), ElementsAre("not_applicable"));
  EXPECT_EQ(none.Find("census_rules")->rows(), 0u);
  const auto possible = fusion::CensusTables(
      {Census(Read(Mlp("mm.default(view_2, t_1)", kT)))}, AllRules(), nullptr);
  EXPECT_THAT(NoteIds(possible), ElementsAre("another_dialect"));
}

// Cut at every byte, a dump of each kind is read up to there and prints the
// same, or is refused with a place.
TEST(Dialects, EveryBeginOfADumpIsReadOrRefused) {
  const std::string hlo = R"(HloModule m, is_scheduled=true

%fused (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%q)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0), metadata={op_name="params['w']"}
  %c = f32[] constant(-1.5e+3)
  %f.1 = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/layers_0/neg" source_file="m.py" source_line=3}
  ROOT %m = (f32[4]{0}, /*index=1*/f32[]) tuple(%f.1, %c)
}
)";
  const std::string printed = R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %w : [num_users=1] = get_attr[target=layers.0.w]
    %mm : [num_users=1] = call_function[target=torch.ops.aten.mm.default](args = (%x, %w), kwargs = {})
    %mean : [num_users=1] = call_method[target=mean](args = (%mm, -1), kwargs = {keepdim: True})
    return (mean,)
)";
  const std::string table =
      "opcode         name    target    args      kwargs\n"
      "-------------  ------  --------  --------  ------------------\n"
      "placeholder    x       x         ()        {}\n"
      "call_method    mean    mean      (x, -1)   {'keepdim': True}\n"
      "output         output  output    (mean,)   {}\n";
  const std::string code = R"(async_compile = AsyncCompile()

# Topologically Sorted Source Nodes: [y], Original ATen: [aten.relu]
# Source node to ATen node mapping:
#   y => relu
# Graph fragment:
#   %arg0_1 : Tensor "f32[8][1]cuda:0" = PlaceHolder[target=arg0_1]
#   %relu : Tensor "f32[8][1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%arg0_1,), kwargs = {})
#   return %relu
triton_poi_fused_relu_0 = async_compile.triton('triton_poi_fused_relu_0', ''' ''')

def call(args):
    return (buf0,)
)";
  const std::string trace =
      "V1206 15:18:01.925000 1500233 torch/x.py:1288] "
      "{\"dynamo_output_graph\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, "
      "\"attempt\": 0, \"has_payload\": \"49\"}\n"
      "\tclass G(torch.nn.Module):\n\t    def forward(self, x: \"f32[8]\"):\n"
      "\t        y: \"f32[8]\" = torch.relu(x);  x = None\n"
      "\t        return (y,)\n";
  size_t read = 0;
  for (const auto& [name, text] :
       {std::pair<std::string, std::string>{"fx",
                                            Mlp("mm.default(view_2, t_1)", kT)},
        {"mlir", WithAliases(2)},
        {"hlo", hlo},
        {"fx-graph", printed},
        {"fx-table", table},
        {"inductor", code},
        {"log", Message("aot_graphs", "Forward graph", Relus(3))},
        {"trace", trace}}) {
    EXPECT_EQ(RecogniseDialect(text), name);
    size_t whole = 0;
    for (size_t at = 1; at <= text.size(); ++at) {
      const std::string cut = text.substr(0, at);
      const auto dump = ParseAnyDump(name, cut);
      if (!dump) {
        EXPECT_THAT(dump.error().ToString(), ::testing::HasSubstr("expected"))
            << name << " at " << at;
        continue;
      }
      ++read;
      whole = at;
      ASSERT_EQ(Print(*dump), cut) << name << " at " << at;
    }
    EXPECT_EQ(whole, text.size()) << name;
  }
  EXPECT_GT(read, 1000u);
}

// Walks over operands recurse, so the reader bounds their depth.
TEST(Dialects, OperandsNestOnlySoDeep) {
  for (const size_t deep : {size_t{10}, size_t{60000}}) {
    const std::string list =
        std::string(deep, '[') + "x" + std::string(deep, ']');
    const Dump dump = Read(
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, x: \"bf16[16]\"):\n"
        "        a: \"bf16[16]\" = torch.ops.aten.cat.default(" +
        list +
        ")\n"
        "        return (a,)\n");
    EXPECT_EQ(dump.diagnostics.Count(Level::kError), deep > 1000 ? 1u : 0u);
    const Graph& graph = dump.graphs[0];
    const NodeId a = graph.Find("a");
    ASSERT_TRUE(a.valid());
    EXPECT_EQ(fusion::FormText(graph, {a}),
              "%n0 = aten.cat.default(" +
                  (deep > 1000 ? list
                               : std::string(deep, '[') + "%x0" +
                                     std::string(deep, ']')) +
                  ")");
  }
}

}  // namespace
}  // namespace lamina::graph
