// SPDX-License-Identifier: Apache-2.0
//
// Against sums over all rows, made anew for each question.
//
// Longer than most: tiles, sums and finding share the events and their twin.
#include "page/live.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <thread>

namespace lamina::page {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kFamilies = 5;
const std::vector<uint8_t> kGroupOf = {0, 1, 2, 1, 0};
constexpr size_t kGroups = 3;

// In the last lane events overlap, one of them for most of the time; the
// second one is empty.
std::vector<DeviceRow> MakeRows(uint32_t seed, size_t per_lane) {
  std::mt19937 random(seed);
  std::vector<DeviceRow> rows;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    int64_t at = random() % 5000;
    for (size_t i = 0; lane != 1 && i < per_lane; ++i) {
      DeviceRow row;
      row.lane = lane;
      row.start_ns = at;
      row.dur_ns = random() % 9 == 0 ? 0 : random() % 20000;
      if (lane == 3 && i == 3) row.dur_ns = 6'000'000'000;
      row.family = random() % kFamilies;
      row.kernel = 1 + random() % 70'000;
      row.op = random() % 300;
      row.step = static_cast<uint32_t>(i / 500);
      row.slice = trace::SliceId(static_cast<uint32_t>(rows.size()));
      at += (lane == 3 ? static_cast<int64_t>(random() % 9000) : row.dur_ns) +
            static_cast<int64_t>(random() % 800);
      rows.push_back(row);
    }
  }
  return rows;
}

std::shared_ptr<LiveEvents> Make(const std::vector<DeviceRow>& rows,
                                 int threads = 2) {
  auto made = LiveEvents::Make(rows, kLanes, kGroupOf, kGroups, threads);
  EXPECT_TRUE(made);
  return *made;
}

LiveEvents::SelectionPointer Select(LiveEvents& events, const RowTest& test,
                                    IntervalSet clip = {}) {
  static int number = 0;
  auto made = events.Select(test ? std::to_string(++number) : "", test,
                            std::move(clip), {});
  EXPECT_TRUE(made);
  return *made;
}

int64_t Inside(const DeviceRow& row, int64_t from, int64_t to) {
  return std::max<int64_t>(0, std::min(row.start_ns + row.dur_ns, to) -
                                  std::max(row.start_ns, from));
}
bool Overlaps(const DeviceRow& row, Interval window) {
  return row.start_ns < window.end_ns &&
         (row.start_ns + row.dur_ns > window.start_ns ||
          row.start_ns >= window.start_ns);
}

const RowTest kSome = [](const DeviceRow& row) {
  return row.family != 2 && row.op % 3 == 0;
};

// Windows from the whole trace to a few nanoseconds.
std::vector<Interval> Windows(const std::vector<DeviceRow>& rows,
                              std::mt19937& random) {
  int64_t last = 1;
  for (const DeviceRow& row : rows)
    last = std::max(last, row.start_ns + row.dur_ns);
  std::vector<Interval> windows = {
      {0, last}, {-last, 2 * last}, {last, last + 9}};
  for (int64_t span = last; span > 0; span /= 7) {
    for (int i = 0; i < 3; ++i) {
      const auto from = static_cast<int64_t>(
          random() % static_cast<uint64_t>(last - span + 1));
      windows.push_back({from, from + span});
    }
  }
  return windows;
}

TEST(LiveEventsTest, RowsAreThoseThatWereGiven) {
  const auto rows = MakeRows(1, 3000);
  const auto events = Make(rows);
  ASSERT_EQ(events->size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DeviceRow row = events->Row(i);
    EXPECT_EQ(row.start_ns, rows[i].start_ns);
    EXPECT_EQ(row.dur_ns, rows[i].dur_ns);
    EXPECT_EQ(row.lane, rows[i].lane);
    EXPECT_EQ(row.kernel, rows[i].kernel);
    EXPECT_EQ(row.family, rows[i].family);
    EXPECT_EQ(row.op, rows[i].op);
    EXPECT_EQ(row.step, rows[i].step);
    EXPECT_EQ(row.slice.value, rows[i].slice.value);
  }
}

