// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "base/interval_set.h"
#include "base/key_index.h"
#include "base/made_once.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "base/sequence_match.h"

namespace lamina {

namespace {

// The obviously right twin: one element per nanosecond.
std::set<int64_t> Points(const std::vector<Interval>& intervals) {
  std::set<int64_t> points;
  for (const Interval& interval : intervals) {
    for (int64_t t = interval.start_ns; t < interval.end_ns; ++t)
      points.insert(t);
  }
  return points;
}
std::set<int64_t> Points(const IntervalSet& set) {
  return Points({set.intervals().begin(), set.intervals().end()});
}

std::vector<Interval> RandomIntervals(std::mt19937& random) {
  std::vector<Interval> out(random() % 8);
  for (Interval& interval : out) {
    interval.start_ns = static_cast<int64_t>(random() % 30);
    // Also empty and negative ones.
    interval.end_ns =
        interval.start_ns + static_cast<int64_t>(random() % 9) - 2;
  }
  return out;
}

TEST(IntervalSet, MatchesPointSets) {
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    const auto x = RandomIntervals(random);
    const auto y = RandomIntervals(random);
    const IntervalSet a = IntervalSet::Of(x);
    const IntervalSet b = IntervalSet::Of(y);
    const auto p = Points(x);
    const auto q = Points(y);
    ASSERT_EQ(Points(a), p);
    ASSERT_EQ(a.length_ns(), static_cast<int64_t>(p.size()));
    std::set<int64_t> all = p, minus, both;
    all.insert(q.begin(), q.end());
    for (const int64_t t : p) (q.contains(t) ? both : minus).insert(t);
    ASSERT_EQ(Points(a.Union(b)), all);
    ASSERT_EQ(a.Union(b).length_ns(), static_cast<int64_t>(all.size()));
    ASSERT_EQ(Points(a.Minus(b)), minus);
    ASSERT_EQ(a.Minus(b).length_ns(), static_cast<int64_t>(minus.size()));
    ASSERT_EQ(Points(a.Intersect(b)), both);
    // Disjoint, in order, not touching.
    const auto intervals = a.intervals();
    for (size_t i = 1; i < intervals.size(); ++i)
      ASSERT_GT(intervals[i].start_ns, intervals[i - 1].end_ns);
    // Gaps are what is left of a window.
    std::set<int64_t> rest = Points({{5, 25}});
    for (const int64_t t : p) rest.erase(t);
    ASSERT_EQ(Points(a.Gaps({5, 25})), rest);
  }
}

TEST(IntervalSet, TouchingIntervalsJoin) {
  const IntervalSet set = IntervalSet::Of({{0, 5}, {5, 9}, {20, 21}});
  ASSERT_EQ(set.intervals().size(), 2u);
  EXPECT_EQ(set.length_ns(), 10);
}

}  // namespace

namespace {

constexpr std::array<std::string_view, 8> kKeys = {
    "x",
    "y",
    "id",
    "di",
    "start_timestamp",
    "start_timestamq",
    "Process Group Description",
    "thirty-two characters and no more"};
static_assert(kKeys[7].size() == 33);

// The key that is too long, cut.
constexpr std::array<std::string_view, 8> Keys() {
  auto keys = kKeys;
  keys[7].remove_suffix(1);
  return keys;
}
constexpr KeyIndex<8> kIndex{Keys()};

size_t Find(const std::string& text) {
  std::string padded = text + std::string(kIndex.kReadable, '#');
  return kIndex.Find(std::string_view(padded).substr(0, text.size()));
}

TEST(KeyIndex, FindsEveryKeyAndNothingElse) {
  const auto keys = Keys();
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(Find(std::string(keys[i])), i);
  EXPECT_EQ(Find(""), keys.size());
  EXPECT_EQ(Find(std::string(kKeys[7])), keys.size());
  EXPECT_EQ(Find("start_timestam"), keys.size());

  // One character changed: the slow twin says which key that is, if any.
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text(keys[random() % keys.size()]);
    text[random() % text.size()] = static_cast<char>(random());
    size_t expected = 0;
    while (expected < keys.size() && keys[expected] != text) ++expected;
    EXPECT_EQ(Find(text), expected) << text;
  }
}

}  // namespace

