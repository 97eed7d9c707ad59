// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ingest/nsys/export_facts.h"

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

TEST(NsysNames, CopyDirections) {
  EXPECT_EQ(CopyDirection("CUDA_MEMCPY_KIND_HTOD"), "HtoD");
  EXPECT_EQ(CopyDirection("CUDA_MEMCPY_KIND_UVM_DTOH"), "Unified DtoH");
  EXPECT_EQ(CopyDirection("other"), "other");
}

}  // namespace
}  // namespace lamina::ingest::nsys
