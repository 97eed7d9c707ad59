// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <chrono>
#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Process, OutputAndStatus) {
  const std::string shell = FindProgram("sh");
  ASSERT_FALSE(shell.empty());
  const auto done =
      RunProcess({shell, "-c", "echo out; echo err >&2; exit 3"}, 60);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, 3);
  EXPECT_FALSE(done->timed_out);
  EXPECT_NE(done->output.find("out\n"), std::string::npos);
  EXPECT_NE(done->output.find("err\n"), std::string::npos);
}

TEST(Process, ArgumentsMeetNoShell) {
  const auto done = RunProcess({FindProgram("echo"), "$(id); 'a b'"}, 60);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->output, "$(id); 'a b'\n");
}

TEST(Process, EndsAtTheLimitWithItsChildren) {
  const auto start = std::chrono::steady_clock::now();
  const auto done =
      RunProcess({FindProgram("sh"), "-c", "sleep 600 & sleep 600"}, 0.2);
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->timed_out);
  EXPECT_EQ(done->status, 128 + 9);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Process, MuchOutputIsCut) {
  const auto done =
      RunProcess({FindProgram("sh"), "-c", "head -c 1000000 /dev/zero"}, 60);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, 0);
  EXPECT_EQ(done->output.size(), 65536U);
}

TEST(Process, WhatIsNotThereIsAnError) {
  EXPECT_EQ(FindProgram("no-such-program-anywhere"), "");
  EXPECT_FALSE(RunProcess({"/no/such/program"}, 1).has_value());
}

}  // namespace
}  // namespace lamina
