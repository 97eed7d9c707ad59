// SPDX-License-Identifier: Apache-2.0
//
// Module calls from ranges and paths, against a slow twin.
#include "trace/module_frames.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>

#include "trace/builder.h"

namespace lamina::trace {
namespace {

using Path = std::vector<std::string>;

struct Range {
  std::string text;  // "a.b_0", with "<" or ">" in front for a begin or an end
  int64_t start_ns;
  int64_t end_ns;
  std::string thread = "1";
};

// A path of dots; "~" in front is a backward pass.
Path Split(std::string_view text) {
  Path path(1);
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '~') continue;
    if (c == '.') {
      path.emplace_back();
    } else {
      path.back() += c;
    }
  }
  return path;
}

class Recording {
 public:
  Recording() : segment_(&names_) {}

  void Add(Kind kind, const Range& range, const std::string& process = "9") {
    segment_.AddSlice(
        range.start_ns, range.end_ns - range.start_ns,
        names_.Intern(range.text), kind,
        names_.InternCategory(names_.Intern("user_annotation")),
        names_.InternTrack(names_.Intern(process), names_.Intern(range.thread)),
        segment_.next_uid);
    ++segment_.next_uid;
  }

  // With frames for all ranges whose text is no "-".
  Trace Finish() {
    segment_.Seal();
    TraceBuilder builder;
    builder.Append(segment_);
    Trace trace = builder.Finish(1);
    ModuleMarkers markers;
    for (const StringId name : trace.slices.name) {
      const std::string text(trace.strings[name]);
      if (text == "-" || text.starts_with(kModulePrefix)) continue;
      ModuleMarker& marker = markers[name];
      marker.path.clear();
      for (const std::string& part : Split(text))
        marker.path.push_back(
            trace.strings.Intern(std::string(kModulePrefix) + part));
      marker.extent = text.starts_with('<')   ? ModuleMarker::Extent::kBegin
                      : text.starts_with('>') ? ModuleMarker::Extent::kEnd
                                              : ModuleMarker::Extent::kWhole;
      marker.backward = text.find('~') != std::string::npos;
    }
    AddModuleFrames(trace, markers);
    return trace;
  }

 private:
  LocalNames names_;
  Segment segment_;
};

// "a/b 10-20" for each frame, in order.
std::vector<std::string> Frames(const Trace& trace) {
  std::vector<std::string> out;
  std::vector<std::pair<int64_t, std::string>> open;  // end, path
  TrackId track;
  for (uint32_t i = RecordedSlices(trace); i < trace.slices.size(); ++i) {
    const SliceId s(i);
    EXPECT_TRUE(IsRangeFrame(trace, s));
    if (trace.slices.track[i] != track) open.clear();
    track = trace.slices.track[i];
    while (!open.empty() && open.back().first <= trace.Start(s))
      open.pop_back();
    std::string path = open.empty() ? "" : open.back().second + "/";
    path += trace.Name(s).substr(kModulePrefix.size());
    EXPECT_TRUE(open.empty() || trace.End(s) <= open.back().first) << path;
    open.emplace_back(trace.End(s), path);
    out.push_back((IsBackwardFrame(trace, s) ? "~" : "") + path + " " +
                  std::to_string(trace.Start(s)) + "-" +
                  std::to_string(trace.End(s)));
  }
  return out;
}

std::vector<std::string> FramesOf(const std::vector<Range>& ranges) {
  Recording recording;
  for (const Range& range : ranges) recording.Add(Kind::kAnnotation, range);
  return Frames(recording.Finish());
}

using List = std::vector<std::string>;

TEST(ModuleFrames, NestingOfRangesAndOfPathsAgree) {
  EXPECT_EQ(FramesOf({{"m", 0, 100},
                      {"m.l_0", 10, 50},
                      {"m.l_0.attn", 12, 20},
                      {"-", 13, 14},
                      {"m.l_1", 50, 90},
                      {"other", 60, 70}}),
            (List{"m 0-100", "m/l_0 10-50", "m/l_0/attn 12-20", "m/l_1 50-90",
                  "m/l_1/other 60-70"}));
}

TEST(ModuleFrames, PartsWithoutARangeLastWhileTheyAreShared) {
  EXPECT_EQ(FramesOf({{"m.l_0.attn", 0, 10},
                      {"m.l_0.mlp", 12, 20},
                      {"m.l_1.attn", 21, 30},
                      // The next pass.
                      {"m.l_0.attn", 40, 50},
                      {"m.l_0.mlp", 50, 60}}),
            (List{"m 0-30", "m/l_0 0-20", "m/l_0/attn 0-10", "m/l_0/mlp 12-20",
                  "m/l_1 21-30", "m/l_1/attn 21-30", "m 40-60", "m/l_0 40-60",
                  "m/l_0/attn 40-50", "m/l_0/mlp 50-60"}));
}

TEST(ModuleFrames, TheSameModuleAgainWithinItselfIsTheSameCall) {
  EXPECT_EQ(FramesOf({{"m.l_0", 0, 10}, {"m.l_0", 1, 9}, {"m", 2, 3}}),
            (List{"m 0-10", "m/l_0 0-10"}));
}

