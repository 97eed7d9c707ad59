// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>

#include "compare/cudagraph/align.h"
#include "compare/cudagraph/names.h"
#include "compare/cudagraph/stretches.h"
#include "trace/builder.h"
#include "tree/tree.h"

namespace lamina::cudagraph {

namespace {

using Ids = std::vector<uint32_t>;

std::vector<Match> Matches(const Ids& capture, const Ids& replay,
                           const std::vector<uint32_t>& streams = {}) {
  std::vector<uint8_t> a(capture.size());
  std::vector<uint8_t> b(replay.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<uint8_t>(capture[i] % 5);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<uint8_t>(replay[i] % 5);
  return Align({capture, a, {}}, {replay, b, streams});
}

// All optimal alignments by brute force: the partners of every element.
void Enumerate(const Ids& a, const Ids& b, size_t i, size_t j,
               std::vector<std::pair<size_t, size_t>>& pairs, size_t& best,
               std::vector<std::set<size_t>>& partners) {
  if (i == a.size() || j == b.size()) {
    if (pairs.size() < best) return;
    if (pairs.size() > best) {
      best = pairs.size();
      for (auto& set : partners) set.clear();
    }
    for (const auto& [x, y] : pairs) partners[y].insert(x);
    return;
  }
  if (a[i] == b[j]) {
    pairs.emplace_back(i, j);
    Enumerate(a, b, i + 1, j + 1, pairs, best, partners);
    pairs.pop_back();
  }
  Enumerate(a, b, i + 1, j, pairs, best, partners);
  Enumerate(a, b, i, j + 1, pairs, best, partners);
}

TEST(Align, SureMeansOnePartnerOnEveryOptimalAlignment) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Ids a(1 + random() % 7);
    Ids b(1 + random() % 7);
    for (uint32_t& x : a) x = random() % 3;
    for (uint32_t& x : b) x = random() % 3;
    Ids sorted_a = a;
    Ids sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    if (sorted_a == sorted_b) continue;  // exact or fifo
    std::vector<std::set<size_t>> partners(b.size());
    std::vector<std::pair<size_t, size_t>> pairs;
    size_t best = 0;
    Enumerate(a, b, 0, 0, pairs, best, partners);
    const auto matches = Matches(a, b);
    for (size_t j = 0; j < b.size(); ++j) {
      if (matches[j].level == Level::kSure) {
        ASSERT_EQ(partners[j].size(), 1U);
        EXPECT_EQ(*partners[j].begin(), matches[j].partner);
      }
      if (matches[j].level == Level::kLcs) {
        EXPECT_EQ(partners[j].size(), matches[j].alternatives);
        EXPECT_TRUE(partners[j].contains(matches[j].partner));
      }
    }
  }
}

TEST(Align, EqualSequencesAreExact) {
  const Ids ids = {1, 2, 3, 2, 1};
  for (const Match& match : Matches(ids, ids))
    EXPECT_EQ(match.level, Level::kExact);
}

TEST(Align, AnotherOrderIsTakenInsideNames) {
  const Ids capture = {1, 2, 1, 3};
  const Ids replay = {2, 1, 3, 1};
  const auto matches = Matches(capture, replay);
  EXPECT_EQ(matches[1].partner, 0U);
  EXPECT_EQ(matches[3].partner, 2U);
  for (const Match& match : matches) EXPECT_EQ(match.level, Level::kFifo);
  // Streams keep their order: there is one way to deal the capture out.
  const auto spread = Matches(capture, replay, {0, 0, 0, 1});
  EXPECT_EQ(spread[1].partner, 2U);
  EXPECT_EQ(spread[3].partner, 0U);
  for (const Match& match : spread) EXPECT_EQ(match.level, Level::kExact);
  // Unless each stream can have been the first.
  const auto either =
      Matches({1, 4, 1, 4, 2}, {1, 1, 4, 4, 2}, {0, 1, 0, 1, 0});
  EXPECT_EQ(either[0].level, Level::kLcs);
  EXPECT_EQ(either[4].level, Level::kExact);
}

// A capture dealt out to streams in stretches, as branches of a model are, that
// run at speeds of their own.
TEST(Align, StreamsAreDealtOutOfTheCapture) {
  size_t facts = 0;
  size_t kernels = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const uint32_t streams = 2 + seed % 2;
    const uint32_t names = 3 + random() % 20;
    struct Kernel {
      uint32_t token, place, stream;
      uint64_t start;
    };
    std::vector<Kernel> replay;
    Ids capture;
    std::vector<uint64_t> clock(streams);
    while (capture.size() < 150) {
      const uint32_t stream = random() % streams;
      for (uint32_t left = 1 + random() % 12; left > 0; --left) {
        clock[stream] += 1 + random() % 9;
        const uint32_t token = random() % names;
        replay.push_back({token, static_cast<uint32_t>(capture.size()), stream,
                          clock[stream]});
        capture.push_back(token);
      }
    }
    std::stable_sort(
        replay.begin(), replay.end(),
        [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
    Ids tokens;
    std::vector<uint32_t> lanes;
    for (const Kernel& kernel : replay) {
      tokens.push_back(kernel.token);
      lanes.push_back(kernel.stream);
    }
    const auto matches = Matches(capture, tokens, lanes);
    for (size_t j = 0; j < matches.size(); ++j) {
      ++kernels;
      if (ConfidenceOf(matches[j].level) != Confidence::kFact) continue;
      ++facts;
      EXPECT_EQ(matches[j].partner, replay[j].place)
          << "seed " << seed << " kernel " << j;
    }
  }
  RecordProperty("facts", static_cast<int>(facts));
  EXPECT_GT(facts * 2, kernels);
}

// Sequences of a model with planted noise: what is called a fact is right.
TEST(Align, FactsAreRightUnderNoise) {
  size_t facts = 0;
  size_t right_facts = 0;
  size_t kernels = 0;
  size_t right = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    Ids capture;
    for (int layer = 0; layer < 24; ++layer) {
      for (uint32_t k = 0; k < 18; ++k)
        capture.push_back(k < 14 ? k : 20 + k + (layer % 2) * 10);
    }
    Ids replay;
    std::vector<uint32_t> truth;
    for (uint32_t i = 0; i < capture.size(); ++i) {
      if (random() % 100 < 5) {  // inserted, from somewhere else
        replay.push_back(1000 + random() % 3);
        truth.push_back(Match::kNoPartner);
      }
      if (random() % 100 < 5) continue;  // missing
      replay.push_back(capture[i]);
      truth.push_back(i);
    }
    for (size_t i = 0; i + 1 < replay.size(); ++i) {
      if (random() % 100 < 5 && replay[i] != replay[i + 1]) {
        std::swap(replay[i], replay[i + 1]);
        std::swap(truth[i], truth[i + 1]);
      }
    }
    const auto matches = Matches(capture, replay);
    for (size_t j = 0; j < matches.size(); ++j) {
      if (truth[j] == Match::kNoPartner) continue;
      ++kernels;
      right += matches[j].partner == truth[j];
      if (ConfidenceOf(matches[j].level) != Confidence::kFact) continue;
      ++facts;
      right_facts += matches[j].partner == truth[j];
    }
  }
  EXPECT_GE(static_cast<double>(right_facts),
            0.994 * static_cast<double>(facts));
  EXPECT_GE(static_cast<double>(right), 0.955 * static_cast<double>(kernels));
}

TEST(Align, UnrelatedSequencesMatchNothing) {
  const auto matches = Matches({1, 6, 11, 16}, {2, 7, 3, 8, 4});
  for (const Match& match : matches) EXPECT_EQ(match.level, Level::kNone);
}

TEST(Align, EmptySequencesAreFine) {
  EXPECT_TRUE(Matches({1, 2}, {}).empty());
  EXPECT_EQ(Matches({}, {1})[0].level, Level::kNone);
}

}  // namespace

