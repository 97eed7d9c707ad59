// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: counters and slices are points that are sorted together and
// written by time.
#include "emit/memory/snapshot_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/decimal.h"
#include "emit/common/brackets.h"
#include "emit/common/slice_args.h"
#include "emit/perfetto/packets.h"

namespace lamina::emit {
namespace {

using memory::Action;
using memory::Allocation;
using memory::Device;
using memory::DeviceView;
using memory::kCategories;
using memory::kMeasures;
using memory::Moment;
using perfetto::PacketWriter;
using perfetto::Track;
using perfetto::TrackUuid;

struct Point {
  enum class What : uint8_t { kCounter, kBegin, kEnd };
  int64_t time_ns = 0;
  What what = What::kCounter;
  uint64_t track = 0;
  int64_t bytes = 0;                 // of a counter
  const DeviceView* view = nullptr;  // of a slice
  uint32_t allocation = 0;
};

// The time at which each moment begins; never falling.
std::vector<int64_t> TimesOf(const Device& device) {
  const memory::Events& e = device.events();
  std::vector<int64_t> out(e.count() + 1);
  const bool timed = device.health().no_time < e.count();
  int64_t now = 0;
  for (size_t i = 0; timed && i < e.count(); ++i) {
    if (e.time_us[i] == memory::kNoTime) continue;
    now = std::max<int64_t>(e.time_us[i] * 1000, 0);
    break;
  }
  out[0] = now;
  for (size_t i = 0; i < e.count(); ++i) {
    if (!timed)
      now += 1000;
    else if (e.time_us[i] != memory::kNoTime)
      now = std::max(now, e.time_us[i] * 1000);
    out[i + 1] = now;
  }
  return out;
}

class Writer {
 public:
  Writer(int64_t first_ns, ByteSink* sink) : packets_(sink, first_ns) {}

  void Add(const DeviceView& view, const std::vector<int64_t>& times,
           size_t most);
  WrittenSnapshot Finish();

 private:
  void AddCounters(const DeviceView& view, const std::vector<int64_t>& times,
                   uint64_t process);
  void AddSlices(const DeviceView& view, const std::vector<int64_t>& times,
                 size_t most, uint64_t process);
  void Sample(int64_t time_ns, uint64_t track, int64_t bytes) {
    points_.push_back(
        {time_ns, Point::What::kCounter, track, bytes, nullptr, 0});
  }
  void AddArgs(const Point& point);

