// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/rocm.h"

#include <gtest/gtest.h>
#include <limits>

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
