// SPDX-License-Identifier: Apache-2.0
//
// What TraceBuilder makes of segments: ids, pairs, names and streams.

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "trace/builder.h"
#include "trace/graft.h"
#include "trace/graph_nodes.h"

namespace lamina::trace {

namespace {

// "name[start,end)" of every slice in the order of the trace.
std::vector<std::string> Slices(const Trace& trace) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    const int64_t start = trace.Start(s);
    out.push_back(std::string(trace.Name(s)) + "[" + std::to_string(start) +
                  "," + std::to_string(start + trace.Duration(s)) + ")");
  }
  return out;
}

// Begins are +time, ends -time; spans are named in the order of begins.
std::vector<std::string> Pair(const std::vector<int64_t>& events,
                              Diagnostics* diagnostics = nullptr) {
  LocalNames names;
  Segment segment(&names);
  const TrackId track =
      segment.names->InternTrack(names.Intern("1"), names.Intern("1"));
  char name = 'a';
  for (const int64_t event : events) {
    HalfSlice half;
    half.begin = event >= 0;
    half.time_ns = half.begin ? event : -event;
    half.track = track;
    half.uid = segment.next_uid++;
    if (half.begin) half.name = names.Intern(std::string(1, name++));
    segment.halves.push_back(half);
  }
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  const Trace trace = builder.Finish(1);
  if (diagnostics != nullptr) diagnostics->Merge(trace.diagnostics);
  return Slices(trace);
}

using Spans = std::vector<std::string>;

TEST(Halves, PairLikeBrackets) {
  EXPECT_EQ(Pair({10, 20, -30, -40}), (Spans{"b[20,30)", "a[10,40)"}));
}

// At one instant the file decides while the track is in order.
TEST(Halves, KeepTheOrderOfTheFileAtOneInstant) {
  EXPECT_EQ(Pair({10, -20, 20, -30}), (Spans{"a[10,20)", "b[20,30)"}));
  EXPECT_EQ(Pair({10, 20, -20, -30}), (Spans{"b[20,20)", "a[10,30)"}));
}

// All begins before all ends: back-to-back spans stay apart.
TEST(Halves, AreSortedWhenTheFileIsNot) {
  EXPECT_EQ(Pair({10, 20, 30, -20, -30, -40}),
            (Spans{"a[10,20)", "b[20,30)", "c[30,40)"}));
  EXPECT_EQ(Pair({30, 10, -10, -40}), (Spans{"b[10,10)", "a[30,40)"}));
}

TEST(Halves, WithoutPartnerAreCounted) {
  Diagnostics diagnostics;
  EXPECT_EQ(Pair({-5, 10, 20, -30}, &diagnostics),
            (Spans{"b[20,30)", "a[10,30)"}));
  EXPECT_EQ(diagnostics.Count("end_without_begin"), 1u);
  EXPECT_EQ(diagnostics.Count("begin_without_end"), 1u);
}

// One event per number: a kernel of that name on one of three streams.
Trace Join(const std::vector<int>& events, const std::vector<size_t>& cuts,
           int workers) {
  std::vector<LocalNames> names(static_cast<size_t>(workers));
  TraceBuilder builder;
  size_t begin = 0;
  for (size_t chunk = 0; chunk < cuts.size(); ++chunk) {
    LocalNames& local = names[chunk % names.size()];
    Segment segment(&local);
    for (size_t i = begin; i < cuts[chunk]; ++i) {
      const int event = events[i];
      DeviceArgs args;
      args.stream = event % 3;
      segment.AddSlice(
          1000 - static_cast<int64_t>(i) % 7, 5,
          local.Intern("k" + std::to_string(event)), Kind::kKernel,
          local.InternCategory(local.Intern("gpu")),
          local.InternTrack(local.Intern("0"),
                            local.Intern(std::to_string(event % 3))),
          i, segment.AddDevice(args));
      ++segment.next_uid;
    }
    begin = cuts[chunk];
    segment.Seal();
    builder.Append(segment);
  }
  return builder.Finish(workers);
}

std::string Describe(const Trace& trace) {
  std::string out;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    out += std::to_string(trace.slices.name[i].value) + "/" +
           std::to_string(trace.slices.track[i].value) + "/" +
           std::to_string(trace.slices.uid[i]) + " ";
  }
  for (const Stream& stream : trace.streams) {
    out += "\n" + std::to_string(stream.stream) + ":";
    for (const SliceId s : stream.slices) out += " " + std::to_string(s.value);
  }
  return out;
}

// Ids and streams depend on the input alone, not on how it was cut or on how
// many workers read it.
TEST(TraceBuilder, GivesTheSameIdsHoweverTheInputIsCut) {
  std::mt19937 random(7);
  std::vector<int> events(300);
  for (int& event : events) event = static_cast<int>(random() % 20);
  const std::string whole = Describe(Join(events, {events.size()}, 1));
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 3);
  for (int round = 0; round < 20; ++round) {
    std::vector<size_t> cuts = {events.size()};
    for (int i = 0; i < round; ++i) cuts.push_back(random() % events.size());
    std::sort(cuts.begin(), cuts.end());
    EXPECT_EQ(Describe(Join(events, cuts, 1 + round % 4)), whole);
  }
}

TEST(TraceBuilder, OrdersStreamsByNumberAndWorkByTime) {
  const Trace trace = Join({2, 1, 0, 2}, {4}, 1);
  ASSERT_EQ(trace.streams.size(), 3u);
  EXPECT_EQ(trace.streams[0].stream, 0);
  EXPECT_EQ(trace.streams[2].stream, 2);
  EXPECT_EQ(trace.streams[2].slices,
            (std::vector<SliceId>{SliceId(3), SliceId(0)}));
}

