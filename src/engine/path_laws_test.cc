// SPDX-License-Identifier: Apache-2.0
//
// What must hold of the critical path of any recording, on the samples and on
// the reference traces of all formats. tests/checks/path_laws_test.py has the
// laws that need changed recordings.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/path/tables.h"
#include "engine/session.h"
#include "source_dir.h"

namespace lamina::engine {
namespace {

namespace fs = std::filesystem;
using analysis::path::EdgeKind;
using analysis::path::Graph;
using analysis::path::Outcome;
using analysis::path::ParseScenario;
using analysis::path::PathClass;
using analysis::path::PathSums;
using analysis::path::Scenario;
using analysis::path::Segment;
using analysis::path::SegmentKind;

std::vector<std::string> Recordings() {
  std::vector<std::string> found;
  for (const char* sample : {"train_step", "serve", "moe", "ranks/rank0"}) {
    found.push_back(LAMINA_SOURCE_DIR "/samples/" + std::string(sample) +
                    ".json.gz");
  }
  const char* shared = std::getenv("LAMINA_SHARED");
  const fs::path folder =
      fs::path(shared != nullptr ? shared : LAMINA_SOURCE_DIR "/../shared") /
      "traces";
  std::error_code error;
  std::vector<std::string> traces;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const std::string_view ending :
         {".json.gz", ".sqlite", ".db", ".xplane.pb", ".pftrace"}) {
      // Captures have no device work of their own time.
      if (name.ends_with(ending) && name.find("truth") == std::string::npos &&
          it->path().string().find("/capture/") == std::string::npos)
        traces.push_back(it->path().string());
    }
  }
  std::sort(traces.begin(), traces.end());
  found.insert(found.end(), traces.begin(), traces.end());
  return found;
}

int64_t EndOf(const Graph& graph, const Outcome& outcome) {
  int64_t end = 0;
  for (uint32_t v = 0; v < graph.nodes(); ++v) {
    if (graph.TakesPart(v)) end = std::max(end, outcome.time(v));
  }
  return end;
}

// Along the nodes that move and by a look at all of them: the same times.
void ExpectEqualTimes(const Graph& graph, const Scenario& scenario,
                      const std::string& what) {
  const Outcome few(graph, scenario, Outcome::Pass::kTouched);
  const Outcome full(graph, scenario, Outcome::Pass::kFull);
  EXPECT_EQ(few.touched(), full.touched()) << what;
  for (uint32_t v = 0; v < graph.nodes(); ++v) {
    for (size_t reading = 0; reading < analysis::path::kReadings; ++reading) {
      ASSERT_EQ(few.time(v, reading), full.time(v, reading))
          << what << ", node " << v << ", reading " << reading;
    }
  }
}

// Gaps and waits of a device on the path are part of its idle time.
void ExpectIdle(const Graph& graph, const std::vector<Segment>& segments,
                const std::string& name) {
  const analysis::host::HostModel& model = graph.model();
  const trace::Trace& trace = model.trace();
  std::map<uint32_t, int64_t> waits;
  for (const Segment& s : segments) {
    if (s.kind == SegmentKind::kDeviceGap ||
        s.kind == SegmentKind::kSubmittedWait)
      waits[model.device(s.owner)] += s.end_ns - s.start_ns;
  }
  for (const auto& [device, ns] : waits) {
    int64_t first = 0, reached = trace::kNoInt, idle = 0;
    for (const trace::SliceId s : model.devices()[device].work) {
      if (reached == trace::kNoInt) first = reached = trace.Start(s);
      idle += std::max<int64_t>(0, trace.Start(s) - reached);
      reached = std::max(reached, trace.End(s));
    }
    EXPECT_LE(ns, idle) << name << ", device " << device << " from " << first;
  }
}

// The whole time of device work of a kind on the path.
int64_t WholeWork(const Graph& graph, const std::vector<Segment>& segments,
                  SegmentKind kind) {
  std::set<uint32_t> seen;
  int64_t sum = 0;
  for (const Segment& s : segments) {
    if (s.kind == kind && s.owner.valid() && seen.insert(s.owner.value).second)
      sum += graph.model().trace().Duration(s.owner);
  }
  return sum;
}

// The less work, the more is saved, in every reading.
void ExpectMonotonic(const Graph& graph, const std::string& name) {
  for (const std::string what : {"compute", "host", "comm", "device"}) {
    std::optional<analysis::path::ByReading> before;
    for (const char* factor : {"0", "0.25", "0.5", "0.75", "1", "1.5"}) {
      const auto scenario =
          ParseScenario(graph, "scale:class=" + what + ":" + factor);
      ASSERT_TRUE(scenario.has_value()) << name;
      const auto ends = Outcome(graph, *scenario).Ends(graph.sink());
      for (size_t r = 0; before && r < ends.size(); ++r)
        EXPECT_LE((*before)[r], ends[r]) << name << " " << what << factor;
      if (std::string_view(factor) == "1") {
        for (const int64_t end : ends)
          EXPECT_EQ(end, graph.time(graph.sink())) << name << " " << what;
      }
      before = ends;
    }
  }
}

