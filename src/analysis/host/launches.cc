// SPDX-License-Identifier: Apache-2.0
//
// The tables of launches: each API's calls and floor, queue depth, launch-bound
// runs. One file, because all of them come from one walk over the launches.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "analysis/common/replayed.h"
#include "analysis/common/stats.h"
#include "analysis/host/sequences.h"
#include "analysis/host/tables.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "table/row_columns.h"
#include "trace/categories.h"

namespace lamina::analysis::host {
namespace {

// Work that waits in a queue of this depth blocks the host that adds to it.
constexpr int64_t kFullDepth = 1000;
// A blocked launch call returns this soon after the device made room.
constexpr int64_t kRoomNs = 5000;

struct ApiRow {
  std::string_view device;
  std::string_view api;
  int64_t calls;
  int64_t device_events;
  int64_t call_median_ns;
  int64_t call_p90_ns;
  int64_t latency_min_ns;
  int64_t latency_median_ns;
  int64_t latency_p90_ns;
  std::optional<int64_t> floor_ns;
  std::optional<int64_t> floor_samples;
  std::optional<int64_t> graph_floor_ns;
  int64_t slow_calls;
  int64_t slow_time_ns;
  int64_t early_starts;
};

const RowColumns<ApiRow>& ApisColumns() {
  using R = ApiRow;
  static const RowColumns<R> columns{
      "launch_apis",
      "Calls that launch device work, by the link of the work and not by "
      "name. Latency is the start of the first event of a call less the "
      "start of the call, 0 where the clocks differ.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"api", ColumnType::kText, "Name of the call.", &R::api},
       {"calls", ColumnType::kInt, "Calls.", &R::calls},
       {"device_events", ColumnType::kInt, "What they launched.",
        &R::device_events},
       {"call_median_us", ColumnType::kTime, "Median time of a call.",
        &R::call_median_ns},
       {"call_p90_us", ColumnType::kTime, "90th percentile.", &R::call_p90_ns},
       {"latency_min_us", ColumnType::kTime, "Shortest latency.",
        &R::latency_min_ns},
       {"latency_median_us", ColumnType::kTime, "Median latency.",
        &R::latency_median_ns},
       {"latency_p90_us", ColumnType::kTime, "90th percentile.",
        &R::latency_p90_ns},
       {"floor_us", ColumnType::kTime,
        "Latency onto an idle stream, 10th percentile, of calls of one event.",
        &R::floor_ns},
       {"floor_samples", ColumnType::kInt,
        "Calls that say so; below 4 the floor is assumed.", &R::floor_samples},
       {"graph_floor_us", ColumnType::kTime,
        "The same of calls with many events.", &R::graph_floor_ns},
       {"slow_calls", ColumnType::kInt,
        "Calls above 4 times the median, copies left out.", &R::slow_calls},
       {"slow_time_us", ColumnType::kTime, "Their time.", &R::slow_time_ns},
       {"early_starts", ColumnType::kInt,
        "Events that began before their call.", &R::early_starts}}};
  return columns;
}

// One launched device event. Times in nanoseconds.
struct EventRow {
  int64_t call_uid, device_uid;
  std::string_view api, thread;
  int64_t call_ns, latency_ns, queue_ns, depth_before;
  std::optional<std::string_view> op, module;
  std::optional<int64_t> step;
  bool graph;
  std::optional<std::string_view> layer;
  std::optional<int64_t> graph_id;
};

const RowColumns<EventRow>& EventColumns() {
  using R = EventRow;
  static const RowColumns<R> columns{
      "launch_events",
      "Every launched device event.",
      {{"call_uid", ColumnType::kInt, "Event number of the call.",
        &R::call_uid},
       {"device_uid", ColumnType::kInt, "Event number of the work.",
        &R::device_uid},
       {"api", ColumnType::kText, "Name of the call.", &R::api},
       {"thread", ColumnType::kText, "Thread of the call.", &R::thread},
       {"call_us", ColumnType::kTime, "Time of the call.", &R::call_ns},
       {"latency_us", ColumnType::kTime,
        "Start less start of the call; 0 where it is negative.",
        &R::latency_ns},
       {"queue_us", ColumnType::kTime,
        "Behind launch floor and the work before it on the stream.",
        &R::queue_ns},
       {"depth_before", ColumnType::kInt,
        "Work of the stream that waited when it was launched.",
        &R::depth_before},
       {"op", ColumnType::kText, "Op that launched it.", &R::op},
       {"module", ColumnType::kText, "nn.Module that launched it.", &R::module},
       {"step", ColumnType::kInt, "Step of the launch.", &R::step},
       {"graph", ColumnType::kBool, "Launched with others by one call.",
        &R::graph},
       {"layer_name", ColumnType::kText,
        "Stack and number of the work's layer.", &R::layer},
       {"graph_id", ColumnType::kInt,
        "Device graph that the work is of, as recorded; empty: none.",
        &R::graph_id}}};
  return columns;
}

struct DepthRow {
  std::string_view device;
  int64_t stream;
  int64_t span_ns;
  int64_t max;
  std::optional<double> mean;
  int64_t p50;
  int64_t p95;
  int64_t empty_ns;
  double empty_percent;
  int64_t full_ns;
  int64_t unlinked;
};

const RowColumns<DepthRow>& DepthColumns() {
  using R = DepthRow;
  static const RowColumns<R> columns{
      "queue_depth",
      "Work that was launched and had not begun, per stream, weighted by "
      "time.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"span_us", ColumnType::kTime, "First launch to last start.",
        &R::span_ns},
       {"max_depth", ColumnType::kInt, "Deepest.", &R::max},
       {"mean", ColumnType::kReal, "Mean over time.", &R::mean},
       {"p50", ColumnType::kInt, "Median over time.", &R::p50},
       {"p95", ColumnType::kInt, "95th percentile over time.", &R::p95},
       {"empty_us", ColumnType::kTime, "Time at depth 0.", &R::empty_ns},
       {"empty_percent", ColumnType::kReal, "Its share.", &R::empty_percent,
        Shown::kPercent},
       {"full_us", ColumnType::kTime,
        "Time at a depth of 1000 or in launch calls that waited for room: "
        "there the host is ahead, not behind.",
        &R::full_ns},
       {"unlinked", ColumnType::kInt, "Events without a call, left out.",
        &R::unlinked}}};
  return columns;
}

