// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compare/diff/side.h"

namespace lamina::analysis::diff {
namespace {

TEST(DiffNames, AddressesAndLinesDoNotCount) {
  EXPECT_EQ(NormalName("<lambda at 0x7f12ab34cd> x"), "<lambda at > x");
  EXPECT_EQ(NormalName("<f at 0x7f12ab34cd>"), "<f at >");
  EXPECT_EQ(NormalName("0x12 is short"), "0x12 is short");
  EXPECT_EQ(NormalName("a/b.py(123): forward"), "a/b.py: forward");
  EXPECT_EQ(NormalName("a/b.py(x): forward"), "a/b.py(x): forward");
  EXPECT_EQ(NormalName("a/b.py(12"), "a/b.py(12");
  EXPECT_EQ(NormalName(""), "");
}

TEST(DiffNames, CallsOfCudaAndHipAreTheSame) {
  EXPECT_EQ(NormalApiName("cudaMemcpyAsync"), "MemcpyAsync");
  EXPECT_EQ(NormalApiName("hipMemcpyAsync"), "MemcpyAsync");
  for (const char* name :
       {"cudaLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel",
        "cuLaunchKernelEx", "cudaLaunchKernelExC_v11060"})
    EXPECT_EQ(NormalApiName(name), "LaunchKernel");
  EXPECT_EQ(NormalApiName("cuMemsetD32Async_v2"), "MemsetD32Async");
}

TEST(DiffNames, KernelsOfCodeObjects) {
  EXPECT_EQ(NormalKernelName("gemm.kd"), "gemm");
  EXPECT_EQ(NormalKernelName("gemm"), "gemm");
}

}  // namespace
}  // namespace lamina::analysis::diff
