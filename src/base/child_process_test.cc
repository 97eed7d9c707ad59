// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <csignal>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLong{60'000};

TEST(ChildProcess, PassesInputAndCollectsOutput) {
  // More than a pipe holds, so that both sides have to move.
  const std::string input(1 << 20, 'x');
  const auto result = RunChild({"/bin/cat"}, input, kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->out, input);
  EXPECT_EQ(result->err, "");
}

TEST(ChildProcess, KeepsStatusAndErrors) {
  const auto result =
      RunChild({"/bin/sh", "-c", "echo out; echo bad >&2; exit 3"}, "", kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "bad\n");
}

// Where children are not waited for, as below some job runners, the system
// keeps no status of them.
TEST(ChildProcess, KeepsStatusWhereChildrenAreIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  const auto result = RunChild({"/bin/sh", "-c", "exit 3"}, "", kLong);
  EXPECT_EQ(std::signal(SIGCHLD, SIG_DFL), SIG_IGN);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
}

TEST(ChildProcess, CutsLongOutput) {
  const auto result = RunChild({"/bin/cat"}, std::string(300'000, 'x'), kLong,
                               /*max_output=*/1000);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->out.size(), 1000);
}

TEST(ChildProcess, SurvivesAChildThatDoesNotRead) {
  const auto result = RunChild({"/bin/true"}, std::string(1 << 20, 'x'), kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
}

TEST(ChildProcess, StopsAtTheLimitWithWhatItStarted) {
  // The pipe stays open in the grandchild.
  const auto begin = steady_clock::now();
  const auto result = RunChild({"/bin/sh", "-c", "sleep 100 & sleep 100"}, "",
                               milliseconds(200));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->exit_status, -1);
  EXPECT_LT(steady_clock::now() - begin, milliseconds(50'000));
  // One that closes its output and goes on.
  const auto quiet =
      RunChild({"/bin/sh", "-c", "exec >&- 2>&-; exec sleep 100"}, "",
               milliseconds(200));
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->timed_out);
}

TEST(ChildProcess, FindsPrograms) {
  ASSERT_TRUE(FindProgram("sh"));
  EXPECT_TRUE(FindProgram("sh")->ends_with("/sh"));
  EXPECT_FALSE(FindProgram("no-such-program-of-lamina"));
  EXPECT_FALSE(RunChild({"/no/such/program"}, "", kLong));
}

}  // namespace
}  // namespace lamina