struct SeriesRow {
  std::string_view device;
  int64_t stream;
  int64_t time_ns;
  int64_t depth;
  int64_t launches;
};

const RowColumns<SeriesRow>& SeriesColumns() {
  using R = SeriesRow;
  static const RowColumns<R> columns{
      "queue_depth_series",
      "Every change of a queue.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"time_us", ColumnType::kTime, "From the first event of the trace.",
        &R::time_ns},
       {"depth", ColumnType::kInt, "From then on.", &R::depth},
       {"launches", ColumnType::kInt,
        "The same in calls: those of which work of the stream waits.",
        &R::launches}}};
  return columns;
}

struct RunRow {
  std::string_view device;
  int64_t stream;
  int64_t run;
  int64_t start_ns;
  int64_t span_ns;
  int64_t events;
  int64_t busy_ns;
  int64_t host_per_launch_ns;
  int64_t kernel_per_launch_ns;
  int64_t short_events;
  std::optional<int64_t> step;
  std::string_view verdict;
  int64_t graph_span_ns;
  int64_t first_uid;
  std::optional<std::string_view> layer;
};

const RowColumns<RunRow>& RunsColumns() {
  using R = RunRow;
  static const RowColumns<R> columns{
      "launch_runs",
      "Runs of at least 4 events on a stream that each waited for their "
      "launch (one exception in 8), the costliest first.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"run", ColumnType::kInt,
        "Number of the run, from 0 by stream and time.", &R::run},
       {"start_us", ColumnType::kTime, "From the first event of the trace.",
        &R::start_ns},
       {"span_us", ColumnType::kTime, "First start to last end.", &R::span_ns},
       {"events", ColumnType::kInt, "Device events.", &R::events},
       {"busy_us", ColumnType::kTime, "Union of their times.", &R::busy_ns},
       {"host_per_launch_us", ColumnType::kTime,
        "Start of one launch call to the start of the next, mean.",
        &R::host_per_launch_ns},
       {"kernel_per_launch_us", ColumnType::kTime, "Device time per call.",
        &R::kernel_per_launch_ns},
       {"short_events", ColumnType::kInt,
        "Events shorter than the usual time of their call.", &R::short_events},
       {"step", ColumnType::kInt, "Step of the first launch.", &R::step},
       {"verdict", ColumnType::kText,
        "launch_bound: the host needs longer per launch than the device.",
        &R::verdict},
       {"graph_span_us", ColumnType::kTime,
        "Span if the run were one graph: busy time, gap floors and one launch "
        "floor.",
        &R::graph_span_ns},
       {"first_uid", ColumnType::kInt, "Event number of its first work.",
        &R::first_uid, Shown::kHidden},
       {"layer_name", ColumnType::kText,
        "Stack and number of the layer of its first work; with --by layer, "
        "beside launch_events, and in SQL, else empty.",
        &R::layer}}};
  return columns;
}