TEST(ModuleFrames, CrossingRangesAreCounted) {
  Recording recording;
  recording.Add(Kind::kAnnotation, {"a", 0, 10});
  recording.Add(Kind::kAnnotation, {"b", 5, 15});
  recording.Add(Kind::kAnnotation, {"c", 5, 8, "2"});
  const Trace trace = recording.Finish();
  EXPECT_EQ(Frames(trace), (List{"a 0-10", "c 5-8"}));
  EXPECT_EQ(trace.diagnostics.Count("crossing_module_range"), 1u);
}

TEST(ModuleFrames, BeginAndEndMakeOneCall) {
  EXPECT_EQ(FramesOf({{"-", 0, 1},
                      {"<l_0", 1, 3},
                      {"l_0.attn", 4, 6},
                      {">l_0", 8, 9},
                      {"<l_1", 10, 11},
                      {">l_1", 15, 16},
                      {"-", 90, 100}}),
            (List{"l_0 1-9", "l_0/attn 4-6", "l_1 10-16"}));
  EXPECT_EQ(FramesOf({{"<~l_0", 1, 3}, {">~l_0", 8, 9}, {">~l_0", 10, 12}}),
            (List{"~l_0 1-9", "~l_0 10-12"}));
}

TEST(ModuleFrames, CallsCutByTheRecordingLastToItsEnds) {
  EXPECT_EQ(FramesOf({{"-", 0, 1},
                      {">l_0", 8, 9},
                      {"<l_1", 10, 11},
                      {">l_1", 15, 16},
                      {"<l_2", 20, 21},
                      {"<l_2.mlp", 22, 23},
                      {"-", 90, 100}}),
            (List{"l_0 0-9", "l_1 10-16", "l_2 20-100", "l_2/mlp 22-100"}));
  // A begin without an end among others is a range of its own.
  EXPECT_EQ(
      FramesOf(
          {{"<l_0", 1, 3}, {"<l_1", 4, 5}, {">l_1", 6, 7}, {"-", 90, 100}}),
      (List{"l_0 1-3", "l_1 4-7"}));
}

TEST(ModuleFrames, RecordedFramesOfAProcessWin) {
  Recording recording;
  recording.Add(Kind::kPython, {"nn.Module: Net_0", 0, 100});
  recording.Add(Kind::kAnnotation, {"m.l_0", 10, 20});
  recording.Add(Kind::kAnnotation, {"m.l_0", 10, 20}, "10");
  recording.Add(Kind::kPython, {"step.py(1): main", 0, 100}, "10");
  const Trace trace = recording.Finish();
  EXPECT_EQ(Frames(trace), (List{"m 10-20", "m/l_0 10-20"}));
  EXPECT_EQ(RecordedSlices(trace), 4u);
  EXPECT_EQ(trace.Text(trace.TrackOf(SliceId(4)).pid), "10");
  EXPECT_EQ(RangeOfFrame(trace, SliceId(5)), SliceId(2));
  EXPECT_FALSE(IsRangeFrame(trace, SliceId(0)));
}

TEST(ModuleFrames, FramesKnowTheRangesOfTheirCall) {
  Recording recording;
  const Range ranges[] = {
      {"<m.l_0", 10, 12}, {">m.l_0", 30, 33}, {"w", 40, 50}};
  for (const Range& range : ranges) recording.Add(Kind::kAnnotation, range);
  const Trace trace = recording.Finish();
  ASSERT_EQ(Frames(trace), (List{"m 10-33", "m/l_0 10-33", "w 40-50"}));
  EXPECT_FALSE(LastRangeOfFrame(trace, SliceId(3)).valid());
  EXPECT_EQ(RangeOfFrame(trace, SliceId(4)), SliceId(0));
  EXPECT_EQ(LastRangeOfFrame(trace, SliceId(4)), SliceId(1));
  EXPECT_EQ(LastRangeOfFrame(trace, SliceId(5)), SliceId(2));
}

TEST(ModuleFrames, UidsAreBeyondThoseOfAllEvents) {
  Recording recording;
  recording.Add(Kind::kOp, {"m", 0, 10});
  const Trace trace = recording.Finish();
  ASSERT_EQ(trace.slices.size(), 2u);
  EXPECT_GE(trace.Uid(SliceId(1)), trace.info.events);
  EXPECT_EQ(trace.KindOf(SliceId(0)), Kind::kOp);
}

// --- against a slow twin ---