// A fact about a process holds for all its tracks; that of tid 0 wins.
TEST(TraceBuilder, NamesAllTracksOfAProcess) {
  LocalNames names;
  Segment segment(&names);
  const auto add = [&](const char* tid, const char* name) {
    TrackFact fact;
    fact.track = names.InternTrack(names.Intern("7"), names.Intern(tid));
    fact.what = TrackFact::What::kProcessName;
    fact.text = names.Intern(name);
    segment.facts.push_back(fact);
  };
  add("5", "early");
  add("0", "python");
  add("6", "late");
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  const Trace trace = builder.Finish(1);
  ASSERT_EQ(trace.tracks.size(), 3u);
  for (const Track& track : trace.tracks)
    EXPECT_EQ(trace.strings[track.process_name], "python");
}

}  // namespace

namespace {

// One op of each of `count` categories "PREFIX0" ... in order.
Trace WithCategories(const std::string& prefix, int count) {
  LocalNames names;
  Segment segment(&names);
  for (int i = 0; i < count; ++i) {
    segment.AddSlice(
        10 * i, 5, names.Intern("op"), Kind::kOp,
        names.InternCategory(names.Intern(prefix + std::to_string(i))),
        names.InternTrack(names.Intern("1"), names.Intern("1")), 0,
        segment.AddOp({}));
    ++segment.next_uid;
  }
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  return builder.Finish(1);
}

std::string_view GraftedCategory(Trace& trace, const Trace& capture,
                                 int slice) {
  Grafter grafter(trace);
  grafter.From(capture);
  return trace.Category(grafter.Add(SliceId(static_cast<uint32_t>(slice)),
                                    SliceId(0), SliceId()));
}

TEST(Grafter, AddsCategoriesWhileTheirNumberFits) {
  Trace trace = WithCategories("own", 254);
  const Trace capture = WithCategories("captured", 2);
  EXPECT_EQ(GraftedCategory(trace, capture, 0), "captured0");
  EXPECT_EQ(GraftedCategory(trace, capture, 1), "");
}

// None of them may get the name of another.
TEST(Grafter, LeavesFurtherCategoriesWithoutName) {
  for (const int count : {255, 256, 300}) {
    Trace trace = WithCategories("own", count);
    EXPECT_EQ(trace.Category(SliceId(254)), "own254");
    const Trace capture = WithCategories("captured", 1);
    EXPECT_EQ(GraftedCategory(trace, capture, 0), "");
    const Trace known = WithCategories("own", 1);
    EXPECT_EQ(GraftedCategory(trace, known, 0), "own0");
  }
}

}  // namespace

namespace {

// Kernels of two processes with equal node ids, chains of all lengths.
class GraphNodesTest : public testing::Test {
 protected:
  TrackId Track(const char* pid) {
    return names_.InternTrack(names_.Intern(pid), names_.Intern("1"));
  }
  void Node(const char* pid, int64_t id, int64_t original, int64_t start_ns) {
    segment_.graph_nodes.push_back({id, original, start_ns, Track(pid)});
  }
  void Kernel(const char* pid, int64_t node) {
    DeviceArgs args;
    args.graph_node_id = node;
    segment_.AddSlice(static_cast<int64_t>(segment_.slices.size()), 1,
                      names_.Intern("k"), Kind::kKernel, 0, Track(pid), 0,
                      segment_.AddDevice(args));
    ++segment_.next_uid;
  }
  Trace Finish() {
    segment_.Seal();
    builder_.Append(segment_);
    return builder_.Finish(1);
  }

  TraceBuilder builder_;
  LocalNames names_;
  Segment segment_{&names_};
};

TEST_F(GraphNodesTest, FollowsCopiesWithinTheProcess) {
  Node("a", 1, kNoInt, 100);
  Node("a", 2, 1, 200);
  Node("a", 3, 2, 300);
  Node("b", 1, kNoInt, 400);
  Node("b", 3, 9, 500);  // its original is not in the trace
  for (const int64_t id : {1, 2, 3}) Kernel("a", id);
  Kernel("b", 1);
  Kernel("b", 3);
  Kernel("b", 2);
  Kernel("a", kNoInt);
  const Trace trace = Finish();
  const GraphNodes nodes(trace);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_NE(nodes.Root(SliceId(i)), nullptr) << i;
    EXPECT_EQ(nodes.Root(SliceId(i))->start_ns, 100) << i;
  }
  ASSERT_NE(nodes.Root(SliceId(3)), nullptr);
  EXPECT_EQ(nodes.Root(SliceId(3))->start_ns, 400);
  for (uint32_t i = 4; i < 7; ++i)
    EXPECT_EQ(nodes.Root(SliceId(i)), nullptr) << i;
}

TEST_F(GraphNodesTest, EndsOnCirclesAndLongChains) {
  Node("a", 1, 2, 100);
  Node("a", 2, 1, 200);
  constexpr int64_t kFirst = 1000;
  for (int64_t i = 0; i <= GraphNodes::kMaxHops + 1; ++i)
    Node("a", kFirst + i, i == 0 ? kNoInt : kFirst + i - 1, i);
  Kernel("a", 1);
  Kernel("a", kFirst + GraphNodes::kMaxHops);
  Kernel("a", kFirst + GraphNodes::kMaxHops + 1);
  const Trace trace = Finish();
  const GraphNodes nodes(trace);
  EXPECT_EQ(nodes.Root(SliceId(0)), nullptr);
  ASSERT_NE(nodes.Root(SliceId(1)), nullptr);
  EXPECT_EQ(nodes.Root(SliceId(1))->id, kFirst);
  EXPECT_EQ(nodes.Root(SliceId(2)), nullptr);
}

}  // namespace

}  // namespace lamina::trace