struct VerdictRow {
  std::string_view device;
  int64_t stream;
  std::string_view verdict;
  int64_t host_per_launch_ns;
  int64_t kernel_per_launch_ns;
  double run_percent;
  double empty_percent;
  double short_percent;
  double graph_percent;
  int64_t span_ns;
  int64_t graph_span_ns;
};

const RowColumns<VerdictRow>& VerdictsColumns() {
  using R = VerdictRow;
  static const RowColumns<R> columns{
      "launch_verdicts",
      "Whether launching limits a stream.",
      {{"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"verdict", ColumnType::kText,
        "launch_bound: the host needs longer per launch than the device and "
        "launch-bound runs hold half of the span; queue_ahead: the queue is "
        "empty for less than 5 % of the time; else mixed.",
        &R::verdict},
       {"host_per_launch_us", ColumnType::kTime,
        "Start of one launch call to the next, mean.", &R::host_per_launch_ns},
       {"kernel_per_launch_us", ColumnType::kTime, "Device time per call.",
        &R::kernel_per_launch_ns},
       {"run_percent", ColumnType::kReal,
        "Share of the span in launch-bound runs.", &R::run_percent,
        Shown::kPercent},
       {"empty_percent", ColumnType::kReal, "Share of time with empty queue.",
        &R::empty_percent, Shown::kPercent},
       {"short_percent", ColumnType::kReal,
        "Events shorter than the usual time of their call.", &R::short_percent,
        Shown::kPercent},
       {"graph_percent", ColumnType::kReal, "Events launched by graphs.",
        &R::graph_percent, Shown::kPercent},
       {"span_us", ColumnType::kTime, "First start to last end.", &R::span_ns},
       {"graph_span_us", ColumnType::kTime,
        "Span if every launch-bound run were one graph.", &R::graph_span_ns}}};
  return columns;
}

// What changes a queue.
struct Change {
  int64_t time_ns;
  int8_t by;
};

struct Depth {
  // Of the events that a call launched, each sorted: when they joined the
  // queue, which is their start where the call is later, and when they left it.
  std::vector<int64_t> joined, left;
  std::vector<int64_t> time_at;  // by depth
  int64_t span_ns = 0;
  int64_t max = 0;
  double area = 0;
  int64_t full_ns = 0;
  int64_t unlinked = 0;

  int64_t Quantile(double q) const {
    if (time_at.empty()) return 0;  // all at one time
    const auto wanted = static_cast<int64_t>(q * static_cast<double>(span_ns));
    int64_t sum = 0;
    for (size_t d = 0; d < time_at.size(); ++d) {
      sum += time_at[d];
      if (sum > wanted || sum == span_ns) return static_cast<int64_t>(d);
    }
    return max;
  }
  // f(time, by) for every change, by time, additions first.
  template <class F>
  void ForChanges(const F& f) const {
    auto add = joined.begin();
    for (const int64_t time : left) {
      for (; add != joined.end() && *add <= time; ++add) f(*add, 1);
      f(time, -1);
    }
  }
  // What waits of all that happened before a time.
  int64_t Before(int64_t time) const {
    const auto count = [&](const std::vector<int64_t>& times) {
      return std::lower_bound(times.begin(), times.end(), time) - times.begin();
    };
    return count(joined) - count(left);
  }
};

class Launches {
 public:
  Launches(const HostModel& model, const TableOptions& options,
           const WorkFacts& facts)
      : model_(model),
        trace_(model.trace()),
        options_(options),
        facts_(facts),
        depths_(DepthColumns().schema()),
        series_(SeriesColumns()),
        events_(EventColumns()),
        verdicts_(VerdictsColumns().schema()) {
    if (options_.events) modules_ = model_.context().modules.PathTexts();
  }

