// SPDX-License-Identifier: Apache-2.0
#include "base/made_once.h"

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>

#include "base/parallel.h"

namespace lamina {
namespace {

using Answer = std::shared_ptr<const int>;

struct Answers {
  std::mutex mutex;
  MadeOnce<std::string> once;
  std::map<std::string, Answer> kept;
  std::map<std::string, int> made;

  template <class Make>
  Result<Answer> Ask(const std::string& key, const Make& make) {
    return once.Get(
        mutex, key, [&] { return kept[key]; },
        [&]() -> Result<Answer> {
          {
            const std::lock_guard lock(mutex);
            ++made[key];
          }
          LAMINA_ASSIGN(const int value, make());
          const std::lock_guard lock(mutex);
          return kept[key] = std::make_shared<const int>(value);
        });
  }
};

TEST(MadeOnce, IsMadeOnceForAllWhoAskAtATime) {
  Answers answers;
  constexpr int kThreads = 8;
  Answer got[2 * kThreads];
  RunWorkers(kThreads, [&](int worker) {
    for (int k = 0; k < 2; ++k) {
      got[2 * worker + k] =
          *answers.Ask(std::to_string(k), [&]() -> Result<int> {
            // The others have time to ask.
            for (int i = 0; i < 20; ++i) std::this_thread::yield();
            return k;
          });
    }
  });
  EXPECT_EQ(answers.made["0"], 1);
  EXPECT_EQ(answers.made["1"], 1);
  for (int i = 0; i < 2 * kThreads; ++i) EXPECT_EQ(got[i], got[i % 2]);
}

TEST(MadeOnce, IsMadeAnewWhereItFailed) {
  Answers answers;
  EXPECT_FALSE(
      answers.Ask("a", []() -> Result<int> { return Fail(CancelledError()); }));
  EXPECT_EQ(**answers.Ask("a", []() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(answers.made["a"], 2);
}

// One who waits is stopped, and the maker goes on.
TEST(MadeOnce, WhoWaitsHearsAStop) {
  Answers answers;
  std::atomic<bool> begun = false, waited = false;
  std::thread maker([&] {
    EXPECT_EQ(**answers.Ask("a",
                            [&]() -> Result<int> {
                              begun = true;
                              while (!waited) std::this_thread::yield();
                              return 5;
                            }),
              5);
  });
  while (!begun) std::this_thread::yield();
  StopFlag flag = true;
  const Result<Answer> stopped = EndedByStop(&flag, [&] {
    return answers.Ask("a", []() -> Result<int> { return 6; });
  });
  waited = true;
  maker.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(answers.made["a"], 1);
}

// And where the maker is stopped, who waits makes it.
TEST(MadeOnce, AStoppedMakerLeavesItToWhoWaits) {
  Answers answers;
  StopFlag flag = false;
  std::atomic<bool> begun = false;
  std::thread maker([&] {
    const auto stopped = EndedByStop(&flag, [&] {
      return answers.Ask("a", [&]() -> Result<int> {
        begun = true;
        for (;;) LookForStop();
      });
    });
    EXPECT_FALSE(stopped);
  });
  while (!begun) std::this_thread::yield();
  flag = true;
  EXPECT_EQ(**answers.Ask("a", []() -> Result<int> { return 7; }), 7);
  maker.join();
  EXPECT_EQ(answers.made["a"], 2);
}

}  // namespace
}  // namespace lamina
