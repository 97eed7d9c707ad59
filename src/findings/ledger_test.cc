// SPDX-License-Identifier: Apache-2.0
#include "findings/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace lamina::findings {
namespace {

Claim Span(int64_t start, int64_t dur) { return {0, start, dur, -1, 0}; }

TEST(LedgerTest, ASpanGetsWhatIsIdleAndFree) {
  Ledger ledger({IntervalSet::Of({{10, 20}, {30, 50}})}, {});
  std::vector<Claim> first = {Span(15, 20)};
  ledger.Grant(1, first);
  EXPECT_EQ(first[0].owned_ns, 5 + 5);
  std::vector<Claim> second = {Span(0, 100)};
  ledger.Grant(2, second);
  EXPECT_EQ(second[0].owned_ns, 5 + 15);
  EXPECT_EQ(ledger.owned_idle_ns(), ledger.idle_ns());
  ASSERT_EQ(ledger.refusals().size(), 1U);
  EXPECT_EQ(ledger.refusals()[0].winner, 1U);
  EXPECT_EQ(ledger.refusals()[0].loser, 2U);
  EXPECT_EQ(ledger.refusals()[0].ns, 10);
}

TEST(LedgerTest, ClaimsOfOneRuleDoNotCountTwice) {
  Ledger ledger({IntervalSet::Of({{0, 100}})}, {});
  std::vector<Claim> claims = {Span(10, 30), Span(20, 30), Span(10, 5)};
  ledger.Grant(1, claims);
  EXPECT_EQ(claims[0].owned_ns + claims[1].owned_ns + claims[2].owned_ns, 40);
}

TEST(LedgerTest, AnEventGivesAtMostItsOwn) {
  Ledger ledger({IntervalSet()}, {{7, 100}});
  std::vector<Claim> first = {{0, 0, 60, 7, 0}};
  std::vector<Claim> second = {{0, 0, 60, 7, 0}, {0, 0, 5, 8, 0}};
  ledger.Grant(1, first);
  ledger.Grant(2, second);
  EXPECT_EQ(first[0].owned_ns, 60);
  EXPECT_EQ(second[0].owned_ns, 40);
  EXPECT_EQ(second[1].owned_ns, 0);  // no such event
}

// Against a table with one entry per nanosecond.
TEST(LedgerTest, EqualsATableOfNanoseconds) {
  std::mt19937 random(5);
  const auto draw = [&](int below) {
    return static_cast<int64_t>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 300; ++round) {
    constexpr int kLength = 60;
    std::vector<Interval> gaps;
    for (int i = 0; i < 5; ++i) {
      const int64_t start = draw(kLength);
      gaps.push_back({start, std::min<int64_t>(kLength, start + draw(12))});
    }
    const IntervalSet idle = IntervalSet::Of(gaps);
    std::vector<int> owner(kLength, -2);
    for (const Interval& gap : idle.intervals()) {
      for (int64_t t = gap.start_ns; t < gap.end_ns; ++t)
        owner[static_cast<size_t>(t)] = -1;
    }
    Ledger ledger({idle}, {});
    for (uint32_t rule = 0; rule < 4; ++rule) {
      std::vector<Claim> claims;
      for (int i = 0; i < 4; ++i)
        claims.push_back(Span(draw(kLength), draw(20)));
      int64_t expected = 0;
      for (const Claim& claim : claims) {
        for (int64_t t = claim.start_ns;
             t < std::min<int64_t>(kLength, claim.start_ns + claim.dur_ns);
             ++t) {
          if (owner[static_cast<size_t>(t)] != -1) continue;
          owner[static_cast<size_t>(t)] = static_cast<int>(rule);
          ++expected;
        }
      }
      ledger.Grant(rule, claims);
      int64_t granted = 0;
      for (const Claim& claim : claims) granted += claim.owned_ns;
      EXPECT_EQ(granted, expected);
    }
  }
}

}  // namespace
}  // namespace lamina::findings