size_t Common(const Path& a, const Path& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

std::string Join(const Path& path) {
  std::string out;
  for (const std::string& part : path) out += (out.empty() ? "" : "/") + part;
  return out;
}

// Says for each range on its own, by looking at all others, what it is.
class Twin {
 public:
  explicit Twin(std::vector<Range> ranges) {
    std::stable_sort(
        ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
          return std::tuple(a.start_ns, -a.end_ns, Split(a.text).size()) <
                 std::tuple(b.start_ns, -b.end_ns, Split(b.text).size());
        });
    for (const Range& range : ranges) Place(range);
  }

  List Frames() const {
    List out;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      out.push_back(Text(call, call.rest.size(), call.end_ns));
      for (size_t depth = Shared(i); depth + 1 < call.rest.size(); ++depth) {
        // Begins here, and lasts while siblings share it.
        int64_t end_ns = call.end_ns;
        for (size_t j = i + 1; j < calls_.size(); ++j) {
          if (calls_[j].around != call.around) continue;
          if (Shared(j) <= depth) break;
          end_ns = std::max(end_ns, calls_[j].end_ns);
        }
        out.push_back(Text(call, depth + 1, end_ns));
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  struct Call {
    Path path;                     // of the text
    std::optional<size_t> around;  // the innermost range around it
    Path above;                    // all calls around that range, and it
    Path rest;                     // what this one adds
    int64_t start_ns;
    int64_t end_ns;
  };

  static std::string Text(const Call& call, size_t parts, int64_t end_ns) {
    Path path = call.above;
    path.insert(path.end(), call.rest.begin(),
                call.rest.begin() + static_cast<ptrdiff_t>(parts));
    return Join(path) + " " + std::to_string(call.start_ns) + "-" +
           std::to_string(end_ns);
  }

  void Place(const Range& range) {
    Call call{Split(range.text), {}, {}, {}, range.start_ns, range.end_ns};
    size_t known = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].end_ns <= call.start_ns) continue;
      if (calls_[i].end_ns < call.end_ns) return;  // they cross
      call.around = i;
      known = std::max(known, Common(calls_[i].path, call.path));
    }
    if (call.around) {
      const Call& outer = calls_[*call.around];
      call.above = outer.above;
      call.above.insert(call.above.end(), outer.rest.begin(), outer.rest.end());
      const size_t same = Common(call.above, call.path);
      if (same == std::min(call.above.size(), call.path.size()))
        known = std::max(known, same);
    }
    if (known == call.path.size()) return;  // the same call
    call.rest.assign(call.path.begin() + static_cast<ptrdiff_t>(known),
                     call.path.end());
    calls_.push_back(std::move(call));
  }

  // Parts without a range that a call shares with its sibling before.
  size_t Shared(size_t at) const {
    const Call& call = calls_[at];
    std::vector<size_t> before;  // siblings, the last first
    for (size_t i = at; i-- > 0;) {
      if (calls_[i].around == call.around) before.push_back(i);
    }
    if (before.empty()) return 0;
    const size_t shared =
        std::min(Common(calls_[before[0]].rest, call.rest),
                 std::min(calls_[before[0]].rest.size(), call.rest.size()) - 1);
    if (shared == 0) return 0;
    for (const size_t i : before) {
      // In the same call of the shared part: does it come again?
      if (calls_[i].rest[shared] == call.rest[shared]) return 0;
      if (Shared(i) < shared) break;
    }
    return shared;
  }

  std::vector<Call> calls_;
};

TEST(ModuleFrames, LikeASlowTwin) {
  std::mt19937 random(11);
  const auto below = [&](uint32_t n) {
    return static_cast<uint32_t>(random() % n);
  };
  constexpr std::string_view kParts[] = {"m", "l_0", "l_1", "x"};
  for (int round = 0; round < 3000; ++round) {
    std::vector<Range> ranges;
    const uint32_t count = 1 + below(9);
    const uint32_t span = 4 + below(40);
    for (uint32_t i = 0; i < count; ++i) {
      std::string text;
      for (uint32_t n = 1 + below(3); n > 0; --n)
        text += (text.empty() ? "" : ".") + std::string(kParts[below(4)]);
      const int64_t start = below(span);
      ranges.push_back(
          {text, start, start + 1 + below(round % 2 == 0 ? span : 4)});
    }
    List found = FramesOf(ranges);
    std::sort(found.begin(), found.end());
    std::string shown;
    for (const Range& r : ranges)
      shown += r.text + " " + std::to_string(r.start_ns) + "-" +
               std::to_string(r.end_ns) + ", ";
    ASSERT_EQ(found, Twin(ranges).Frames()) << shown;
  }
}

// Depth and number of ranges are the file's to choose.
TEST(ModuleFrames, DeepNestsAndOpenBeginsAreLinear) {
  std::vector<Range> ranges;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i)
    ranges.push_back({"p_" + std::to_string(i), i, 4 * kCount - i});
  for (int i = 0; i < kCount; ++i) {
    ranges.push_back({"<q_" + std::to_string(i), i, i + 1, "2"});
    ranges.push_back({">r_" + std::to_string(i), i, i + 1, "2"});
  }
  Recording recording;
  for (const Range& range : ranges) recording.Add(Kind::kAnnotation, range);
  const Trace trace = recording.Finish();
  EXPECT_GE(trace.slices.size() - RecordedSlices(trace), size_t{kCount});
}

}  // namespace
}  // namespace lamina::trace