TEST(LiveEventsTest, TilesAddUpToTheEvents) {
  std::mt19937 random(5);
  size_t exact = 0, bucketed = 0;
  for (const size_t per_lane : {3u, 2000u, 9000u}) {
    const auto rows = MakeRows(2, per_lane);
    const auto events = Make(rows);
    for (const RowTest& test : {RowTest(), kSome}) {
      const auto selection = Select(*events, test);
      for (const Interval window : Windows(rows, random)) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          std::vector<uint32_t> inside;
          for (uint32_t i = 0; i < rows.size(); ++i)
            if (rows[i].lane == lane && Overlaps(rows[i], window))
              inside.push_back(i);
          const auto tile =
              events->MakeTile(lane, window, 300, 450, selection, {});
          ASSERT_TRUE(tile);
          ASSERT_EQ(tile->exact, inside.size() <= 450);
          if (tile->exact) {
            ++exact;
            EXPECT_EQ(tile->rows, inside);
            for (size_t k = 0; k < inside.size(); ++k)
              EXPECT_EQ(tile->passes[k], !test || test(rows[inside[k]]));
            continue;
          }
          ++bucketed;
          ASSERT_LE(tile->busy_ns.size(), 301u);
          ASSERT_LE(tile->first_ns, window.start_ns);
          const auto size = static_cast<int64_t>(tile->busy_ns.size());
          ASSERT_GE(tile->first_ns + size * tile->width_ns, window.end_ns);
          ASSERT_EQ(tile->first_ns % tile->width_ns, 0);
          // Every bucket, its groups too.
          for (int64_t b = 0; b < size; ++b) {
            const int64_t from = tile->first_ns + b * tile->width_ns;
            std::vector<int64_t> groups(kGroups);
            int64_t busy = 0, passing = 0;
            for (const uint32_t i : inside) {
              const int64_t ns = Inside(rows[i], from, from + tile->width_ns);
              busy += ns;
              if (test && !test(rows[i])) continue;
              passing += ns;
              groups[kGroupOf[rows[i].family]] += ns;
            }
            // The first and the last bucket reach beyond the window.
            if (b == 0 || b + 1 == size) continue;
            ASSERT_EQ(tile->busy_ns[static_cast<size_t>(b)], busy);
            ASSERT_EQ(tile->pass_ns[static_cast<size_t>(b)], passing);
            ASSERT_EQ(groups[tile->group[static_cast<size_t>(b)]],
                      *std::max_element(groups.begin(), groups.end()));
          }
          int64_t sum = 0, all = 0;
          for (const int64_t ns : tile->busy_ns) sum += ns;
          for (const DeviceRow& row : rows) {
            if (row.lane == lane)
              all += Inside(row, tile->first_ns,
                            tile->first_ns + size * tile->width_ns);
          }
          EXPECT_EQ(sum, all);
        }
      }
    }
  }
  EXPECT_GT(exact, 100u);
  EXPECT_GT(bucketed, 50u);
}