  ResultSet Make() {
    ResultSet result;
    std::optional<Table> apis;
    // Of each stream what is found apart; then the rows.
    std::vector<OfStream> streams(trace_.streams.size());
    constexpr size_t kParts = 3;
    ParallelFor(model_.context().settings.threads, 1 + kParts * streams.size(),
                [&](size_t task) {
                  if (task == 0) {
                    apis = Apis();
                    return;
                  }
                  const auto i = static_cast<uint32_t>((task - 1) / kParts);
                  OfStream& of = streams[i];
                  switch ((task - 1) % kParts) {
                    case 0:
                      of.depth = DepthOf(trace_.streams[i]);
                      break;
                    case 1:
                      of.runs = FindLaunchRuns(model_, i);
                      break;
                    default:
                      of.sums = SumsOf(trace_.streams[i]);
                  }
                });
    for (uint32_t i = 0; i < streams.size(); ++i) {
      Stream(i, streams[i]);
      streams[i] = {};
    }
    result.tables.push_back(std::move(*apis));
    result.tables.push_back(std::move(verdicts_));
    result.tables.push_back(std::move(depths_));
    result.tables.push_back(Runs());
    if (options_.events) {
      result.tables.push_back(events_.Take());
      result.tables.push_back(series_.Take());
    }
    return result;
  }

 private:
  const std::string& DeviceName(uint32_t stream) const {
    return model_.devices()[model_.facts(stream).device].name;
  }
  std::optional<int64_t> StepOf(SliceId s) const {
    const tree::Steps& steps = model_.context().steps;
    return steps.NumberOf(steps.StepOf(s));
  }
  std::optional<std::string_view> LayerOf(SliceId s) const {
    return facts_.layers.Of(trace_.slices.detail[s.value]);
  }

  Table Apis() const {
    struct Sum {
      std::vector<int64_t> times, latencies;
      int64_t events = 0, slow = 0, slow_ns = 0, early = 0;
      const Api* one = nullptr;
      const Api* many = nullptr;
    };
    std::map<std::pair<uint32_t, std::string_view>, Sum> sums;
    std::pair<uint32_t, StringId> last;  // most calls are of one kind
    Sum* of_last = nullptr;
    for (const Call& call : model_.calls()) {
      const auto work = model_.Work(call);
      const std::pair here(model_.device(work[0]),
                           trace_.slices.name[call.slice.value]);
      if (of_last == nullptr || here != last) {
        of_last = &sums[{here.first, trace_.Text(here.second)}];
        last = here;
      }
      Sum& sum = *of_last;
      int64_t first = trace_.Start(work[0]);
      for (const SliceId s : work) {
        first = std::min(first, trace_.Start(s));
        if (trace_.Start(s) < trace_.Start(call.slice)) ++sum.early;
      }
      sum.times.push_back(trace_.Duration(call.slice));
      sum.latencies.push_back(
          std::max<int64_t>(0, first - trace_.Start(call.slice)));
      sum.events += static_cast<int64_t>(work.size());
      if (call.slow) {
        ++sum.slow;
        sum.slow_ns += trace_.Duration(call.slice);
      }
      const Api& api = model_.apis()[call.api];
      (api.many ? sum.many : sum.one) = &api;
    }
    Table table(ApisColumns().schema());
    for (auto& [key, sum] : sums) {
      const auto of = [](const Api* api, auto get) {
        return api == nullptr ? std::nullopt
                              : std::optional(static_cast<int64_t>(get(*api)));
      };
      const auto floor = [](const Api& api) { return api.floor_ns; };
      ApisColumns().Add(
          table, {.device = model_.devices()[key.first].name,
                  .api = key.second,
                  .calls = static_cast<int64_t>(sum.times.size()),
                  .device_events = sum.events,
                  .call_median_ns = Pick(sum.times, 0.5),
                  .call_p90_ns = Pick(sum.times, 0.9),
                  .latency_min_ns = *std::min_element(sum.latencies.begin(),
                                                      sum.latencies.end()),
                  .latency_median_ns = Pick(sum.latencies, 0.5),
                  .latency_p90_ns = Pick(sum.latencies, 0.9),
                  .floor_ns = of(sum.one, floor),
                  .floor_samples =
                      of(sum.one, [](const Api& api) { return api.samples; }),
                  .graph_floor_ns = of(sum.many, floor),
                  .slow_calls = sum.slow,
                  .slow_time_ns = sum.slow_ns,
                  .early_starts = sum.early});
    }
    return table;
  }

