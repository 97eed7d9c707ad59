// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/parallel.h"

namespace lamina {
namespace {

TEST(Stop, EndsWorkThatLooks) {
  StopFlag flag = false;
  int done = 0;
  const Result<int> result = EndedByStop(&flag, [&]() -> Result<int> {
    for (int i = 0; i < 10; ++i) {
      LookForStop();
      ++done;
      if (i == 3) flag = true;
    }
    return done;
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(done, 4);
  EXPECT_EQ(StopOfThread(), nullptr);
}

TEST(Stop, IsNoneOutsideOfAScope) {
  LookForStop();
  StopFlag flag = true;
  const Result<int> result = EndedByStop(&flag, [&]() -> Result<int> {
    const StopScope none(nullptr);
    LookForStop();
    return 7;
  });
  EXPECT_EQ(*result, 7);
}

TEST(Stop, OfAnOuterScopeHoldsWhereNoneIsGiven) {
  StopFlag flag = true;
  const auto inner = []() -> Result<int> {
    return EndedByStop(nullptr, []() -> Result<int> {
      LookForStop();
      return 1;
    });
  };
  EXPECT_EQ(EndedByStop(&flag, inner).error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(*inner(), 1);
}

// Items that were not begun are left out, on any thread; threads of a
// ParallelFor in another one look at the same flag.
TEST(Stop, EndsParallelWork) {
  for (const int threads : {1, 2, 8}) {
    StopFlag flag = false;
    std::atomic<int> begun = 0;
    const Result<int> result = EndedByStop(&flag, [&]() -> Result<int> {
      ParallelFor(threads, 1000, [&](size_t) {
        ParallelFor(2, 1000, [&](size_t) {
          if (++begun == 20) flag = true;
        });
      });
      return 1;
    });
    ASSERT_FALSE(result) << threads;
    EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
    EXPECT_LT(begun, 20 + 64) << threads;
  }
}

// Workers may wait for each other: they end by what they look at themselves.
TEST(Stop, LeavesWorkersAlone) {
  StopFlag flag = true;
  const Result<int> result = EndedByStop(&flag, [&]() -> Result<int> {
    std::atomic<int> done = 0;
    RunWorkers(4, [&](int) { ParallelFor(2, 10, [&](size_t) { ++done; }); });
    return done.load();
  });
  EXPECT_EQ(*result, 40);
}

TEST(Stop, IsHeardByWhoWaits) {
  StoppableMutex mutex;
  const std::unique_lock held(mutex);
  const std::unique_lock again(mutex);  // recursive
  StopFlag flag = false;
  Result<int> result = 0;
  std::thread other([&] {
    result = EndedByStop(&flag, [&]() -> Result<int> {
      const std::lock_guard waits(mutex);
      return 1;
    });
  });
  flag = true;
  other.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
}

TEST(StoppableMutex, IsForOneThreadAtATime) {
  StoppableMutex mutex;
  StopFlag flag = false;
  int64_t sum = 0;
  ParallelFor(8, 8, [&](size_t i) {
    const StopScope scope(i % 2 == 0 ? &flag : nullptr);
    for (int n = 0; n < 1000; ++n) {
      const std::lock_guard lock(mutex);
      const std::lock_guard inner(mutex);
      ++sum;
    }
  });
  EXPECT_EQ(sum, 8000);
}

}  // namespace
}  // namespace lamina
