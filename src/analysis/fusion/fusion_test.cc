// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <gtest/gtest.h>

#include "analysis/fusion/kernel_lookup.h"
#include "analysis/fusion/log_diff.h"
#include "analysis/fusion/mining.h"
#include "graph/dump.h"
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
                                          LogDiffOptions options = {}) {
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
            Judged("regression", "pattern lost"));
  EXPECT_EQ(Judge("matches=4", "matches=0"),
            Judged("regression", "pattern lost"));
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
            Judged("regression", "pattern lost"));
  EXPECT_EQ(Judge("matches=4", "matches=8", options), Judged("changed", ""));
}

TEST(LogDiff, TellsLostMetadata) {
  const LogDiff diff =
      CompareLogs(Log("[stage=s, transform=t] enabled=True, num_matches=4, "
                      "has_valid_shapes=True\n"),
                  Log("[stage=s, transform=t] enabled=True, skipped=True, "
                      "has_valid_shapes=False\n"),
                  {});
  EXPECT_EQ(diff.result.tables[0].At(0, "class").text(), "metadata lost");
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

}  // namespace
}  // namespace lamina::fusion