  Depth DepthOf(const trace::Stream& stream) const {
    Depth depth;
    depth.joined.reserve(stream.slices.size());
    depth.left.reserve(stream.slices.size());
    for (const SliceId s : stream.slices) {
      const uint32_t c = model_.call(s);
      if (c == kNone) {
        ++depth.unlinked;
        continue;
      }
      const int64_t start = trace_.Start(s);
      const int64_t call = trace_.Start(model_.calls()[c].slice);
      depth.joined.push_back(std::min(call, start));
      depth.left.push_back(start);
    }
    if (depth.left.empty()) return depth;
    RunSort(depth.joined, model_.context().settings.threads, std::less<>());
    int64_t now = 0, before = depth.joined.front();
    std::vector<Interval> full;
    depth.ForChanges([&](int64_t time, int by) {
      const int64_t length = time - before;
      if (length > 0) {
        if (depth.time_at.size() <= static_cast<size_t>(now))
          depth.time_at.resize(static_cast<size_t>(now) + 1, 0);
        depth.time_at[static_cast<size_t>(now)] += length;
        depth.area += static_cast<double>(now) * static_cast<double>(length);
        if (now >= kFullDepth) full.push_back({before, time});
      }
      before = time;
      now += by;
      depth.max = std::max(depth.max, now);
    });
    depth.span_ns = depth.left.back() - depth.joined.front();
    WaitsForRoom(stream, depth, full);
    depth.full_ns = IntervalSet::Of(std::move(full)).length_ns();
    return depth;
  }

  // Slow launch calls that end just behind a start that takes the queue down
  // from its maximum.
  void WaitsForRoom(const trace::Stream& stream, const Depth& depth,
                    std::vector<Interval>& full) const {
    // A queue of a few events is not full.
    constexpr int64_t kLeastDepth = 16;
    if (depth.max < kLeastDepth) return;
    std::vector<int64_t> room;
    int64_t now = 0;
    depth.ForChanges([&](int64_t time, int by) {
      if (by < 0 && now == depth.max) room.push_back(time);
      now += by;
    });
    uint32_t last = kNone;
    for (const SliceId s : stream.slices) {
      const uint32_t c = model_.call(s);
      if (c == kNone || c == last || !model_.calls()[c].slow) continue;
      last = c;
      const SliceId call = model_.calls()[c].slice;
      const int64_t end = trace_.End(call);
      const auto it = std::lower_bound(room.begin(), room.end(), end - kRoomNs);
      if (it != room.end() && *it <= end)
        full.push_back({trace_.Start(call), end});
    }
  }

  // What all work of a stream adds up to.
  struct Sums {
    int64_t end_ns = 0;                                        // of the last
    int64_t work_ns = 0, first_call_ns = 0, last_call_ns = 0;  // of the linked
    int64_t linked = 0, launches = 0, shorter = 0, graph = 0;
  };
  struct OfStream {
    Depth depth;
    std::vector<LaunchRun> runs;
    Sums sums;
  };

  void Stream(uint32_t i, const OfStream& of) {
    const trace::Stream& stream = trace_.streams[i];
    if (stream.slices.empty()) return;
    const Depth& depth = of.depth;
    if (!depth.left.empty()) {
      const int64_t empty = depth.time_at.empty() ? 0 : depth.time_at[0];
      DepthColumns().Add(
          depths_,
          {.device = DeviceName(i),
           .stream = stream.stream,
           .span_ns = depth.span_ns,
           .max = depth.max,
           .mean = depth.span_ns > 0
                       ? std::optional(depth.area /
                                       static_cast<double>(depth.span_ns))
                       : std::nullopt,
           .p50 = depth.Quantile(0.5),
           .p95 = depth.Quantile(0.95),
           .empty_ns = empty,
           .empty_percent = PercentOf(empty, depth.span_ns),
           .full_ns = depth.full_ns,
           .unlinked = depth.unlinked});
    }
    if (options_.events) Series(i, depth);
    runs_.insert(runs_.end(), of.runs.begin(), of.runs.end());
    Verdict(i, of);
  }

