// SPDX-License-Identifier: Apache-2.0
//
// Forms of records, placements with a known truth against a slow reference, and
// fits of sweeps.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "serving/join.h"
#include "serving/records.h"
#include "serving/sweep.h"
#include "serving/tables.h"

namespace lamina::serving {
namespace {

Records Parsed(const std::string& text, const ReadOptions& options = {}) {
  auto records = ParseRecords("bench", text, options);
  EXPECT_TRUE(records) << (records ? "" : records.error().what);
  return records ? std::move(*records) : Records();
}

TEST(ServingRecords, FormsAreKnownByWhatTheyHold) {
  const Records vllm = Parsed(
      R"({"backend": "vllm", "ttfts": [0.25, 0.0, 0.5], "itls": [[0.01, 0.02],
          [], []], "input_lens": [7, 8, 9], "output_lens": [3, 0, 1],
          "start_times": [12.5, 13, NaN], "errors": ["", "refused", ""]})");
  EXPECT_EQ(vllm.format, "vLLM bench");
  EXPECT_EQ(vllm.clock, Clock::kOwn);
  ASSERT_EQ(vllm.requests.size(), 1u);
  EXPECT_EQ(vllm.failed, 1u);
  EXPECT_EQ(vllm.unusable, 1u);  // its start is no number
  EXPECT_EQ(vllm.requests[0].start_ns, 12'500'000'000);
  EXPECT_EQ(vllm.requests[0].chunk_ns,
            (std::vector<int64_t>{250'000'000, 260'000'000, 280'000'000}));
  const Records sglang = Parsed(
      "{\"backend\": \"sglang\", \"ttfts\": [1], \"itls\": [[]]}\n"
      "{\"backend\": \"sglang\", \"ttfts\": [1, 2], \"itls\": [[], []]}\n");
  EXPECT_EQ(sglang.format, "SGLang bench");
  EXPECT_EQ(sglang.clock, Clock::kNone);
  EXPECT_EQ(sglang.requests.size(), 2u);  // the last line
  // Wall clocks keep every nanosecond.
  const Records csv = Parsed(
      "request,start_ns,first_ns,last_ns\n"
      "a,1790000000000000001,1790000000000000101,1790000000000000201\n"
      "a,1790000000000000002,1790000000000000102,\n");
  EXPECT_EQ(csv.clock, Clock::kEpoch);
  ASSERT_EQ(csv.requests.size(), 2u);
  EXPECT_EQ(csv.requests[0].start_ns, 1790000000000000001);
  EXPECT_EQ(csv.requests[0].chunk_ns, (std::vector<int64_t>{100, 200}));
  EXPECT_EQ(csv.requests[1].id, "a#2");
  EXPECT_FALSE(csv.every_token);
}

TEST(ServingRecords, WhatIsNoRecordIsRefused) {
  for (const char* text :
       {"", "  ", "{}", "[]", "[1, 2]", "a,b\n1,2\n",
        R"({"ttfts": [], "itls": []})", R"({"ttfts": [-1], "itls": [[]]})",
        R"({"ttfts": [1e300], "itls": [[]]})"}) {
    EXPECT_FALSE(ParseRecords("bench", text, {})) << text;
  }
  EXPECT_FALSE(ParseRecords("bench", R"({"ttfts": [1], "itls": [[]]})",
                            {.clock = {}, .line = 2}));
}

// A server with one slot more than it needs: passes of random length, requests
// that get a token from each pass behind the one that read their prompt.
struct Truth {
  std::vector<ServedPass> passes;
  Records records;
  std::vector<std::vector<size_t>> pass;  // of each token
};

Truth Simulate(uint32_t seed, int64_t offset, int64_t delay) {
  std::mt19937 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Truth out;
  out.records.clock = Clock::kOwn;
  struct Running {
    size_t request = 0;
    int64_t left = 0;
  };
  std::vector<Running> running;
  int64_t now = 1'000'000;
  for (int pass = 0; pass < 120; ++pass) {
    ServedPass& own = out.passes.emplace_back();
    own.number = static_cast<size_t>(pass);
    own.start_ns = now;
    const bool prompt =
        (running.empty() || draw(0, 5) == 0) && running.size() < 6;
    own.generating = static_cast<int64_t>(running.size());
    own.prompts = prompt;
    own.prompt_tokens = prompt ? draw(50, 400) : 0;
    own.phase = !prompt           ? runs::Phase::kDecode
                : running.empty() ? runs::Phase::kPrefill
                                  : runs::Phase::kMixed;
    own.end_ns = now + 200'000 + draw(0, 60'000) + 500 * *own.prompt_tokens;
    if (prompt) {
      Request& request = out.records.requests.emplace_back();
      request.id = std::to_string(out.records.requests.size());
      request.start_ns = now - draw(2'000, 80'000) + offset;
      request.input_tokens = own.prompt_tokens;
      running.push_back({out.records.requests.size() - 1, draw(2, 20)});
      out.pass.emplace_back();
    }
    for (Running& one : running) {
      Request& request = out.records.requests[one.request];
      request.chunk_ns.push_back(own.end_ns + delay + draw(0, 15'000) + offset -
                                 request.start_ns);
      out.pass[one.request].push_back(own.number);
      --one.left;
    }
    std::erase_if(running, [](const Running& one) { return one.left == 0; });
    now = own.end_ns + draw(5'000, 20'000);
  }
  return out;
}

// The share of tokens that come within 60 us behind the end of a pass, at an
// offset: slow, and obviously right.
double SlowShare(const Truth& truth, int64_t offset) {
  size_t near = 0, all = 0;
  for (const Request& request : truth.records.requests) {
    for (const int64_t at : request.chunk_ns) {
      const int64_t time = request.start_ns + at - offset;
      ++all;
      near += std::any_of(truth.passes.begin(), truth.passes.end(),
                          [&](const ServedPass& pass) {
                            return time >= pass.end_ns &&
                                   time < pass.end_ns + 60'000;
                          });
    }
  }
  return static_cast<double>(near) / static_cast<double>(all);
}

TEST(ServingJoin, EveryTokenStandsOnItsPass) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const int64_t offset = int64_t{seed} * 77'000'000'123;
    const int64_t delay = int64_t{seed % 7} * 150'000;
    Truth truth = Simulate(seed, offset, delay);
    const Join join =
        PlaceRequests(truth.records, truth.passes, std::nullopt, {});
    ASSERT_EQ(join.status, JoinStatus::kJoined) << seed;
    EXPECT_GE(SlowShare(truth, join.offset_ns), 0.98) << seed;
    for (const PlacedRequest& one : join.requests) {
      const auto& pass = truth.pass[static_cast<size_t>(
          one.request - truth.records.requests.data())];
      EXPECT_EQ(one.pass, pass) << seed << " " << one.request->id;
      ASSERT_TRUE(one.prompt_known) << seed << " " << one.request->id;
      EXPECT_EQ(one.prompt.size(), 1u);
      EXPECT_EQ(one.prompt.front().pass, pass.front());
    }
    // Clocks of other machines, more than a pass apart: not placed; records of
    // another run neither.
    truth.records.clock = Clock::kEpoch;
    for (const int64_t apart : {-4'000'000, 4'000'000}) {
      EXPECT_NE(
          PlaceRequests(truth.records, truth.passes, offset + apart, {}).status,
          JoinStatus::kJoined)
          << seed;
    }
    EXPECT_EQ(PlaceRequests(truth.records, truth.passes, offset, {}).status,
              JoinStatus::kJoined);
    Truth other = Simulate(seed + 1000, offset, delay);
    EXPECT_NE(
        PlaceRequests(other.records, truth.passes, std::nullopt, {}).status,
        JoinStatus::kJoined)
        << seed;
  }
}

