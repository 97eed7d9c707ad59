// SPDX-License-Identifier: Apache-2.0
//
// Joining, clocks, measures and partial files of made ranks.

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "dist/align.h"
#include "dist/blame.h"
#include "dist/clocks.h"
#include "dist/measure.h"
#include "dist/partial.h"
#include "dist/summarize.h"
#include "engine/find_traces.h"

namespace lamina::dist {

namespace {

// A rank with all-reduces that end at `ends` on its clock.
RankSummary RankWith(int64_t rank, const std::vector<int64_t>& ends) {
  RankSummary out;
  out.rank = rank;
  out.file = "rank" + std::to_string(rank);
  out.file_number = static_cast<uint64_t>(rank);
  out.first_ns = ends.front() - 1000;
  out.texts = {"", "0", "[0, 1]", "allreduce", "Float", "aten::mm"};
  out.groups.push_back({1, 2, 0, 2, ends.size()});
  out.steps.resize(1);
  for (size_t i = 0; i < ends.size(); ++i) {
    Call call;
    call.number = static_cast<uint32_t>(i);
    call.name = 3;
    call.dtype = 4;
    call.kind = CollectiveKind::kAllReduce;
    call.sequence = static_cast<int64_t>(i);
    call.in_elements = call.out_elements = 1000;
    call.dur_ns = 100;
    call.start_ns = ends[i] - 100;
    call.device = {{5, 50}};
    out.calls.push_back(call);
  }
  return out;
}

JoinedGroup Join(const std::vector<const RankSummary*>& ranks) {
  std::vector<GroupPart> parts;
  for (const RankSummary* rank : ranks) parts.push_back(PartsOf(*rank)[0]);
  return JoinGroup(parts);
}

TEST(Match, PartsHoldTheCallsOfTheirGroupInOrder) {
  RankSummary rank = RankWith(0, {1000, 2000, 3000, 4000, 5000});
  rank.groups.push_back({3, 2, 0, 2, 0});
  rank.groups.push_back({4, 2, 0, 2, 0});
  for (const size_t i : {1, 3}) rank.calls[i].group = 2;
  const std::vector<GroupPart> parts = PartsOf(rank);
  ASSERT_EQ(parts.size(), 3u);
  const auto numbers = [](const GroupPart& part) {
    std::vector<uint32_t> out;
    for (const Call* call : part.calls) out.push_back(call->number);
    return out;
  };
  EXPECT_EQ(numbers(parts[0]), (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_TRUE(parts[1].calls.empty());
  EXPECT_EQ(parts[2].group, 2u);
  EXPECT_EQ(numbers(parts[2]), (std::vector<uint32_t>{1, 3}));
}

TEST(Clocks, FindOffsetAndDriftDespiteOutliers) {
  std::mt19937_64 random(1);
  std::vector<int64_t> a, b;
  for (int i = 0; i < 100; ++i) {
    const int64_t t = 1'000'000'000'000 + i * 10'000'000;
    a.push_back(t);
    // 3 ms ahead at the first call, 20 ppm fast; each tenth ends late.
    b.push_back(t + 3'000'000 + std::llround(20e-6 * i * 10'000'000) +
                (i % 10 == 0 ? 500'000 : static_cast<int64_t>(random() % 200)));
  }
  const RankSummary ranks[] = {RankWith(0, a), RankWith(1, b)};
  const Clocks clocks({{0, ranks[0].first_ns}, {1, ranks[1].first_ns}},
                      FitClocks(Join({&ranks[0], &ranks[1]})), false);
  const RankClock& clock = clocks.ranks()[1];
  EXPECT_TRUE(clock.known);
  EXPECT_TRUE(clock.applied);
  EXPECT_EQ(clock.reference, 0);
  EXPECT_NEAR(static_cast<double>(clock.offset_ns), 3'000'100, 60);
  EXPECT_NEAR(clock.drift * 1e6, 20, 0.3);
  for (size_t i = 1; i < a.size(); ++i) {
    if (i % 10 == 0) continue;
    EXPECT_NEAR(static_cast<double>(clocks.Align(1, b[i]) - a[i]), 0, 200);
  }
}

TEST(Clocks, NoiseSaysNothing) {
  std::vector<int64_t> a, b;
  for (int i = 0; i < 20; ++i) {
    a.push_back(i * 1'000'000);
    b.push_back(i * 1'000'000 + (i % 2 == 0 ? 5000 : -5000));
  }
  const RankSummary ranks[] = {RankWith(0, a), RankWith(1, b)};
  const Clocks clocks({{0, 0}, {1, 0}}, FitClocks(Join({&ranks[0], &ranks[1]})),
                      false);
  EXPECT_TRUE(clocks.ranks()[1].known);
  EXPECT_FALSE(clocks.ranks()[1].applied);
  EXPECT_EQ(clocks.Align(1, 12345), 12345);
}

TEST(Match, SequenceNumbersSurviveLosses) {
  RankSummary a = RankWith(0, {1000, 2000, 3000, 4000});
  RankSummary b = RankWith(1, {1000, 2000, 3000, 4000});
  b.calls.erase(b.calls.begin() + 1);
  const JoinedGroup group = Join({&a, &b});
  ASSERT_EQ(group.calls.size(), 4U);
  EXPECT_EQ(group.calls[1].members.size(), 1U);
  EXPECT_EQ(group.calls[2].members.size(), 2U);
  ASSERT_EQ(group.lost.size(), 1U);
  EXPECT_EQ(group.lost[0].rank, 1);
  EXPECT_TRUE(group.lost[0].inside);
}

TEST(Match, UnequalSizesAreDoubtful) {
  RankSummary a = RankWith(0, {1000, 2000});
  RankSummary b = RankWith(1, {1000, 2000});
  b.calls[1].in_elements = 7;
  const JoinedGroup group = Join({&a, &b});
  EXPECT_EQ(group.calls[0].doubt, "");
  EXPECT_EQ(group.calls[1].doubt, "type or size differs");
}

TEST(Measure, SkewTransferAndCause) {
  RankSummary a = RankWith(0, {10'000});
  RankSummary b = RankWith(1, {10'100});
  a.calls[0].start_ns = 4'000;
  a.calls[0].dur_ns = 6'000;
  b.calls[0].start_ns = 7'000;
  b.calls[0].dur_ns = 3'100;
  b.calls[0].device = {{5, 3'050}};
  a.calls[0].gap_start_ns = b.calls[0].gap_start_ns = 3'900;
  a.calls[0].idle_ns = b.calls[0].idle_ns = 50;
  const Clocks clocks({{0, 0}, {1, 0}}, {}, false);
  const Measured measured = Measure(Join({&a, &b}), clocks);
  const MeasuredCall& call = measured.calls.at(0);
  EXPECT_EQ(call.start_skew_ns, 3'000);
  EXPECT_EQ(call.end_skew_ns, 100);
  EXPECT_EQ(call.transfer_ns, 3'100);
  EXPECT_EQ(call.late_rank, 1);
  EXPECT_EQ(call.early_rank, 0);
  EXPECT_EQ(call.bytes, 4000);
  ASSERT_EQ(call.late.size(), 1U);
  EXPECT_EQ(call.late[0].cause, Cause::kCompute);
  EXPECT_EQ(call.late[0].cause_name, "aten::mm");
  EXPECT_EQ(call.late[0].cause_ns, 3'000);
  EXPECT_EQ(call.late[0].wait_ns, call.wait_ns);
}

// Collectives of ranks that start at `starts` and end together.
Measured MeasureStarts(const std::vector<int64_t>& starts, CollectiveKind kind,
                       int64_t end_apart = 0) {
  std::vector<RankSummary> ranks;
  for (size_t r = 0; r < starts.size(); ++r) {
    RankSummary& rank =
        ranks.emplace_back(RankWith(static_cast<int64_t>(r), {100'000}));
    rank.calls[0].kind = kind;
    rank.calls[0].start_ns = starts[r];
    rank.calls[0].dur_ns =
        100'000 + static_cast<int64_t>(r) * end_apart - starts[r];
  }
  std::vector<RankOrigin> origins;
  std::vector<GroupPart> parts;
  for (const RankSummary& rank : ranks) {
    origins.push_back({rank.rank, 0});
    parts.push_back(PartsOf(rank).front());
  }
  const Clocks clocks(origins, {}, false);
  return Measure(JoinGroup(parts), clocks);
}

TEST(Measure, WhoeverComesLateTogetherIsCharged) {
  struct Case {
    std::vector<int64_t> starts;
    std::vector<int64_t> late;  // ranks, last first
  };
  const std::vector<Case> cases = {
      {{0, 50'000}, {1}},
      {{0, 0, 50'000}, {2}},
      {{0, 50'000, 50'000}, {1, 2}},
      {{0, 49'000, 50'000}, {2, 1}},
      {{0, 0, 0, 50'000, 10, 20, 51'000, 5}, {6, 3}},
      {{0, 20'000, 50'000, 0}, {2}},  // not even half as late
      {{0, 50'000, 50'000, 50'000, 50'000}, {1, 2, 3, 4}},
      {{7, 7, 7, 7}, {0}},
  };
  for (const Case& c : cases) {
    const Measured measured =
        MeasureStarts(c.starts, CollectiveKind::kAllReduce);
    const MeasuredCall& call = measured.calls.at(0);
    std::vector<int64_t> late;
    int64_t sum = 0;
    for (const LateRank& rank : call.late) {
      late.push_back(rank.rank);
      sum += rank.wait_ns;
    }
    if (call.start_skew_ns > 0) {
      EXPECT_EQ(late, c.late);
    }
    EXPECT_EQ(sum, call.wait_ns);
    int64_t blamed = 0;
    for (const RankBlame& blame : FindBlame(measured))
      blamed += blame.blamed_ns;
    EXPECT_EQ(blamed, call.wait_ns);
  }
}

TEST(Measure, WhatEndsTogetherOnAllRanksSynchronises) {
  const auto waited = [](CollectiveKind kind, int64_t apart) {
    return MeasureStarts({0, 30'000, 1'000}, kind, apart).calls.at(0).waited();
  };
  EXPECT_TRUE(waited(CollectiveKind::kSendRecv, 2'000));
  EXPECT_FALSE(waited(CollectiveKind::kSendRecv, 20'000));
  EXPECT_FALSE(waited(CollectiveKind::kBroadcast, 20'000));
  EXPECT_TRUE(waited(CollectiveKind::kAllToAll, 20'000));
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(Measure, BusFactors) {
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kAllToAll, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kBroadcast, 8), 1);
  EXPECT_DOUBLE_EQ(BusFactor(CollectiveKind::kSendRecv, 2), 1);
}

TEST(Partial, SurvivesTheWayThroughAFile) {
  Partial partial;
  partial.ranks = {RankWith(0, {1000, 2000}), RankWith(3, {5000})};
  const std::string bytes = EncodePartial(partial);
  const auto read = DecodePartial(bytes, "x");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(EncodePartial(*read), bytes);
  EXPECT_EQ(read->ranks[1].calls[0].device[0].ns, 50);
}

TEST(Partial, DamageIsAnError) {
  Partial partial;
  partial.ranks = {RankWith(0, {1000, 2000})};
  const std::string bytes = EncodePartial(partial);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodePartial(bytes.substr(0, size), "x").has_value());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    EXPECT_FALSE(DecodePartial(bad, "x").has_value()) << i;
  }
  EXPECT_FALSE(DecodePartial(bytes + "x", "x").has_value());
}

TEST(Partial, MergeIsAssociativeAndCommutative) {
  const auto one = [](int64_t rank) {
    Partial partial;
    partial.ranks = {RankWith(rank, {1000 + rank})};
    return partial;
  };
  Partial left = one(2);
  Merge(left, one(0));
  Merge(left, one(1));
  Partial right = one(1);
  Merge(right, one(0));
  Partial both = one(2);
  Merge(both, std::move(right));
  EXPECT_EQ(EncodePartial(left), EncodePartial(both));
}

// A call that `late` comes to last, for `cause`, with `before` in front of it.
MeasuredCall Late(uint64_t group, uint32_t number, int64_t late, int64_t early,
                  Cause cause, int64_t cause_ns, uint32_t before) {
  MeasuredCall call;
  call.group = group;
  call.sequence = number;
  call.kind = CollectiveKind::kAllReduce;
  call.late_rank = late;
  call.early_rank = early;
  call.start_skew_ns = call.wait_ns = 1000;
  call.synchronises = true;
  LateRank& delay = call.late.emplace_back();
  delay.rank = late;
  delay.late_ns = delay.wait_ns = 1000;
  delay.cause = cause;
  delay.cause_ns = cause_ns;
  delay.cause_name = cause == Cause::kCompute ? "aten::mm" : "";
  for (const int64_t rank : {std::min(late, early), std::max(late, early)}) {
    MeasuredMember m;
    m.rank = rank;
    m.call = number;
    m.previous = before;
    m.wait_ns = rank == late ? 0 : 1000;
    call.members.push_back(m);
  }
  return call;
}

TEST(Blame, LeadsBackThroughOtherRanks) {
  // Rank 2 computes too long before its call with rank 1; rank 1 comes late to
  // its call with rank 0 for that reason alone.
  Measured measured;
  measured.groups.resize(2);
  measured.calls.push_back(Late(0, 0, 2, 1, Cause::kCompute, 1000, kNoIndex));
  measured.calls.push_back(Late(1, 1, 1, 0, Cause::kPrevious, 1000, 0));
  const auto blame = FindBlame(measured);
  ASSERT_EQ(blame.size(), 3U);
  EXPECT_EQ(blame[0].rank, 2);
  EXPECT_EQ(blame[0].blamed_ns, 2000);
  EXPECT_EQ(blame[0].caused_ns, 1000);
  ASSERT_EQ(blame[0].causes.size(), 1U);
  EXPECT_EQ(blame[0].causes[0].name, "aten::mm");
  // One delay, though it made two calls late.
  EXPECT_EQ(blame[0].causes[0].delay_ns, 1000);
  EXPECT_EQ(blame[0].causes[0].calls, 1);
}

TEST(Blame, StopsWhereAllWereTogether) {
  // What came before a call of the same group delayed both alike.
  Measured measured;
  measured.groups.resize(1);
  measured.calls.push_back(Late(0, 0, 0, 1, Cause::kCompute, 90'000, kNoIndex));
  measured.calls.push_back(Late(0, 1, 1, 0, Cause::kPrevious, 1000, 0));
  const auto blame = FindBlame(measured);
  ASSERT_EQ(blame.size(), 2U);
  EXPECT_EQ(blame[0].blamed_ns, 1000);
  EXPECT_EQ(blame[1].blamed_ns, 1000);
}

TEST(Links, StraightLineThroughSizes) {
  Measured measured;
  measured.groups.resize(1);
  measured.groups[0].description = "tp";
  for (const int64_t bytes : {1'000, 1'000'000, 10'000'000}) {
    MeasuredCall call = Late(0, 0, 0, 1, Cause::kNone, 0, kNoIndex);
    call.ranks = 2;
    call.bytes = bytes;
    call.transfer_ns = 9'000 + bytes / 100;  // 100 GB/s; factor 1 for 2 ranks
    measured.calls.push_back(call);
  }
  const auto links = FindLinks(measured);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].sizes.size(), 3U);
  EXPECT_NEAR(links[0].latency_ns, 9'000, 1);
  EXPECT_NEAR(links[0].bytes_per_ns, 100, 0.01);
}

TEST(Links, OneSizeHasNoLine) {
  Measured measured;
  measured.groups.resize(1);
  MeasuredCall call = Late(0, 0, 0, 1, Cause::kNone, 0, kNoIndex);
  call.ranks = 2;
  call.bytes = 5000;
  call.transfer_ns = 100;
  measured.calls = {call, call};
  const auto links = FindLinks(measured);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].bytes_per_ns, 0);
}

TEST(Shares, EveryFileOnce) {
  const std::vector<std::string> files = {"none1", "none2", "none3", "none4",
                                          "none5"};
  std::vector<int> seen(files.size());
  for (size_t share = 0; share < 3; ++share) {
    for (const size_t i : ShareOfFiles(files, share, 3)) ++seen[i];
  }
  EXPECT_EQ(seen, std::vector<int>(files.size(), 1));
}

TEST(Inputs, NaturalOrder) {
  EXPECT_TRUE(engine::NaturalLess("rank2.json", "rank10.json"));
  EXPECT_FALSE(engine::NaturalLess("rank10.json", "rank2.json"));
  EXPECT_TRUE(engine::NaturalLess("a/rank2", "b/rank1"));
  EXPECT_TRUE(engine::NaturalLess("rank", "rank0"));
  EXPECT_TRUE(engine::NaturalLess("r01", "r1") !=
              engine::NaturalLess("r1", "r01"));
  EXPECT_FALSE(engine::NaturalLess("r1", "r1"));
}

TEST(Inputs, RankOfAName) {
  EXPECT_EQ(RankOfName("d/rank-12.json.gz"), 12);
  EXPECT_EQ(RankOfName("Rank_3_of_8.json"), 3);
  EXPECT_EQ(RankOfName("trace7.json"), 7);
  EXPECT_EQ(RankOfName("a1b2.json"), std::nullopt);
  EXPECT_EQ(RankOfName("trace.json"), std::nullopt);
  EXPECT_EQ(RankOfName("d/3.json"), 3);
  EXPECT_EQ(RankOfName("r2.json.gz"), 2);
  EXPECT_EQ(RankOfName("worker-5.pt.trace.json"), 5);
  // Numbers of something else.
  EXPECT_EQ(RankOfName("rocprof-908.json.gz"), std::nullopt);
  EXPECT_EQ(RankOfName("4711_results.json"), std::nullopt);
  EXPECT_EQ(RankOfName("h100-bert.json"), std::nullopt);
}

TEST(Inputs, RanksOfAList) {
  EXPECT_EQ(ParseRanks("[0, 1, 8]"), (std::vector<int64_t>{0, 1, 8}));
  EXPECT_TRUE(ParseRanks("[]").empty());
}

}  // namespace

namespace {

struct Recorded {
  std::vector<AlignItem> items;
  std::vector<int> truth;  // number of the call
};

struct World {
  int calls = 200;
  uint32_t signatures = 1;
  double lost = 0;        // part of the calls that one rank lacks
  int64_t offset_ns = 0;  // of the clock
  double drift = 0;
  int64_t jitter_ns = 300;
};

// One rank's record of calls that all ranks take part in.
Recorded Record(const World& world, uint64_t seed, uint64_t rank) {
  std::mt19937_64 shared(seed);  // the same for both ranks
  std::mt19937_64 own(seed * 77 + rank);
  Recorded out;
  int64_t t = 1'000'000;
  for (int c = 0; c < world.calls; ++c) {
    const auto signature = static_cast<uint32_t>(shared() % world.signatures);
    t += 20'000 + static_cast<int64_t>(shared() % 60'000);
    const auto jitter =
        static_cast<int64_t>(own() % 1000) * world.jitter_ns / 1000;
    const auto dur = static_cast<int64_t>(5'000 + own() % 15'000);
    if (static_cast<double>(own() % 10'000) < world.lost * 10'000) continue;
    const auto local = [&](int64_t at) {
      return at + world.offset_ns +
             static_cast<int64_t>(world.drift * static_cast<double>(at));
    };
    out.items.push_back(
        {signature, local(t - dur + jitter), local(t + jitter)});
    out.truth.push_back(c);
  }
  return out;
}

// The truth knows the number of every call.
void ExpectTrueMatches(const World& world, uint64_t seed) {
  World first = world;
  first.offset_ns = 0;
  first.drift = 0;
  const Recorded a = Record(first, seed, 0);
  const Recorded b = Record(world, seed, 1);
  const auto match = AlignCalls(a.items, b.items);
  ASSERT_EQ(match.size(), b.items.size());
  for (size_t j = 0; j < match.size(); ++j) {
    const auto it = std::find(a.truth.begin(), a.truth.end(), b.truth[j]);
    const int32_t expected = it == a.truth.end()
                                 ? kNoMatch
                                 : static_cast<int32_t>(it - a.truth.begin());
    ASSERT_EQ(match[j], expected) << "call " << b.truth[j] << " seed " << seed;
  }
}

TEST(Align, EqualCallsWithLosses) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world;
    world.lost = 0.03;
    world.offset_ns = static_cast<int64_t>(seed * 777'777) - 15'000'000;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, SeveralKindsWithManyLosses) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world;
    world.signatures = 5;
    world.lost = 0.15;
    world.offset_ns = -4'000'000;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, ClocksThatRunApart) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    World world;
    world.calls = 3000;
    world.lost = 0.01;
    world.offset_ns = 5'000'000;
    world.drift = (static_cast<double>(seed) - 10) * 8e-6;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, WithoutTimesThatAgreeOrderDecides) {
  std::mt19937_64 random(3);
  std::vector<AlignItem> a, b;
  for (int i = 0; i < 50; ++i) {
    const auto t = static_cast<int64_t>(i) * 10'000'000;
    a.push_back({7, t, t + 1000});
    const auto late = t + static_cast<int64_t>(random() % 9'000'000);
    b.push_back({7, late, late + 1000});
  }
  const auto match = AlignCalls(a, b);
  for (size_t i = 0; i < match.size(); ++i)
    EXPECT_EQ(match[i], static_cast<int32_t>(i));
}

// Longest common subsequence by trying everything.
size_t Longest(const std::vector<AlignItem>& a, size_t i,
               const std::vector<AlignItem>& b, size_t j) {
  if (i == a.size() || j == b.size()) return 0;
  const size_t skip =
      std::max(Longest(a, i + 1, b, j), Longest(a, i, b, j + 1));
  return a[i].signature == b[j].signature
             ? std::max(skip, 1 + Longest(a, i + 1, b, j + 1))
             : skip;
}

// Where time says nothing, as many calls are paired as can be.
TEST(Align, PairsAsManyAsTheSlowTwin) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<AlignItem> a, b;
    for (auto* list : {&a, &b}) {
      const size_t size = 1 + random() % 7;
      for (size_t i = 0; i < size; ++i) {
        list->push_back({static_cast<uint32_t>(random() % 3), 0, 0});
      }
    }
    const auto match = AlignByOrder(a, b);
    size_t pairs = 0;
    int32_t last = -1;
    for (size_t j = 0; j < match.size(); ++j) {
      if (match[j] == kNoMatch) continue;
      ++pairs;
      ASSERT_GT(match[j], last);
      last = match[j];
      ASSERT_EQ(a[static_cast<size_t>(match[j])].signature, b[j].signature);
    }
    ASSERT_EQ(pairs, Longest(a, 0, b, 0));
  }
}

TEST(Align, EmptyLists) {
  const std::vector<AlignItem> none;
  const std::vector<AlignItem> one = {{1, 0, 5}};
  EXPECT_TRUE(AlignCalls(one, none).empty());
  EXPECT_EQ(AlignCalls(none, one), std::vector<int32_t>{kNoMatch});
  EXPECT_EQ(AlignCalls(one, one), std::vector<int32_t>{0});
}

}  // namespace

}  // namespace lamina::dist