  // A call waits from its start until the last of its work on the stream
  // begins. By time, additions first.
  std::vector<Change> WaitingCalls(const trace::Stream& stream) const {
    absl::flat_hash_map<uint32_t, Interval> waits;
    for (const SliceId s : stream.slices) {
      const uint32_t c = model_.call(s);
      if (c == kNone) continue;
      const int64_t start = trace_.Start(s);
      const int64_t call = trace_.Start(model_.calls()[c].slice);
      const auto [it, is_new] =
          waits.try_emplace(c, Interval{std::min(call, start), start});
      it->second.end_ns = std::max(it->second.end_ns, start);
    }
    std::vector<Change> changes;
    changes.reserve(2 * waits.size());
    for (const auto& [call, wait] : waits) {
      changes.push_back({wait.start_ns, 1});
      changes.push_back({wait.end_ns, -1});
    }
    std::sort(
        changes.begin(), changes.end(), [](const Change& a, const Change& b) {
          return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.by > b.by;
        });
    return changes;
  }

  void Series(uint32_t i, const Depth& depth) {
    const trace::Stream& stream = trace_.streams[i];
    const std::vector<Change> calls = WaitingCalls(stream);
    int64_t now = 0, waiting = 0;
    auto call_change = calls.begin();
    std::optional<int64_t> changed;
    const auto say = [&] {
      for (; call_change != calls.end() && call_change->time_ns <= *changed;
           ++call_change)
        waiting += call_change->by;
      series_.Add({.device = DeviceName(i),
                   .stream = stream.stream,
                   .time_ns = *changed - trace_.first_ns,
                   .depth = now,
                   .launches = waiting});
    };
    depth.ForChanges([&](int64_t time, int by) {
      if (changed && *changed != time) say();
      changed = time;
      now += by;
    });
    if (changed) say();
    int64_t reached = trace::kNoInt;
    for (const SliceId s : stream.slices) {
      const int64_t before = reached;
      reached = std::max(reached, trace_.End(s));
      const uint32_t c = model_.call(s);
      if (c == kNone) continue;
      const Call& call = model_.calls()[c];
      const int64_t start = trace_.Start(call.slice);
      const NodeId launcher = model_.context().device.launcher(s);
      const trace::Track& track = trace_.TrackOf(call.slice);
      std::optional<std::string_view> op, module;
      if (launcher.valid()) {
        op = model_.context().tree.name(launcher);
        const auto owner = model_.context().modules.OwnerOf(launcher);
        if (owner.path.valid()) module = modules_[owner.path.value];
      }
      events_.Add(
          {.call_uid = trace_.EventOf(call.slice),
           .device_uid = trace_.Uid(s),
           .api = trace_.Name(call.slice),
           .thread = trace_.Text(track.thread_name.valid() ? track.thread_name
                                                           : track.tid),
           .call_ns = trace_.Duration(call.slice),
           .latency_ns = std::max<int64_t>(0, trace_.Start(s) - start),
           .queue_ns = std::max<int64_t>(
               0, trace_.Start(s) - std::max(model_.Ready(s), before)),
           .depth_before = depth.Before(start),
           .op = op,
           .module = module,
           .step = StepOf(s),
           .graph = call.end - call.begin > 1,
           .layer = LayerOf(s),
           .graph_id = trace_.Device(s)->graph_id == trace::kNoInt
                           ? std::nullopt
                           : std::optional(trace_.Device(s)->graph_id)});
    }
  }

  Sums SumsOf(const trace::Stream& stream) const {
    Sums sums;
    if (stream.slices.empty()) return sums;
    sums.end_ns = trace_.End(stream.slices[0]);
    uint32_t last = kNone;
    StringId name;  // of most calls that of the one before
    int64_t usual = 0;
    bool launches_graph = false;
    for (const SliceId s : stream.slices) {
      sums.end_ns = std::max(sums.end_ns, trace_.End(s));
      const uint32_t c = model_.call(s);
      if (c == kNone) continue;
      const Call& call = model_.calls()[c];
      const StringId own = trace_.slices.name[call.slice.value];
      if (!name.valid() || own != name) {
        name = own;
        usual = model_.Typical(own);
        launches_graph = trace::IsGraphLaunch(trace_.Text(own));
      }
      ++sums.linked;
      sums.work_ns += trace_.Duration(s);
      if (trace_.Duration(s) < usual) ++sums.shorter;
      if (call.end - call.begin > 1 || launches_graph) ++sums.graph;
      if (c == last) continue;
      last = c;
      sums.last_call_ns = trace_.Start(call.slice);
      if (sums.launches++ == 0) sums.first_call_ns = sums.last_call_ns;
    }
    return sums;
  }