  PacketWriter packets_;
  std::vector<Point> points_;
  SliceArgs args_;
  WrittenSnapshot written_;
};

void Writer::Add(const DeviceView& view, const std::vector<int64_t>& times,
                 size_t most) {
  const std::string name = fmt::format("GPU {}", view.device->ordinal());
  Track process;
  process.uuid = TrackUuid({"memory", name});
  process.name = name;
  process.pid = view.device->ordinal();
  process.label = "memory snapshot";
  packets_.AddProcess(process);
  AddCounters(view, times, process.uuid);
  AddSlices(view, times, most, process.uuid);
}

void Writer::AddCounters(const DeviceView& view,
                         const std::vector<int64_t>& times, uint64_t process) {
  const Device& device = *view.device;
  int64_t rank = 0;
  const auto counter = [&](std::string_view name) {
    Track track;
    track.uuid = TrackUuid(
        {"memory", std::to_string(device.ordinal()), "counter", name});
    track.parent = process;
    track.name = name;
    track.rank = rank++;
    packets_.AddCounter(track, "bytes");
    return track.uuid;
  };
  uint64_t measures[kMeasures];
  for (size_t k = kMeasures; k-- > 0;)
    measures[k] = counter(memory::MeasureName(static_cast<memory::Measure>(k)));
  int64_t last[kMeasures];
  device.Sweep([&](Moment m, const memory::Levels& at) {
    for (size_t k = 0; k < kMeasures; ++k) {
      const int64_t bytes =
          memory::LevelOf(at, static_cast<memory::Measure>(k));
      if (m > 0 && bytes == last[k]) continue;
      Sample(times[static_cast<size_t>(m)], measures[k], last[k] = bytes);
    }
  });
  // Changes of each category, by moment.
  std::map<size_t, std::map<Moment, int64_t>> changes;
  for (const Allocation& a : device.allocations()) {
    changes[a.category][a.start + 1] += a.bytes;
    if (a.freed()) changes[a.category][a.active_until + 1] -= a.bytes;
  }
  for (const auto& [category, steps] : changes) {
    const uint64_t track =
        counter(memory::CategoryName(static_cast<memory::Category>(category)));
    int64_t bytes = 0;
    for (const auto& [moment, change] : steps) {
      if (change == 0) continue;
      bytes += change;
      Sample(times[static_cast<size_t>(moment)], track, bytes);
    }
  }
}

void Writer::AddSlices(const DeviceView& view,
                       const std::vector<int64_t>& times, size_t most,
                       uint64_t process) {
  const Device& device = *view.device;
  std::vector<uint32_t> ids(device.allocations().size());
  for (uint32_t id = 0; id < ids.size(); ++id) ids[id] = id;
  if (ids.size() > most) {
    std::nth_element(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(most),
                     ids.end(), [&](uint32_t x, uint32_t y) {
                       const int64_t a = device.allocations()[x].bytes;
                       const int64_t b = device.allocations()[y].bytes;
                       return a != b ? a > b : x < y;
                     });
    written_.left_out += ids.size() - most;
    ids.resize(most);
  }
  // Segments of the final state, or of the start where they are gone.
  std::map<int64_t, memory::Range> ranges;
  for (const Moment m : {Moment{0}, device.moments()}) {
    for (const memory::Range& range : device.RangesAt(m))
      ranges.insert_or_assign(range.address, range);
  }
  std::map<int64_t, std::vector<Span>> segments;  // by address; -1: unknown
  for (const uint32_t id : ids) {
    const Allocation& a = device.allocations()[id];
    const auto until =
        static_cast<size_t>(a.freed() ? a.active_until + 1 : device.moments());
    auto it = ranges.upper_bound(a.address);
    int64_t place = -1;
    if (it != ranges.begin() && std::prev(it)->second.end() > a.address)
      place = std::prev(it)->first;
    segments[place].push_back(
        {times[static_cast<size_t>(a.start) + 1], times[until], id});
  }
  int64_t rank = 1000;
  for (auto& [address, spans] : segments) {
    const std::string name =
        address < 0
            ? std::string("segments that were given back")
            : fmt::format(
                  "{:#x} {}", address,
                  HumanBytes(static_cast<double>(ranges[address].size)));
    std::vector<uint64_t> lanes;
    const auto add_lane = [&](size_t number) {
      Track track;
      track.uuid = TrackUuid({"memory", std::to_string(device.ordinal()),
                              "segment", name, std::to_string(number)});
      track.parent = process;
      track.name = name;
      track.rank = rank++;
      packets_.AddTrack(track);
      lanes.push_back(track.uuid);
      return static_cast<uint32_t>(lanes.size() - 1);
    };
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::tuple(a.start_ns, -a.end_ns, a.index) <
             std::tuple(b.start_ns, -b.end_ns, b.index);
    });
    written_.slices += spans.size();
    written_.overlaps += PairBrackets(
        spans, add_lane(0), add_lane,
        [&](uint32_t id, uint32_t lane, int64_t ns) {
          points_.push_back(
              {ns, Point::What::kBegin, lanes[lane], 0, &view, id});
        },
        [&](uint32_t id, uint32_t lane, int64_t ns) {
          points_.push_back({ns, Point::What::kEnd, lanes[lane], 0, &view, id});
        });
  }
}

void Writer::AddArgs(const Point& point) {
  const DeviceView& view = *point.view;
  const Allocation& a = view.device->allocations()[point.allocation];
  args_.Clear();
  args_.Int("bytes", a.bytes);
  args_.Int("requested_bytes", a.requested);
  args_.Text("category",
             memory::CategoryName(static_cast<memory::Category>(a.category)));
  args_.Text("op", view.Op(a));
  args_.Text("line", view.attribution->Of(a).line);
  if (!a.before()) args_.Int("event", a.start);
}

WrittenSnapshot Writer::Finish() {
  std::stable_sort(
      points_.begin(), points_.end(),
      [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
  for (const Point& point : points_) {
    switch (point.what) {
      case Point::What::kCounter:
        packets_.Counter(point.track, point.time_ns,
                         static_cast<double>(point.bytes));
        ++written_.counters;
        break;
      case Point::What::kBegin: {
        AddArgs(point);
        const Allocation& a =
            point.view->device->allocations()[point.allocation];
        packets_.Begin(
            point.track, point.time_ns,
            fmt::format("{} {}", HumanBytes(static_cast<double>(a.bytes)),
                        point.view->attribution->Of(a).line),
            memory::CategoryName(static_cast<memory::Category>(a.category)),
            args_.list(), {});
        break;
      }
      case Point::What::kEnd:
        packets_.End(point.track, point.time_ns);
        break;
    }
  }
  return written_;
}

}  // namespace

WrittenSnapshot WriteSnapshot(const memory::Recording& recording, size_t most,
                              ByteSink& sink) {
  std::vector<std::vector<int64_t>> times;
  int64_t first_ns = INT64_MAX;
  for (const DeviceView& view : recording.devices) {
    times.push_back(TimesOf(*view.device));
    first_ns = std::min(first_ns, times.back().front());
  }
  if (times.empty()) first_ns = 0;
  Writer writer(first_ns, &sink);
  for (size_t d = 0; d < times.size(); ++d)
    writer.Add(recording.devices[d], times[d], most);
  return writer.Finish();
}

}  // namespace lamina::emit