void ExpectLaws(const Graph& graph, const std::string& name) {
  const int64_t start = graph.start_ns(), end = graph.time(graph.sink());
  const std::vector<Segment> segments =
      analysis::path::RecordedPath(graph, graph.sink(), start);
  int64_t at = start;
  for (const Segment& s : segments) {
    ASSERT_EQ(s.start_ns, at) << name;
    ASSERT_GT(s.end_ns, s.start_ns) << name;
    at = s.end_ns;
  }
  ASSERT_EQ(at, end) << name;
  const PathSums sums = analysis::path::Sum(segments);
  const auto on_path = [&](SegmentKind kind) {
    return sums.kind[static_cast<size_t>(kind)];
  };
  const auto whole = [&](SegmentKind kind) {
    return WholeWork(graph, segments, kind);
  };
  ExpectIdle(graph, segments, name);
  ExpectMonotonic(graph, name);
  const int64_t waits = on_path(SegmentKind::kSubmittedWait) +
                        on_path(SegmentKind::kBusyWait) +
                        on_path(SegmentKind::kBeforeTrace);

  // Less work never makes anything later, and saves no more than what was
  // taken off the path.
  const struct {
    const char* spec;
    int64_t most;
  } less[] = {
      {"scale:class=compute:0.5",
       (whole(SegmentKind::kCompute) + whole(SegmentKind::kComm) + 1) / 2},
      {"scale:class=compute:0",
       whole(SegmentKind::kCompute) + whole(SegmentKind::kComm)},
      {"scale:class=comm:0", whole(SegmentKind::kComm)},
      {"scale:class=copy:0", whole(SegmentKind::kCopy)},
      {"scale:class=host:0.5", sums.of(PathClass::kHost)},
      // Work may then start with its call.
      {"zero:launch",
       on_path(SegmentKind::kLaunch) + waits + sums.of(PathClass::kHost)},
      {"zero:gaps", on_path(SegmentKind::kDeviceGap) + waits}};
  for (const auto& change : less) {
    const auto scenario = ParseScenario(graph, change.spec);
    if (!scenario) continue;  // nothing of the kind is recorded
    const std::string what = name + ", " + change.spec;
    ExpectEqualTimes(graph, *scenario, what);
    const Outcome outcome(graph, *scenario);
    for (uint32_t v = 0; v < graph.nodes(); ++v)
      ASSERT_LE(outcome.time(v), graph.time(v)) << what;
    // Halves are rounded segment by segment.
    EXPECT_LE(end - outcome.time(graph.sink()),
              change.most + static_cast<int64_t>(segments.size()))
        << what;
  }
  for (const char* spec : {"scale:class=compute:1", "scale:class=host:1",
                           "scale:class=copy:1", "scale:class=comm:1"}) {
    const auto same = ParseScenario(graph, spec);
    if (!same) continue;
    const Outcome outcome(graph, *same, Outcome::Pass::kFull);
    for (uint32_t v = 0; v < graph.nodes(); ++v)
      ASSERT_EQ(outcome.time(v), graph.time(v)) << name << ", " << spec;
  }

  // Of edges that join threads and streams some are taken out.
  size_t dropped = 0;
  constexpr size_t kMostDropped = 40;
  const size_t stride = 1 + graph.edges().size() / 400;
  for (uint32_t e = 0; e < graph.edges().size() && dropped < kMostDropped;
       e += static_cast<uint32_t>(stride)) {
    const EdgeKind kind = graph.edges()[e].kind;
    if (kind != EdgeKind::kSync && kind != EdgeKind::kDependency &&
        kind != EdgeKind::kDependencyInferred && kind != EdgeKind::kHandoff)
      continue;
    ++dropped;
    Scenario scenario;
    scenario.dropped.push_back(e);
    const std::string what = name + ", edge " + std::to_string(e);
    ExpectEqualTimes(graph, scenario, what);
    EXPECT_LE(EndOf(graph, Outcome(graph, scenario)),
              EndOf(graph, Outcome(graph, Scenario())))
        << what;
  }

  // With a host that takes no time the device still has its work.
  const auto free = ParseScenario(graph, "scale:class=host:0");
  ASSERT_TRUE(free.has_value()) << name;
  const int64_t then = EndOf(graph, Outcome(graph, *free));
  const trace::Trace& trace = graph.model().trace();
  for (const trace::Stream& stream : trace.streams) {
    int64_t busy = 0, reached = trace::kNoInt;
    bool overlaps = false;
    for (const trace::SliceId s : stream.slices) {
      overlaps = overlaps || trace.Start(s) < reached;
      reached = std::max(reached, trace.End(s));
      busy += trace.Duration(s);
    }
    if (!overlaps) {
      EXPECT_GE(then - start, busy) << name;
    }
  }
}

TEST(PathLaws, HoldOfEveryRecording) {
  size_t looked_at = 0;
  for (const std::string& file : Recordings()) {
    auto session = Session::Open(file, {});
    ASSERT_TRUE(session.has_value()) << file;
    const auto context =
        (*session)->ContextFor(tree::LinkMode::kAuto, false, {});
    ASSERT_TRUE(context.has_value()) << file;
    const auto graph = (*context)->Get<analysis::path::Graph>();
    ASSERT_TRUE(graph.has_value()) << file;
    if ((*graph)->sink() == analysis::path::kNoNode) continue;
    ++looked_at;
    ExpectLaws(**graph, fs::path(file).filename().string());
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(looked_at, 4u);
  std::printf("%zu recordings\n", looked_at);
}

}  // namespace
}  // namespace lamina::engine
