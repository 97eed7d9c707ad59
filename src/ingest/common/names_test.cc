// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <limits>

#include "ingest/common/pytorch.h"
#include "ingest/common/rocm.h"

namespace lamina::ingest {

namespace {

TEST(OpText, OpsOfEmitNvtx) {
  OpText op;
  ASSERT_TRUE(ParseOpText(
      "aten::mm, seq = 12, op_id = 317177, sizes = [[2, 3], [3, 4]]", op));
  EXPECT_EQ(op.name, "aten::mm");
  EXPECT_EQ(op.sequence, 12);
  EXPECT_EQ(op.op_id, 317177);
  EXPECT_EQ(op.sizes, "[[2, 3], [3, 4]]");

  ASSERT_TRUE(ParseOpText("flash_attn::fwd, op_id = 3", op));
  EXPECT_EQ(op.name, "flash_attn::fwd");
  EXPECT_EQ(op.sequence, trace::kNoInt);
  EXPECT_EQ(op.op_id, 3);
  EXPECT_EQ(op.sizes, "");

  ASSERT_TRUE(ParseOpText("aten::relu", op));
  EXPECT_EQ(op.name, "aten::relu");
}

TEST(OpText, OtherTextsAreNoOps) {
  OpText op;
  EXPECT_FALSE(ParseOpText("forward", op));
  EXPECT_FALSE(ParseOpText("step, op_id = none", op));
  EXPECT_FALSE(ParseOpText("", op));
  // Sizes are taken over as text of a JSON list or not at all.
  for (const char* sizes : {"[[2, 3]", "[2]]", "[] []", "[\"x\"]", "[2}"}) {
    const std::string text = std::string("aten::mm, sizes = ") + sizes;
    ASSERT_TRUE(ParseOpText(text, op)) << sizes;
    EXPECT_EQ(op.sizes, "") << sizes;
  }
}

TEST(OpText, NumbersAreCutOut) {
  std::string pattern;
  const OpNumbers numbers = CutNumbers(
      "aten::mm, seq = 12, op_id = 317177, sizes = [[2, 3], [3, 4]]", pattern);
  EXPECT_EQ(pattern, "aten::mm, seq = 0, op_id = 0, sizes = [[2, 3], [3, 4]]");
  EXPECT_EQ(numbers.sequence, 12);
  EXPECT_EQ(numbers.op_id, 317177);
}

// Whatever stands in a text, pattern and numbers are all of it, and say the
// same about the op.
TEST(OpText, NumbersAndPatternAreTheText) {
  for (const std::string text :
       {"", "forward", "aten::relu", "f, op_id = 3", "f, op_id = 0",
        "f, op_id = 007", "f, op_id = -5", "f, op_id = ", "f, op_id = 1e3",
        "f, op_id = 123456789012345678", "f, op_id = 9223372036854775807",
        "f, op_id = 99999999999999999999", "f, seq = 5", "f, seq = , op_id = 2",
        "f, seq = 1, op_id = 2, op_id = 3", "f, op_id = 2, seq = 1",
        "aten::x, sizes = [[1]], op_id = 4", "aten::x, op_id = [4, 5]",
        "aten::x, seq = 00, op_id = 8, sizes = [], \xff"}) {
    std::string pattern;
    const OpNumbers numbers = CutNumbers(text, pattern);
    EXPECT_EQ(PutNumbers(pattern, numbers), text);
    OpText expected;
    OpText op;
    ASSERT_EQ(ParseOpText(pattern, op), ParseOpText(text, expected)) << text;
    if (numbers.sequence != trace::kNoInt) op.sequence = numbers.sequence;
    if (numbers.op_id != trace::kNoInt) op.op_id = numbers.op_id;
    if (op.name.empty()) continue;
    EXPECT_EQ(op.name, expected.name) << text;
    EXPECT_EQ(op.sequence, expected.sequence) << text;
    EXPECT_EQ(op.op_id, expected.op_id) << text;
    EXPECT_EQ(op.sizes, expected.sizes) << text;
  }
}

}  // namespace

}  // namespace lamina::ingest

namespace lamina::ingest::rocm {

namespace {

using trace::Kind;
using trace::kNoInt;

TEST(Rocm, BlocksOfWorkItemsAreRoundedUp) {
  EXPECT_EQ(Blocks(65536, 256), 256u);
  EXPECT_EQ(Blocks(1000, 64), 16u);
  EXPECT_EQ(Blocks(1, 1024), 1u);
  // Not recorded.
  EXPECT_EQ(Blocks(kNoInt, 64), 1u);
  EXPECT_EQ(Blocks(64, 0), 1u);
  EXPECT_EQ(Blocks(std::numeric_limits<int64_t>::max(), 1), 0xFFFFFFFFu);
}

TEST(Rocm, KernelsOfTheRuntimeAreCopiesAndFills) {
  EXPECT_EQ(KernelKind("__amd_rocclr_copyBufferAligned"), Kind::kMemcpy);
  EXPECT_EQ(KernelKind("__amd_rocclr_fillBufferAligned"), Kind::kMemset);
  EXPECT_EQ(KernelKind("my_copyBuffer"), Kind::kKernel);
  EXPECT_EQ(KernelKind("__amd_rocclr_gwsInit"), Kind::kKernel);
  EXPECT_EQ(PlainKernelName("gemm.kd"), "gemm");
  EXPECT_EQ(PlainKernelName("gemm"), "gemm");
}

TEST(Rocm, CorrelationIdsOfProcessesStayApart) {
  EXPECT_EQ(Correlation(0, 7), 7);
  EXPECT_NE(Correlation(1, 7), Correlation(2, 7));
  EXPECT_EQ(Correlation(1, 0), kNoInt);
  EXPECT_EQ(Correlation(1, std::nullopt), kNoInt);
  EXPECT_EQ(Correlation(1, std::numeric_limits<int64_t>::max()), kNoInt);
}

}  // namespace

}  // namespace lamina::ingest::rocm