// From the whole trace to one event, every zoom holds what the one above it
// has there.
TEST(LiveEventsTest, ZoomsKeepTheirSums) {
  const auto rows = MakeRows(3, 40'000);
  const auto events = Make(rows);
  const auto all = Select(*events, nullptr);
  Interval window{0, int64_t{1} << 29};
  std::mt19937 random(9);
  auto above = events->MakeTile(0, window, 256, 100, all, {});
  ASSERT_TRUE(above);
  while (!above->exact) {
    const size_t bucket = random() % (above->busy_ns.size() - 1);
    window.start_ns =
        above->first_ns + static_cast<int64_t>(bucket) * above->width_ns;
    window.end_ns = window.start_ns + above->width_ns;
    auto below = events->MakeTile(0, window, 256, 100, all, {});
    ASSERT_TRUE(below);
    int64_t sum = 0;
    for (const int64_t ns : below->busy_ns) sum += ns;
    for (const uint32_t row : below->rows)
      sum += Inside(rows[row], window.start_ns, window.end_ns);
    ASSERT_EQ(sum, above->busy_ns[bucket]);
    above = std::move(below);
  }
}

TEST(LiveEventsTest, SumsAreThoseOfTheRows) {
  const auto rows = MakeRows(4, 70'000);
  std::vector<size_t> columns;
  for (size_t i = 0; i < LiveColumns().size(); ++i) columns.push_back(i);
  const std::vector<Interval> spans = {{1'000'000, 90'000'000},
                                       {100'000'000, 100'000'300}};
  for (const int threads : {1, 3}) {
    const auto events = Make(rows, threads);
    for (const bool clipped : {false, true}) {
      const auto selection = Select(
          *events, kSome, clipped ? IntervalSet::Of(spans) : IntervalSet());
      const auto sums = events->SumUp(columns, selection, {});
      ASSERT_TRUE(sums);
      LiveEvents::Sum all;
      std::map<uint32_t, LiveEvents::Sum> by_op, by_kernel, by_lane;
      for (const DeviceRow& row : rows) {
        if (!kSome(row)) continue;
        int64_t ns = clipped ? 0 : row.dur_ns;
        for (const Interval& span : spans)
          if (clipped) ns += Inside(row, span.start_ns, span.end_ns);
        for (LiveEvents::Sum* to :
             {&all, &by_op[row.op], &by_kernel[row.kernel],
              &by_lane[row.lane]}) {
          ++to->events;
          to->time_ns += ns;
        }
      }
      EXPECT_EQ(sums->all.events, all.events);
      EXPECT_EQ(sums->all.time_ns, all.time_ns);
      const auto expect = [&](std::string_view name,
                              std::map<uint32_t, LiveEvents::Sum>& of) {
        const auto at =
            std::ranges::find(LiveColumns(), name, &LiveColumn::name) -
            LiveColumns().begin();
        const auto& found = sums->by[static_cast<size_t>(at)];
        for (uint32_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].events, of[i].events) << name;
          EXPECT_EQ(found[i].time_ns, of[i].time_ns) << name;
        }
      };
      expect("op", by_op);
      expect("kernel", by_kernel);
      expect("lane", by_lane);
    }
  }
}