namespace {

using Lists = std::vector<Ids>;

Ids Assigned(const Lists& segments, const Lists& launches) {
  return Assign(static_cast<uint32_t>(launches.size()),
                static_cast<uint32_t>(segments.size()),
                [&](uint32_t l, uint32_t s) {
                  return Distance(segments[s], launches[l]);
                });
}

TEST(Distance, CountsWhatOneSideLacks) {
  EXPECT_EQ(Distance(Ids{1, 2, 3}, Ids{1, 2, 3}), 0U);
  EXPECT_EQ(Distance(Ids{1, 2, 3}, Ids{3, 2, 1}), 1U);
  EXPECT_EQ(Distance(Ids{1, 2, 2}, Ids{2, 4}), 4U);
  EXPECT_EQ(Distance(Ids{}, Ids{}), 0U);
}

// Layers of one model: all but the ends have the same kernels.
TEST(Assign, EqualLayersFollowTheOrder) {
  const Lists segments = {{1, 2}, {2, 3}, {2, 3}, {2, 3}, {2, 4}};
  EXPECT_EQ(Assigned(segments, segments), (Ids{0, 1, 2, 3, 4}));
  Lists twice = segments;
  twice.insert(twice.end(), segments.begin(), segments.end());
  EXPECT_EQ(Assigned(segments, twice), (Ids{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST(Assign, ContentsDecideWhereTheyDiffer) {
  const Lists segments = {{1, 2}, {3, 4}};
  EXPECT_EQ(Assigned(segments, {{3, 4}, {1, 2}, {3, 4}}), (Ids{1, 0, 1}));
  EXPECT_EQ(Assigned(segments, {{3, 4}}), (Ids{1}));
}

TEST(Assign, NoiseDoesNotBreakTheOrder) {
  const Lists segments = {
      {1, 2, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}, {2, 4, 5, 6}};
  Lists launches = segments;
  launches[1] = {2, 5, 6};  // as near to the first
  launches[3] = {2, 9, 3, 5, 6};
  EXPECT_EQ(Assigned(segments, launches), (Ids{0, 1, 2, 3, 4}));
}

TEST(Assign, FewerLaunchesKeepTheOrder) {
  const Lists segments = {{1}, {2}, {2}, {3}};
  EXPECT_EQ(Assigned(segments, {{2}, {3}}), (Ids{1, 3}));
  EXPECT_EQ(Assigned(segments, {{2}, {2}, {3}}), (Ids{1, 2, 3}));
  EXPECT_EQ(Assigned(segments, {{1}, {2}, {2}}), (Ids{0, 1, 2}));
}

// The cheapest increasing choice, by trying all.
TEST(Assign, IncreasingChoiceIsTheCheapest) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const uint32_t segments = 2 + random() % 6;
    const uint32_t launches = 1 + random() % (segments - 1);
    std::vector<Ids> costs(launches, Ids(segments));
    for (Ids& row : costs) {
      for (uint32_t& x : row) x = 10 + random() % 3;
    }
    const Ids found = Assign(launches, segments, [&](uint32_t l, uint32_t s) {
      return costs[l][s];
    });
    uint64_t best = UINT64_MAX;
    for (uint32_t mask = 0; mask < (1U << segments); ++mask) {
      if (static_cast<uint32_t>(__builtin_popcount(mask)) != launches) continue;
      uint64_t sum = 0;
      uint32_t l = 0;
      for (uint32_t s = 0; s < segments; ++s) {
        if ((mask >> s & 1) != 0) sum += costs[l++][s];
      }
      best = std::min(best, sum);
    }
    uint64_t sum = 0;
    for (uint32_t l = 0; l < launches; ++l) sum += costs[l][found[l]];
    EXPECT_EQ(sum, best);
    EXPECT_TRUE(std::adjacent_find(found.begin(), found.end(),
                                   std::greater_equal<>()) == found.end());
  }
}

}  // namespace

namespace {

std::vector<uint32_t> Joined(const std::vector<std::vector<uint32_t>>& parts) {
  std::vector<uint32_t> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Model of `layers` layers of eight kernels behind one of its own.
std::vector<uint32_t> Model(uint32_t own, uint32_t layers) {
  std::vector<uint32_t> model = {own};
  for (uint32_t l = 0; l < layers; ++l)
    for (uint32_t k : {1, 2, 3, 2, 4, 5, 6, 2}) model.push_back(k);
  model.push_back(own + 1);
  return model;
}

std::vector<std::pair<uint32_t, uint32_t>> Places(
    const std::vector<Stretch>& stretches) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (const Stretch& s : stretches)
    places.emplace_back(s.whole.replay_begin, s.whole.capture_begin);
  return places;
}

TEST(Stretches, OnceInTheCaptureFourTimesInTheReplay) {
  const auto once = Model(100, 3);
  const auto capture = Joined({{90, 91}, once, {92}});
  const auto size = static_cast<uint32_t>(once.size());
  const auto found = FindStretches(capture, Joined({once, once, once, once}));
  ASSERT_EQ(found.size(), 4u);
  for (uint32_t k = 0; k < 4; ++k) {
    EXPECT_EQ(found[k].whole.replay_begin, k * size);
    EXPECT_EQ(found[k].whole.capture_begin, 2u);
    EXPECT_EQ(found[k].whole.capture_end, 2 + size);
  }
}

TEST(Stretches, ThreeEqualIterationsTakeTheFirst) {
  const auto once = Model(100, 3);
  const auto capture = Joined({once, once, once});
  const auto found = FindStretches(capture, once);
  EXPECT_EQ(Places(found),
            (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  EXPECT_EQ(Occurrences(capture, 0, static_cast<uint32_t>(once.size())).size(),
            3u);
}

TEST(Stretches, TwoModelsAreToldApart) {
  const auto a = Model(100, 3), b = Model(200, 4);
  const auto n = static_cast<uint32_t>(a.size());
  const auto found = FindStretches(Joined({a, b}), Joined({b, a}));
  EXPECT_EQ(Places(found), (std::vector<std::pair<uint32_t, uint32_t>>{
                               {0, n}, {static_cast<uint32_t>(b.size()), 0}}));
}

TEST(Stretches, LaunchesOfOneModelAreItsPieces) {
  const auto model = Model(100, 4);
  const auto found =
      FindStretches(model, model, std::vector<uint32_t>{0, 9, 17});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].pieces.size(), 3u);
  EXPECT_EQ(found[0].pieces[1].replay_begin, 9u);
  EXPECT_EQ(found[0].pieces[1].capture_begin, 9u);
  EXPECT_EQ(found[0].pieces[1].capture_end, 17u);
}

TEST(Stretches, StrangersFollowNothing) {
  EXPECT_TRUE(
      FindStretches(Model(100, 3), std::vector<uint32_t>(40, 77)).empty());
}

// Planted pieces with deletions and insertions: at least 95 % of the elements
// that were kept lie in a stretch that covers their place.
TEST(Stretches, PlantedPiecesAreFoundUnderNoise) {
  uint32_t kept = 0, right = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return random() % n; };
    std::vector<uint32_t> capture;
    for (int i = 0; i < 200; ++i) capture.push_back(below(60));
    std::vector<uint32_t> replay, place;
    for (int piece = 0; piece < 3; ++piece) {
      const uint32_t begin = below(120);
      for (uint32_t i = begin; i < begin + 60; ++i) {
        if (below(50) == 0) continue;
        if (below(50) == 0) {
          replay.push_back(1000 + below(5));
          place.push_back(UINT32_MAX);
        }
        replay.push_back(capture[i]);
        place.push_back(i);
      }
    }
    const auto found = FindStretches(capture, replay);
    for (uint32_t j = 0; j < replay.size(); ++j) {
      if (place[j] == UINT32_MAX) continue;
      ++kept;
      for (const Stretch& s : found)
        right += j >= s.whole.replay_begin && j < s.whole.replay_end &&
                 place[j] >= s.whole.capture_begin &&
                 place[j] < s.whole.capture_end;
    }
  }
  EXPECT_GE(right * 100, kept * 95);
}

TEST(Stretches, OccurrencesOfRepeats) {
  const std::vector<uint32_t> text = {1, 1, 2, 1, 1, 2, 1, 1};
  EXPECT_EQ(Occurrences(text, 0, 2), (std::vector<uint32_t>{0, 3, 6}));
  EXPECT_EQ(Occurrences(text, 1, 4), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(Occurrences(text, 0, 8), (std::vector<uint32_t>{0}));
}

}  // namespace

namespace {

using Layers = std::map<std::string, int64_t>;

// Modules by their paths, "Model_0/Layer_1", each after the one it is in; the
// layer of each.
Layers LayersOf(const std::vector<std::string>& paths) {
  // Each calls those that follow below it.
  const auto last_below = [&](size_t i) {
    size_t last = i;
    while (last + 1 < paths.size() &&
           paths[last + 1].starts_with(paths[i] + "/"))
      ++last;
    return last;
  };
  trace::LocalNames names;
  trace::Segment segment(&names);
  const trace::TrackId track =
      names.InternTrack(names.Intern("9"), names.Intern("1"));
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string own = paths[i].substr(paths[i].rfind('/') + 1);
    const auto start_ns = static_cast<int64_t>(100 * i);
    const auto end_ns = static_cast<int64_t>(100 * last_below(i) + 50);
    segment.AddSlice(start_ns, end_ns - start_ns,
                     names.Intern("nn.Module: " + own), trace::Kind::kPython,
                     names.InternCategory("python_function"), track, i,
                     segment.AddPython({}));
    ++segment.next_uid;
  }
  segment.Seal();
  trace::TraceBuilder builder;
  builder.Append(segment);
  const trace::Trace trace = builder.Finish(1);
  const tree::Tree tree = tree::Tree::Build(trace, {});
  const tree::Modules modules = tree::Modules::Build(tree);
  const LayerNumbers numbers(trace, modules);
  Layers out;
  for (uint32_t i = 0; i < modules.paths().size(); ++i) {
    const tree::ModulePathId path(i);
    out[modules.PathText(path)] = numbers.Of(path);
  }
  EXPECT_EQ(out.size(), paths.size());
  return out;
}

TEST(LayerNumbers, PartsOfALayerHaveItsNumber) {
  EXPECT_EQ(
      LayersOf({"Model_0", "Model_0/DecoderLayer_2",
                "Model_0/DecoderLayer_2/LayerNorm_8", "Model_0/DecoderLayer_3",
                "Model_0/DecoderLayer_3/Attention_3",
                "Model_0/DecoderLayer_3/Attention_3/LayerScale_7",
                "Model_0/DecoderLayer_3/LayerNorm_12", "Model_0/LayerNorm_13"}),
      (Layers{{"Model_0", -1},
              {"Model_0/DecoderLayer_2", 2},
              {"Model_0/DecoderLayer_2/LayerNorm_8", 2},
              {"Model_0/DecoderLayer_3", 3},
              {"Model_0/DecoderLayer_3/Attention_3", 3},
              {"Model_0/DecoderLayer_3/Attention_3/LayerScale_7", 3},
              {"Model_0/DecoderLayer_3/LayerNorm_12", 3},
              {"Model_0/LayerNorm_13", -1}}));
}

TEST(LayerNumbers, TheContainerIsTheOneThatRepeats) {
  EXPECT_EQ(
      LayersOf({"Block_0", "Block_0/LayerTE_4", "Block_0/LayerTE_4/MlpBlock_8",
                "Block_0/LayerTE_4/MlpBlock_9", "Block_0/LayerTE_5",
                "Block_0/LayerTE_5/MlpBlock_10"}),
      (Layers{{"Block_0", 0},
              {"Block_0/LayerTE_4", 4},
              {"Block_0/LayerTE_4/MlpBlock_8", 4},
              {"Block_0/LayerTE_4/MlpBlock_9", 4},
              {"Block_0/LayerTE_5", 5},
              {"Block_0/LayerTE_5/MlpBlock_10", 5}}));
}

TEST(LayerNumbers, OneLayerAloneIsStillOne) {
  EXPECT_EQ(LayersOf({"model", "model/layers_7", "model/layers_7/mlp_1",
                      "model/h_3", "model/path_4", "model/layer1_0"}),
            (Layers{{"model", -1},
                    {"model/layers_7", 7},
                    {"model/layers_7/mlp_1", 7},
                    {"model/h_3", 3},
                    {"model/path_4", -1},
                    {"model/layer1_0", -1}}));
}

}  // namespace

}  // namespace lamina::cudagraph
