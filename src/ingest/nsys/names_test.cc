// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/names.h"

#include <gtest/gtest.h>

namespace lamina::ingest::nsys {
namespace {

TEST(NsysNames, ApiNamesLoseTheirVersions) {
  EXPECT_EQ(PlainApiName("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(PlainApiName("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
  EXPECT_EQ(PlainApiName("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
  EXPECT_EQ(PlainApiName("cuMemAlloc_v2"), "cuMemAlloc");
  EXPECT_EQ(PlainApiName("cuLaunchKernelEx"), "cuLaunchKernelEx");
  EXPECT_EQ(PlainApiName("call_v"), "call_v");
  EXPECT_EQ(PlainApiName("_v1"), "_v1");
  EXPECT_EQ(PlainApiName(""), "");
  EXPECT_EQ(PlainApiName("12"), "12");
}

TEST(NsysNames, DriverCalls) {
  EXPECT_TRUE(IsDriverCall("cuLaunchKernel"));
  EXPECT_FALSE(IsDriverCall("cudaLaunchKernel"));
  EXPECT_FALSE(IsDriverCall("cu"));
}

TEST(NsysNames, OpsOfEmitNvtx) {
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

TEST(NsysNames, OtherTextsAreNoOps) {
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

TEST(NsysNames, CopyDirections) {
  EXPECT_EQ(CopyDirection("CUDA_MEMCPY_KIND_HTOD"), "HtoD");
  EXPECT_EQ(CopyDirection("CUDA_MEMCPY_KIND_UVM_DTOH"), "Unified DtoH");
  EXPECT_EQ(CopyDirection("other"), "other");
}

}  // namespace
}  // namespace lamina::ingest::nsys