TEST(ServingTables, QuantilesAndLimits) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(Quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 4);
  const auto limits = ParseLimits("ttft=200ms,p99.9:itl=25us,e2e=4s");
  ASSERT_TRUE(limits);
  ASSERT_EQ(limits->size(), 3u);
  EXPECT_EQ((*limits)[0].most_ns, 200'000'000);
  EXPECT_EQ((*limits)[1].most_ns, 25'000);
  EXPECT_DOUBLE_EQ(*(*limits)[1].percentile, 99.9);
  EXPECT_EQ((*limits)[2].most_ns, 4'000'000'000);
  for (const char* text : {"ttft", "ttft=", "ttft=-1ms", "p:ttft=1", "x=1ms",
                           "p100:ttft=1ms", "ttft=1ms,,", "ttft=nan"}) {
    EXPECT_FALSE(ParseLimits(text)) << text;
  }
}

TEST(ServingSweep, FitsFindWhatWasPlanted) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(1, 0.003);
  const double loads[] = {1, 4, 16, 64, 128, 256, 512, 1024};
  for (int i = 0; i < 40; ++i) {
    const double floor = 100 + 10 * i, knee = 40 + 9 * i;
    std::vector<std::pair<double, double>> flat, line, bent;
    for (const double x : loads) {
      flat.push_back({x, floor * noise(random)});
      line.push_back({x, (floor + 0.5 * x) * noise(random)});
      bent.push_back({x, floor * std::max(1.0, x / knee) * noise(random)});
    }
    std::reverse(bent.begin(), bent.end());  // in any order
    EXPECT_EQ(FitSweep(flat).kind, SweepFit::Kind::kFlat) << i;
    const SweepFit of_line = FitSweep(line);
    EXPECT_EQ(of_line.kind, SweepFit::Kind::kLinear) << i;
    EXPECT_NEAR(of_line.slope, 0.5, 0.02) << i;
    const SweepFit of_bent = FitSweep(bent);
    ASSERT_EQ(of_bent.kind, SweepFit::Kind::kKnee) << i;
    EXPECT_NEAR(*of_bent.knee, knee, 0.03 * knee) << i;
    EXPECT_NEAR(of_bent.slope, floor / knee, 0.03 * floor / knee) << i;
  }
  EXPECT_EQ(FitSweep({{1, 5}}).kind, SweepFit::Kind::kFlat);
}

}  // namespace
}  // namespace lamina::serving
