// SPDX-License-Identifier: Apache-2.0
//
// What TraceBuilder makes of segments: ids, pairs, names and streams.
#include "trace/builder.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

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
}  // namespace lamina::trace