namespace {

struct Item {
  int key;
  int order;
  bool operator==(const Item&) const = default;
};

void Check(std::vector<Item> items) {
  const auto less = [](const Item& a, const Item& b) { return a.key < b.key; };
  for (size_t i = 0; i < items.size(); ++i)
    items[i].order = static_cast<int>(i);
  std::vector<Item> expected = items;
  std::stable_sort(expected.begin(), expected.end(), less);
  for (const int threads : {1, 2, 5}) {
    std::vector<Item> sorted = items;
    RunSort(sorted, threads, less);
    ASSERT_EQ(sorted, expected);
  }
}

TEST(RunSort, IsAStableSort) {
  std::mt19937 random(3);
  Check({});
  Check({{1, 0}});
  for (int round = 0; round < 60; ++round) {
    // A few sorted runs, as profilers write them.
    std::vector<Item> items;
    const size_t runs = 1 + random() % 9;
    for (size_t r = 0; r < runs; ++r) {
      int key = static_cast<int>(random() % 50);
      for (size_t i = random() % 60; i > 0; --i) {
        key += static_cast<int>(random() % 3);
        items.push_back({key, 0});
      }
    }
    Check(items);
  }
  // Random and reversed data, more than one block of the fallback.
  std::vector<Item> items(20000);
  for (Item& item : items) item.key = static_cast<int>(random() % 1000);
  Check(items);
  for (size_t i = 0; i < items.size(); ++i) items[i].key = -static_cast<int>(i);
  Check(items);
}

}  // namespace

namespace {

using Sequence = std::vector<uint64_t>;

// Length of the longest common subsequence by the table of all prefixes.
size_t SlowLength(const Sequence& a, const Sequence& b) {
  std::vector<std::vector<size_t>> length(a.size() + 1,
                                          std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      length[i][j] = a[i - 1] == b[j - 1]
                         ? length[i - 1][j - 1] + 1
                         : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  return length[a.size()][b.size()];
}

void ExpectValid(const Sequence& a, const Sequence& b,
                 const std::vector<SequencePair>& pairs) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_LT(pairs[i].a, a.size());
    ASSERT_LT(pairs[i].b, b.size());
    EXPECT_EQ(a[pairs[i].a], b[pairs[i].b]);
    if (i > 0) {
      EXPECT_LT(pairs[i - 1].a, pairs[i].a);
      EXPECT_LT(pairs[i - 1].b, pairs[i].b);
    }
  }
}

Sequence Random(std::mt19937& random, size_t max_size, uint64_t letters) {
  Sequence out(random() % (max_size + 1));
  for (uint64_t& value : out) value = random() % letters;
  return out;
}

TEST(MatchSequences, FindsTheLongestCommonSubsequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t letters = 1 + random() % 6;
    const Sequence a = Random(random, 14, letters);
    const Sequence b = Random(random, 14, letters);
    const auto pairs = MatchSequences(a, b);
    ExpectValid(a, b, pairs);
    ASSERT_EQ(pairs.size(), SlowLength(a, b)) << "round " << round;
  }
}

TEST(MatchSequences, StaysValidWhenTheSearchIsCutShort) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    const Sequence a = Random(random, 60, 5);
    const Sequence b = Random(random, 60, 5);
    const auto pairs = MatchSequences(a, b, 1 + random() % 4);
    ExpectValid(a, b, pairs);
    EXPECT_LE(pairs.size(), SlowLength(a, b));
  }
}

TEST(MatchSequences, IsQuickOnLongSequencesThatShareNoOrder) {
  std::mt19937 random(3);
  Sequence a(200000), b(200000);
  for (uint64_t& value : a) value = random() % 1000;
  for (uint64_t& value : b) value = random() % 1000;
  ExpectValid(a, b, MatchSequences(a, b, 64));
}

TEST(MatchSequences, KeepsEqualEnds) {
  const Sequence a{1, 2, 3, 4, 5};
  const Sequence b{1, 2, 9, 4, 5};
  EXPECT_EQ(MatchSequences(a, b),
            (std::vector<SequencePair>{{0, 0}, {1, 1}, {3, 3}, {4, 4}}));
}

}  // namespace

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