  void Verdict(uint32_t i, const OfStream& of) {
    const Depth& depth = of.depth;
    const auto& [end, work, first_call, last_call, linked, launches, shorter,
                 graph] = of.sums;
    const int64_t span = end - trace_.Start(trace_.streams[i].slices[0]);
    int64_t in_runs = 0, graph_span = span;
    for (const LaunchRun& run : of.runs) {
      if (!run.launch_bound()) continue;
      in_runs += run.span_ns();
      graph_span -= std::max<int64_t>(0, run.span_ns() - run.graph_span_ns);
    }
    const int64_t host =
        launches > 1
            ? std::max<int64_t>(0, last_call - first_call) / (launches - 1)
            : 0;
    const int64_t kernel = launches > 0 ? work / launches : 0;
    const int64_t empty = depth.time_at.empty() ? 0 : depth.time_at[0];
    const char* verdict = "mixed";
    if (launches == 0) {
      verdict = "unknown";
    } else if (host > kernel && 2 * in_runs >= span) {
      verdict = "launch_bound";
    } else if (20 * empty < depth.span_ns) {
      verdict = "queue_ahead";
    }
    VerdictsColumns().Add(verdicts_,
                          {.device = DeviceName(i),
                           .stream = trace_.streams[i].stream,
                           .verdict = verdict,
                           .host_per_launch_ns = host,
                           .kernel_per_launch_ns = kernel,
                           .run_percent = PercentOf(in_runs, span),
                           .empty_percent = PercentOf(empty, depth.span_ns),
                           .short_percent = PercentOf(shorter, linked),
                           .graph_percent = PercentOf(graph, linked),
                           .span_ns = span,
                           .graph_span_ns = graph_span});
  }

  Table Runs() {
    constexpr size_t kMost = 1000;
    std::stable_sort(runs_.begin(), runs_.end(),
                     [](const LaunchRun& a, const LaunchRun& b) {
                       return a.span_ns() - a.busy_ns > b.span_ns() - b.busy_ns;
                     });
    if (runs_.size() > kMost) runs_.resize(kMost);
    Table table(RunsColumns().schema());
    for (const LaunchRun& run : runs_) {
      RunsColumns().Add(
          table, {.device = DeviceName(run.stream),
                  .stream = trace_.streams[run.stream].stream,
                  .run = run.number,
                  .start_ns = run.start_ns - trace_.first_ns,
                  .span_ns = run.span_ns(),
                  .events = run.events,
                  .busy_ns = run.busy_ns,
                  .host_per_launch_ns = run.HostPerLaunch(),
                  .kernel_per_launch_ns = run.KernelPerLaunch(),
                  .short_events = run.shorter,
                  .step = StepOf(run.first),
                  .verdict = run.launch_bound() ? "launch_bound" : "mixed",
                  .graph_span_ns = run.graph_span_ns,
                  .first_uid = trace_.Uid(run.first),
                  .layer = LayerOf(run.first)});
    }
    return table;
  }

  const HostModel& model_;
  const Trace& trace_;
  const TableOptions& options_;
  const WorkFacts& facts_;
  Table depths_;
  RowWriter<SeriesRow> series_;
  std::vector<std::string> modules_;  // by path; with options_.events
  RowWriter<EventRow> events_;
  Table verdicts_;
  std::vector<LaunchRun> runs_;
};

}  // namespace

ResultSet LaunchTables(const HostModel& model, const TableOptions& options,
                       const WorkFacts& facts) {
  return Launches(model, options, facts).Make();
}

std::vector<Schema> LaunchLayerSchemas() {
  return {RunsColumns().schema(), EventColumns().schema()};
}

std::vector<Schema> LaunchSchemas() {
  return {ApisColumns().schema(),  VerdictsColumns().schema(),
          DepthColumns().schema(), RunsColumns().schema(),
          EventColumns().schema(), SeriesColumns().schema()};
}

}  // namespace lamina::analysis::host
