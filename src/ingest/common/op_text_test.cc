// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/op_text.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lamina::ingest
