// SPDX-License-Identifier: Apache-2.0
#include "page/counters.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <string>
#include <vector>

#include "base/escape.h"

namespace lamina::page {
namespace {

using trace::Trace;

// A page draws this many series at most, the longest ones.
constexpr size_t kMostSeries = 64;

struct Point {
  int64_t time_ns;
  uint32_t uid;
  double value;
};

struct Series {
  std::string name;
  bool is_bytes = false;
  std::vector<Point> points;
};

std::string DeviceName(const trace::MemoryArgs& memory) {
  return memory.device_type == 0 ? std::string("host")
                                 : fmt::format("GPU {}", memory.device_id);
}

// Series in the order of their first sample.
std::vector<Series> Collect(const Trace& trace) {
  std::vector<Series> all;
  std::map<std::string, size_t> at;
  const auto add = [&](std::string name, bool is_bytes, const Point& point) {
    const auto [it, is_new] = at.try_emplace(name, all.size());
    if (is_new) all.push_back({std::move(name), is_bytes, {}});
    all[it->second].points.push_back(point);
  };
  for (uint32_t i = 0; i < trace.counters.size(); ++i) {
    const std::string_view name = trace.Text(trace.counters.name[i]);
    const std::string_view series = trace.Text(trace.counters.series[i]);
    const trace::Track& track = trace.tracks[trace.counters.track[i].value];
    std::string full(name);
    if (!series.empty() && series != "value" && series != name)
      full += fmt::format(" {}", series);
    full += fmt::format(" ({})", trace.Text(track.pid));
    add(std::move(full), false,
        {trace.counters.time_ns[i], trace.counters.uid[i],
         trace.counters.value[i]});
  }
  for (uint32_t i = 0; i < trace.instants.size(); ++i) {
    const uint32_t row = trace.instants.memory[i];
    if (row == trace::kNoRow) continue;
    const trace::MemoryArgs& memory = trace.memory[row];
    const auto sample = [&](std::string_view what, int64_t bytes) {
      if (bytes == trace::kNoInt) return;
      add(fmt::format("{} {}", what, DeviceName(memory)), true,
          {trace.instants.time_ns[i], trace.instants.uid[i],
           static_cast<double>(bytes)});
    };
    sample("Allocated", memory.total_allocated);
    sample("Reserved", memory.total_reserved);
  }
  return all;
}

// A sample that repeats the value before it changes no step line.
void KeepSteps(std::vector<Point>& points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::pair(a.time_ns, a.uid) < std::pair(b.time_ns, b.uid);
  });
  std::vector<Point> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool is_last = i + 1 == points.size();
    if (!kept.empty() && !is_last && kept.back().value == points[i].value)
      continue;
    kept.push_back(points[i]);
  }
  points = std::move(kept);
}

}  // namespace

void AddCounters(const Trace& trace, render::Page& page) {
  std::vector<Series> all = Collect(trace);
  for (Series& series : all) KeepSteps(series.points);
  std::stable_sort(all.begin(), all.end(),
                   [](const Series& a, const Series& b) {
                     return a.points.size() > b.points.size();
                   });
  if (all.size() > kMostSeries) all.resize(kMostSeries);
  std::sort(all.begin(), all.end(),
            [](const Series& a, const Series& b) { return a.name < b.name; });
  if (all.empty()) return;
  std::vector<int64_t> time;
  std::vector<double> value;
  std::string json = "[";
  for (const Series& series : all) {
    if (json.size() > 1) json += ',';
    json += fmt::format("{{\"name\":{},\"bytes\":{},\"begin\":{},",
                        JsonQuote(Shorten(series.name, 200)), series.is_bytes,
                        time.size());
    for (const Point& point : series.points) {
      time.push_back(point.time_ns - trace.first_ns);
      value.push_back(point.value);
    }
    json += fmt::format("\"end\":{}}}", time.size());
  }
  page.facts.emplace_back("counters", json + "]");
  render::Block block("counters", time.size());
  block.Add("time", time, true);
  block.AddReals("value", value);
  page.blocks.push_back(std::move(block));
}

}  // namespace lamina::page