TEST(LiveEventsTest, FindsEveryEventOnceInOrder) {
  const auto rows = MakeRows(6, 1500);
  const auto events = Make(rows);
  const auto selection = Select(*events, kSome);
  std::mt19937 random(11);
  for (const Interval window : Windows(rows, random)) {
    for (const auto order :
         {LiveEvents::Order::kLongest, LiveEvents::Order::kStart}) {
      std::vector<uint32_t> expected;
      int64_t ns = 0;
      for (uint32_t i = 0; i < rows.size(); ++i) {
        if (!Overlaps(rows[i], window) || !kSome(rows[i])) continue;
        expected.push_back(i);
        ns += Inside(rows[i], window.start_ns, window.end_ns);
      }
      std::stable_sort(expected.begin(), expected.end(),
                       [&](uint32_t a, uint32_t b) {
                         return order == LiveEvents::Order::kLongest
                                    ? rows[a].dur_ns > rows[b].dur_ns
                                    : rows[a].start_ns < rows[b].start_ns;
                       });
      std::vector<uint32_t> found;
      std::optional<uint32_t> after;
      for (;;) {
        const auto part = events->Find(window, order, 97, after, selection, {});
        ASSERT_TRUE(part);
        ASSERT_EQ(part->all.events, expected.size());
        ASSERT_EQ(part->all.time_ns, ns);
        found.insert(found.end(), part->rows.begin(), part->rows.end());
        if (part->rows.size() < 97) break;
        after = part->rows.back();
      }
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(LiveEventsTest, WhatIsKeptIsBounded) {
  const auto rows = MakeRows(7, 20'000);
  const auto events = Make(rows);
  constexpr uint64_t kMost = 100'000;
  events->KeepAtMost(kMost);
  uint64_t most = 0;
  const auto ask = [&](uint32_t i) {
    const RowTest test = [i](const DeviceRow& row) { return row.op == i; };
    const auto selection =
        events->Select("op " + std::to_string(i), test, {}, {});
    ASSERT_TRUE(selection);
    const uint32_t lane = i % 3 == 1 ? 3 : i % 3;
    const auto tile =
        events->MakeTile(lane, {0, 9'000'000'000}, 100, 100, *selection, {});
    ASSERT_TRUE(tile);
    int64_t passing = 0, expected = 0;
    for (const int64_t ns : tile->pass_ns) passing += ns;
    for (const DeviceRow& row : rows)
      expected += row.lane == lane && test(row) ? row.dur_ns : 0;
    ASSERT_EQ(passing, expected);
    most = std::max(most, events->KeptBytes());
  };
  for (uint32_t i = 0; i < 60; ++i) ask(i);
  EXPECT_GT(most, kMost / 2);
  EXPECT_LE(most, kMost);
  ask(0);  // again, when it has gone
}

TEST(LiveEventsTest, AsksOfManyThreadsAreAnswers) {
  const auto rows = MakeRows(8, 20'000);
  const auto events = Make(rows);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 12; ++i) {
        const uint32_t op = (t + i) % 5;
        const auto selection = events->Select(
            "op " + std::to_string(op),
            [op](const DeviceRow& row) { return row.op == op; }, {}, {});
        ASSERT_TRUE(selection);
        const std::vector<size_t> by = {0};
        const auto sums = events->SumUp(by, *selection, {});
        ASSERT_TRUE(sums);
        const auto tile =
            events->MakeTile(0, {0, int64_t{1} << 40}, 50, 10, *selection, {});
        ASSERT_TRUE(tile);
        int64_t passing = 0;
        for (const int64_t ns : tile->pass_ns) passing += ns;
        EXPECT_EQ(passing, sums->by[0].empty() ? 0 : sums->by[0][0].time_ns);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LiveEventsTest, StopsWhenItIsToldTo) {
  const auto rows = MakeRows(9, 200'000);
  const auto events = Make(rows);
  const auto all = Select(*events, nullptr);
  const std::atomic<bool> stop = true;
  const LiveWatch stopped{&stop};
  LiveWatch late;
  late.until = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  for (const auto& [watch, kind] : {std::pair(stopped, ErrorKind::kCancelled),
                                    std::pair(late, ErrorKind::kLimit)}) {
    const auto selection = events->Select("x", kSome, {}, watch);
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().kind, kind);
    const auto sums = events->SumUp({}, all, watch);
    ASSERT_FALSE(sums);
    EXPECT_EQ(sums.error().kind, kind);
    const auto found = events->Find({0, INT64_MAX}, LiveEvents::Order::kStart,
                                    1, std::nullopt, all, watch);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, kind);
    const auto tile = events->MakeTile(0, {0, INT64_MAX / 2}, 9, 9, all, watch);
    ASSERT_FALSE(tile);
    EXPECT_EQ(tile.error().kind, kind);
  }
  // Nothing of what was stopped is kept.
  const auto again = events->Select("x", kSome, {}, {});
  ASSERT_TRUE(again);
  const auto sums = events->SumUp({}, *again, {});
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->all.events, static_cast<uint64_t>(std::count_if(
                                  rows.begin(), rows.end(), kSome)));
}

// Two windows side by side have each event without length once.
TEST(LiveEventsTest, EventsWithoutLengthAreOfTheWindowThatTheyStartIn) {
  std::vector<DeviceRow> rows(3000);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].start_ns = static_cast<int64_t>(i / 3) * 100;
    rows[i].slice = trace::SliceId(static_cast<uint32_t>(i));
  }
  const auto events = Make(rows);
  const auto all = Select(*events, nullptr);
  for (const int64_t cut : {1, 100, 34'100, 50'000, 99'900}) {
    uint64_t found = 0, tiled = 0;
    for (const Interval window : {Interval{0, cut}, Interval{cut, 200'000}}) {
      const auto part = events->Find(window, LiveEvents::Order::kStart, 0,
                                     std::nullopt, all, {});
      ASSERT_TRUE(part);
      found += part->all.events;
      const auto tile = events->MakeTile(0, window, 10, 9000, all, {});
      ASSERT_TRUE(tile);
      tiled += tile->rows.size();
    }
    EXPECT_EQ(found, rows.size()) << cut;
    EXPECT_EQ(tiled, rows.size()) << cut;
  }
}

// As far apart as readers let them be: one event at -2^61, many at 2^61.
TEST(LiveEventsTest, WindowsOfAllTimes) {
  constexpr int64_t kFar = int64_t{1} << 62;
  std::vector<DeviceRow> rows(2000);
  for (size_t i = 1; i < rows.size(); ++i) {
    rows[i].start_ns = kFar - 100'000 + static_cast<int64_t>(i) * 10;
    rows[i].dur_ns = 7;
  }
  const auto events = Make(rows);
  const auto all = Select(*events, nullptr);
  for (const int64_t from : {-kFar, int64_t{0}, kFar - 100'000}) {
    for (const size_t columns : {1, 2, 40, 1000}) {
      const auto tile = events->MakeTile(0, {from, kFar}, columns, 10, all, {});
      ASSERT_TRUE(tile);
      ASSERT_FALSE(tile->exact);
      EXPECT_LE(tile->busy_ns.size(), columns + 1);
      int64_t busy = 0;
      for (const int64_t ns : tile->busy_ns) busy += ns;
      EXPECT_EQ(busy, 1999 * 7);
    }
  }
  const auto found = events->Find({-kFar, kFar}, LiveEvents::Order::kLongest, 3,
                                  std::nullopt, all, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->all.events, rows.size());
}

// A window that begins and ends inside of buckets.
TEST(LiveEventsTest, BucketsAreAtMostOneMoreThanColumns) {
  const auto rows = MakeRows(12, 4000);
  const auto events = Make(rows);
  const auto all = Select(*events, nullptr);
  for (int64_t from = 1; from < 70'000'000; from += 1'234'567) {
    for (const int64_t span : {655'360 * 2 - 2, 1'300'001, 9'999'999}) {
      const auto tile =
          events->MakeTile(0, {from, from + span}, 10, 1, all, {});
      ASSERT_TRUE(tile);
      EXPECT_LE(tile->busy_ns.size(), 11u);
    }
  }
}

// Sums by the rows of tables with very many of them.
TEST(LiveEventsTest, SumsThatNeedTooMuchMemoryAreRefused) {
  std::vector<DeviceRow> rows(2);
  rows[1].call = 40'000'000;
  rows[1].op = 4'000'000;
  const auto events = Make(rows, 64);
  const auto all = Select(*events, nullptr);
  const auto column = [](std::string_view name) {
    return static_cast<size_t>(
        std::ranges::find(LiveColumns(), name, &LiveColumn::name) -
        LiveColumns().begin());
  };
  const std::vector<size_t> calls = {column("call")};
  const auto refused = events->SumUp(calls, all, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kLimit);
  // Fewer threads, where not all of them have room.
  const std::vector<size_t> ops = {column("op")};
  const auto sums = events->SumUp(ops, all, {});
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->by[0].back().events, 1u);
  const std::vector<size_t> lanes = {column("lane")};
  EXPECT_TRUE(events->SumUp(lanes, all, {}));
}

// Whoever waits for the filter of another one.
TEST(LiveEventsTest, WaitingStopsWhenItIsToldTo) {
  const auto rows = MakeRows(13, 10);
  const auto events = Make(rows, 1);
  std::atomic<bool> begun = false, go_on = false;
  std::thread slow([&] {
    const auto made = events->Select("slow",
                                     [&](const DeviceRow&) {
                                       begun = true;
                                       while (!go_on) std::this_thread::yield();
                                       return true;
                                     },
                                     {}, {});
    EXPECT_TRUE(made);
  });
  while (!begun) std::this_thread::yield();
  const std::atomic<bool> stop = true;
  const auto stopped = events->Select("other", kSome, {}, {&stop});
  EXPECT_FALSE(stopped);
  LiveWatch late;
  late.until = std::chrono::steady_clock::now();
  const auto over = events->Select("other", kSome, {}, late);
  EXPECT_FALSE(over);
  go_on = true;
  slow.join();
  if (stopped || over) return;
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(over.error().kind, ErrorKind::kLimit);
}

TEST(LiveEventsTest, NoEvents) {
  const auto events = Make({});
  const auto all = Select(*events, nullptr);
  const auto tile = events->MakeTile(0, {0, 1000}, 10, 10, all, {});
  ASSERT_TRUE(tile);
  EXPECT_TRUE(tile->exact);
  EXPECT_TRUE(tile->rows.empty());
  const std::vector<size_t> by = {0, 1};
  const auto sums = events->SumUp(by, all, {});
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->all.events, 0u);
}

}  // namespace
}  // namespace lamina::page
