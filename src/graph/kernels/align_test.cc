// SPDX-License-Identifier: Apache-2.0
#include "graph/kernels/align.h"

#include <gtest/gtest.h>

#include "graph/kernels/graph_kernels.h"
#include "rules/document.h"

namespace lamina::graph_kernels {
namespace {

using Texts = std::vector<std::string_view>;

std::shared_ptr<const graph::LaunchTable> Launches() {
  static const auto table = graph::LaunchTable::Load(rules::DataSet());
  EXPECT_TRUE(table.has_value()) << table.error().ToString();
  return *table;
}

// Node of each kernel; -1: none.
std::vector<int> Nodes(const Texts& ops, const Texts& kernels) {
  const auto assigned = AlignKernels(ops, kernels, *Launches());
  EXPECT_TRUE(assigned.has_value());
  std::vector<int> out;
  for (const Assignment& one : *assigned)
    out.push_back(one.node == Assignment::kNone ? -1
                                                : static_cast<int>(one.node));
  return out;
}

constexpr std::string_view kLinear = "auto_deploy.torch_linear_simple.default";
constexpr std::string_view kNorm = "auto_deploy.flashinfer_rms_norm.default";
constexpr std::string_view kCopy = "aten.contiguous.default";

TEST(Misfit, AShareBelowTheBoundIsNotRoundedToIt) {
  for (const auto& [share, percent] : {std::pair{0.796, "79 %"},
                                       {0.79999999999, "79 %"},
                                       {0.79, "79 %"},
                                       {0.29, "29 %"},
                                       {0.004, "0 %"},
                                       {0.0, "0 %"}}) {
    EXPECT_EQ(
        MisfitText(share),
        percent + std::string(" of the kernel time of the trace is surely "
                              "on nodes of this dump, 80 % are needed"));
  }
}

// "node", "node!" for a kernel that has its name, "node+" for one that is told
// by those around it; "-": none.
std::vector<std::string> ByName(const Texts& instructions,
                                const std::vector<bool>& calls,
                                const Texts& kernels) {
  std::vector<std::string> out;
  for (const Assignment& one : AlignByName(instructions, calls, kernels)) {
    out.push_back(one.node == Assignment::kNone
                      ? "-"
                      : std::to_string(one.node) + (one.by_name   ? "!"
                                                    : one.by_rule ? "+"
                                                                  : ""));
  }
  return out;
}

TEST(AlignByName, InstructionsOfXlaNameTheirKernels) {
  using Out = std::vector<std::string>;
  const Texts instructions = {
      "fusion.1",      "custom-call.3", "loop_add_fusion",  "gemm_fusion_dot.4",
      "custom-call.4", "custom-call.5", "wrapped-reduce.1", "broadcast.2"};
  const std::vector<bool> calls = {false, true, false, false,
                                   true,  true, false, false};
  EXPECT_EQ(ByName(instructions, calls,
                   {"fusion_1", "sm90_xmma_gemm", "splitKreduce",
                    "loop_add_fusion", "gemm_fusion_dot_4_0", "cutlass_a",
                    "cutlass_b", "wrapped_reduce_1(float*)", "memset"}),
            (Out{"0!", "1", "1", "2!", "3", "4", "5", "6!", "-"}));
  EXPECT_EQ(
      ByName(instructions, calls,
             {"nvjet_0", "fusion_1", "nvjet_1", "loop_add_fusion", "nvjet_2"}),
      (Out{"-", "0!", "1+", "2!", "-"}));
  // Three kernels of two calls may be of either.
  EXPECT_EQ(ByName(instructions, calls,
                   {"loop_add_fusion", "a", "b", "c", "wrapped_reduce_1"}),
            (Out{"2!", "-", "-", "-", "6!"}));
  // "fusion_2" is not the second kernel of "fusion".
  EXPECT_EQ(ByName({"fusion", "copy.1", "copy-1"}, {false, false, false},
                   {"fusion", "fusion_2", "copy_1"}),
            (Out{"0!", "-", "-"}));
  EXPECT_EQ(ByName(instructions, calls, {"cutlass_a", "custom_call_3"}),
            (Out{"-", "-"}));
}

TEST(Align, OneOpMayLaunchSeveralKernels) {
  EXPECT_EQ(
      Nodes({kNorm, kLinear, kLinear},
            {"RMSNormKernel<8>", "nvjet_a", "splitKreduce_kernel", "nvjet_b"}),
      (std::vector<int>{0, 1, 1, 2}));
}

TEST(Align, KernelsThatBelongToNothingAreLeftOut) {
  EXPECT_EQ(Nodes({kNorm, kLinear},
                  {"RMSNormKernel<8>", "ncclDevKernel_AllReduce", "nvjet_a"}),
            (std::vector<int>{0, -1, 1}));
}

TEST(Align, OpsThatMayLaunchNothingAreSkipped) {
  EXPECT_EQ(Nodes({kLinear, kCopy, kNorm}, {"nvjet_a", "RMSNormKernel<8>"}),
            (std::vector<int>{0, 2}));
  EXPECT_EQ(Nodes({kLinear, kCopy, kNorm},
                  {"nvjet_a", "direct_copy_kernel", "RMSNormKernel<8>"}),
            (std::vector<int>{0, 1, 2}));
}

TEST(Align, UnknownNamesAreLearntFromTheOrder) {
  Texts ops;
  Texts kernels;
  std::vector<int> want;
  for (int layer = 0; layer < 8; ++layer) {
    for (const auto& [op, kernel] :
         {std::pair{kNorm, std::string_view("aaa")}, {kLinear, "bbb"}}) {
      want.push_back(static_cast<int>(ops.size()));
      ops.push_back(op);
      kernels.push_back(kernel);
    }
  }
  EXPECT_EQ(Nodes(ops, kernels), want);
}

TEST(Align, NothingAndTooMuch) {
  EXPECT_TRUE(Nodes({}, {}).empty());
  EXPECT_EQ(Nodes({}, {"x"}), std::vector<int>{-1});
  EXPECT_TRUE(Nodes({kLinear}, {}).empty());
  const Texts many(10000, kLinear);
  EXPECT_FALSE(AlignKernels(many, many, *Launches()).has_value());
}

TEST(Launches, TheLongestOpWins) {
  EXPECT_TRUE(Launches()->NeverLaunches("aten.view.default"));
  EXPECT_FALSE(Launches()->NeverLaunches("aten.view_as_complex.default"));
  ASSERT_EQ(Launches()->RulesFor("aten.topk.default").size(), 1U);
  EXPECT_EQ(Launches()->RulesFor("aten.topk.default")[0]->op, "aten.topk");
  EXPECT_TRUE(Launches()->RulesFor("who.knows").empty());
  EXPECT_EQ(Launches()->ShortName("void a::b<int>(char*, int)"), "a::b");
  EXPECT_EQ(
      Launches()->ShortName("void x::(anonymous namespace)::f<(int)1>(int)"),
      "x::(anonymous namespace)::f");
  EXPECT_EQ(Launches()->ShortName("bmm_E4m3_x_t128_y"), "bmm_E4m3_x");
}

}  // namespace
}  // namespace lamina::graph_kernels
