// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <gtest/gtest.h>

#include "graph/dump.h"
#include "graph/fusion/candidates.h"
#include "graph/fusion/kernel_lookup.h"
#include "graph/fusion/log_diff.h"
#include "graph/fusion/mining.h"
#include "graph/fusion/traffic.h"
#include "graph/print.h"

namespace lamina::fusion {

namespace {

graph::TransformLog Log(std::string_view text) {
  auto log = graph::ParseTransformLog("t.log", text);
  EXPECT_TRUE(log);
  return *log;
}

std::string Line(std::string_view transform, std::string_view what) {
  return "[stage=s, transform=" + std::string(transform) + "] [SUMMARY] " +
         std::string(what) + "\n";
}

// Verdict and class of the only transform.
std::pair<std::string, std::string> Judge(std::string_view a,
                                          std::string_view b,
                                          const LogDiffOptions& options = {}) {
  const LogDiff diff =
      CompareLogs(Log(Line("t", a)), Log(Line("t", b)), options);
  const Table& table = diff.result.tables[0];
  EXPECT_EQ(diff.regressions,
            table.At(0, "verdict").text() == "regression" ? 1u : 0u);
  return {std::string(table.At(0, "verdict").text()),
          std::string(table.At(0, "class").text())};
}

using Judged = std::pair<std::string, std::string>;

TEST(LogDiff, JudgesEveryChange) {
  EXPECT_EQ(Judge("matches=4", "matches=4"), Judged("same", ""));
  EXPECT_EQ(Judge("matches=4", "matches=3"),
            Judged("regression", "unknown cause"));
  EXPECT_EQ(Judge("matches=4", "matches=0"),
            Judged("regression", "unknown cause"));
  EXPECT_EQ(Judge("matches=4", "skipped"), Judged("regression", "skipped"));
  EXPECT_EQ(Judge("matches=4", "disabled"), Judged("regression", "disabled"));
  EXPECT_EQ(Judge("matches=0", "disabled"), Judged("changed", "disabled"));
  EXPECT_EQ(Judge("disabled", "matches=4"), Judged("changed", ""));
  EXPECT_EQ(Judge("matches=0", "skipped"), Judged("same", ""));
  EXPECT_EQ(Judge("matches=4", "matches=5"), Judged("changed", ""));
}

TEST(LogDiff, AllowsADropAndKnowsLayers) {
  LogDiffOptions options;
  options.max_drop_percent = 30;
  EXPECT_EQ(Judge("matches=4", "matches=3", options), Judged("changed", ""));
  options.layers = 4;
  EXPECT_EQ(Judge("matches=4", "matches=3", options),
            Judged("regression", "unknown cause"));
  EXPECT_EQ(Judge("matches=4", "matches=8", options), Judged("changed", ""));
}

TEST(LogDiff, TellsLostMetadata) {
  const LogDiff diff =
      CompareLogs(Log("[stage=s, transform=t] enabled=True, num_matches=4, "
                      "has_valid_shapes=True\n"),
                  Log("[stage=s, transform=t] enabled=True, skipped=True, "
                      "has_valid_shapes=False\n"),
                  {});
  EXPECT_EQ(diff.result.tables[0].At(0, "class").text(), "shapes not valid");
}

TEST(SourceScan, ReadsEveryForm) {
  std::vector<Mention> found;
  ScanText("ops.py",
           "@torch.library.custom_op(\n"
           "    \"auto_deploy::my_norm\", mutates_args=())\n"
           "def my_norm(x): ...\n"
           "@my_norm.register_fake\n"
           "torch.library.register_fake(\"auto_deploy::my_norm\")\n"
           "torch.library.define(\"auto_deploy::other\", \"(Tensor x)\")\n"
           "@TransformRegistry.register(\"fuse_my_norm\")\n"
           "@triton.jit\n"
           "def my_kernel(x): ...\n"
           "    return torch.ops.auto_deploy.my_norm(x)\n",
           found);
  ScanText("thop.cpp",
           "TORCH_LIBRARY_FRAGMENT(trtllm, m)\n{\n"
           "    m.def(\"fast_gemm(Tensor a) -> Tensor\");\n}\n"
           "TORCH_LIBRARY_IMPL(trtllm, CUDA, m)\n{\n"
           "    m.impl(\"fast_gemm\", &fastGemm);\n}\n",
           found);
  ScanText("test_norm.py",
           "def test_my_norm_two_consumers():\n"
           "    torch.ops.auto_deploy.my_norm(1)\n",
           found);
  SourceIndex index;
  index.mentions = found;
  const auto line = [&](std::string_view name, Mention::Kind kind) {
    const Mention* const at = index.Find(name, kind);
    return at == nullptr ? 0u : at->line;
  };
  EXPECT_EQ(line("auto_deploy.my_norm", Mention::Kind::kDefinition), 1u);
  EXPECT_EQ(line("auto_deploy.my_norm", Mention::Kind::kFake), 5u);
  EXPECT_EQ(line("auto_deploy.other", Mention::Kind::kDefinition), 6u);
  EXPECT_EQ(line("fuse_my_norm", Mention::Kind::kTransform), 7u);
  EXPECT_EQ(line("my_kernel", Mention::Kind::kTriton), 9u);
  EXPECT_EQ(line("auto_deploy.my_norm", Mention::Kind::kUse), 10u);
  EXPECT_EQ(line("trtllm.fast_gemm", Mention::Kind::kDefinition), 3u);
  EXPECT_EQ(line("trtllm.fast_gemm", Mention::Kind::kImplementation), 7u);
  EXPECT_EQ(line("test_my_norm_two_consumers", Mention::Kind::kTest), 1u);
  EXPECT_EQ(line("auto_deploy.my_norm", Mention::Kind::kTest), 2u);
}

TEST(KernelLookup, OnlyTheTreeAnswersWhenThereIsOne) {
  const auto ops = OpTable::Load(rules::DataSet());
  ASSERT_TRUE(ops) << ops.error().ToString();
  SourceIndex index;
  index.tree = "TREE";
  ScanText("auto_deploy/custom_ops/norm.py",
           "@torch.library.custom_op(\"auto_deploy::triton_rms_norm\")\n"
           "def triton_rms_norm(x): ...\n"
           "def plain(x): ...\n"
           "def _hidden(x): ...\n"
           "y = torch.ops.auto_deploy.flashinfer_silu_and_mul(x)\n",
           index.mentions);
  const KernelLookup lookup(**ops, &index);
  EXPECT_EQ(lookup.ByName("auto_deploy.triton_rms_norm").score, 1);
  EXPECT_EQ(lookup.ByName("fn.plain").evidence,
            "auto_deploy/custom_ops/norm.py:3");
  EXPECT_EQ(lookup.ByName("fn._hidden").score, 0);
  // The built-in table knows it; the tree does not.
  const FoundKernel norm = lookup.ByName("auto_deploy.flashinfer_rms_norm");
  EXPECT_EQ(norm.score, 0);
  EXPECT_TRUE(norm.evidence.starts_with("not_found: not in TREE; built-in"))
      << norm.evidence;
  const FoundKernel used = lookup.ByName("auto_deploy.flashinfer_silu_and_mul");
  EXPECT_EQ(used.score, 0);
  EXPECT_TRUE(used.evidence.starts_with("not_found: used_not_defined"));
}

TEST(KernelLookup, NeverDropsAStep) {
  const auto ops = OpTable::Load(rules::DataSet());
  ASSERT_TRUE(ops) << ops.error().ToString();
  const KernelLookup lookup(**ops, nullptr);
  const auto kernels = [&](const std::string& steps) {
    const auto dump = graph::ParseDump(
        "t", "%x : 4x8 : torch.float32\n%u : 4x8 : torch.float32\n" + steps);
    LAMINA_CHECK(dump.has_value());
    const graph::Graph& one = dump->graphs[0];
    std::vector<graph::NodeId> nodes;
    for (const graph::NodeId id : one.nodes()) {
      if (one[id].kind == graph::NodeKind::kOp) nodes.push_back(id);
    }
    std::vector<FoundKernel> out =
        lookup.ByMeaning(one, nodes, lookup.WordsOf(one, nodes));
    std::erase_if(out, [](const FoundKernel& k) { return k.score == 0; });
    return out;
  };
  const std::string f = " : 4x8 : torch.float32";
  const std::string silu = "%a = aten.silu.default(%x" + f + ")" + f + "\n";
  const std::string mul = "%c = aten.mul.Tensor(%b" + f + ", %u" + f + ")" + f;
  const auto step = [&](const std::string& call) {
    return silu + "%b = " + call + f + "\n" + mul + "\n";
  };
  const auto whole = kernels(silu + "%c = aten.mul.Tensor(%a" + f + ", %u" + f +
                             ")" + f + "\n");
  ASSERT_FALSE(whole.empty());
  EXPECT_TRUE(whole[0].op.ends_with("silu_and_mul")) << whole[0].op;
  // Casts and views are no steps, everything else is.
  EXPECT_FALSE(
      kernels(step("aten.to.dtype(%a" + f + ", torch.float32)")).empty());
  EXPECT_TRUE(kernels(step("aten.clamp.default(%a" + f + ", -7, 7)")).empty());
  EXPECT_TRUE(kernels(step("aten.abs.default(%a" + f + ")")).empty());
  EXPECT_TRUE(kernels(step("aten.mul.Tensor(%a" + f + ", 1.702)")).empty());
  EXPECT_TRUE(kernels(step("aten.add.Tensor(%a" + f + ", 1)")).empty());
  EXPECT_TRUE(kernels(step("aten.sigmoid.default(%a" + f + ")")).empty());
}

// Additions that read near ones: the number of connected unions grows fast, the
// time must not.
TEST(Mining, IsBoundedOnDenseGraphs) {
  const auto ops = OpTable::Load(rules::DataSet());
  ASSERT_TRUE(ops) << ops.error().ToString();
  std::string lines = "%n0 : 4 : torch.float32\n";
  std::string outputs;
  for (int i = 1; i <= 300; ++i) {
    const int a = std::max(0, i - 1 - i * 7919 % 5);
    const int b = std::max(0, i - 1 - i * 104729 % 7);
    lines += "%n" + std::to_string(i) + " = aten.add.Tensor(%n" +
             std::to_string(a) + " : 4 : torch.float32, %n" +
             std::to_string(b) + " : 4 : torch.float32) : 4 : torch.float32\n";
    outputs += (i > 1 ? ", %n" : "%n") + std::to_string(i);
  }
  const auto dump =
      graph::ParseDump("t", graph::HeaderText({}) + graph::SectionHead("g") +
                                lines + "output " + outputs + "\n");
  ASSERT_TRUE(dump);
  MiningOptions options;
  options.max_sets = 1000;
  const Mined mined = MineForms(dump->graphs[0], **ops, options);
  EXPECT_TRUE(mined.bounded);
}

// A SwiGLU of 2 x 1 MiB inputs and 1 MiB out, with the time that its two nodes
// took.
ResultSet MeasuredSwiglu(int64_t node_ns, const Memory& memory) {
  const auto ops = *OpTable::Load(rules::DataSet());
  const auto groups = *graph::GroupRules::Load(rules::DataSet());
  const std::string type = " : 1024x512 : torch.bfloat16";
  const auto dump = graph::ParseDump(
      "t", graph::HeaderText({}) + graph::SectionHead("g") + "%g" + type +
               "\n%u" + type + "\n%s = aten.silu.default(%g" + type + ")" +
               type + "\n%m = aten.mul.Tensor(%s" + type + ", %u" + type + ")" +
               type + "\noutput %m\n");
  EXPECT_TRUE(dump);
  const graph::Graph& graph = dump->graphs[0];
  Measured measured;
  measured.node_ns.assign(graph.size(), 0);
  measured.node_ns[graph.Find("s").value] = node_ns;
  measured.node_ns[graph.Find("m").value] = node_ns;
  measured.step_ns = 10 * node_ns;
  measured.shortest_kernel_ns = 10;
  const KernelLookup lookup(*ops, nullptr);
  const auto file = rules::ParseYaml(
      "own.yaml",
      "rules:\n  - rule: silu_mul\n    stage: export\n    before: |\n"
      "      %a = aten.silu(%x)\n      %out = aten.mul(%a, %y)\n"
      "    outputs: [out]\n");
  EXPECT_TRUE(file);
  std::vector<std::string> warnings;
  graph::RuleSet set;
  set.rules = *graph::ReadRules(*file, &warnings);
  CandidateOptions options;
  options.rules = &set;
  options.groups = groups.get();
  options.ops = ops.get();
  options.lookup = &lookup;
  options.measured = &measured;
  options.memory = memory;
  return CandidateTables(FindCandidates(graph, options), "t", 10);
}

const Note* Find(const ResultSet& result, std::string_view id) {
  for (const Note& note : result.notes) {
    if (note.id == id) return &note;
  }
  return nullptr;
}

// 3 MiB at 3.35 TB/s need 939 ns.
TEST(Candidates, SubtractsTheBoundOfTheDevice) {
  const ResultSet result = MeasuredSwiglu(1000, {});
  const Table& table = *result.Find("candidates");
  ASSERT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.At(0, "saving_us").integer(), 2000 - 939);
  EXPECT_EQ(Find(result, "more_than_measured"), nullptr);
  const ResultSet half = MeasuredSwiglu(1000, {1.675e12, "A device"});
  EXPECT_EQ(half.Find("candidates")->At(0, "saving_us").integer(), 2000 - 1878);
  EXPECT_NE(Find(half, "claim")->text.find("1.675 TB/s (A device)"),
            std::string::npos);
  EXPECT_NE(Find(result, "claim")->text.find("is assumed"), std::string::npos);
}

TEST(Candidates, WarnsOfABoundAboveTheMeasurement) {
  const ResultSet result = MeasuredSwiglu(400, {});
  const Note* const note = Find(result, "more_than_measured");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->severity, Severity::kWarning);
  ASSERT_EQ(note->evidence.size(), 1U);
  EXPECT_EQ(note->evidence[0].value, "silu_mul");
  EXPECT_EQ(result.Find("candidates")->At(0, "saving_us").integer(), 0);
}

}  // namespace

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
