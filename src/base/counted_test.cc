// SPDX-License-Identifier: Apache-2.0
#include "base/counted.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(Counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(Counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(Counted(1234567, "kernel"), "1,234,567 kernels");
  EXPECT_EQ(Counted(1, "pass", "passes"), "1 pass");
  EXPECT_EQ(Counted(2, "pass", "passes"), "2 passes");
}

}  // namespace
}  // namespace lamina
