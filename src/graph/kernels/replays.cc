// SPDX-License-Identifier: Apache-2.0
#include "graph/kernels/replays.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <re2/re2.h>
#include <tuple>

#include "base/text.h"
#include "trace/categories.h"

namespace lamina::graph_kernels {
namespace {

using analysis::layers::Stage;
using trace::DeviceArgs;
using trace::kNoInt;
using trace::SliceId;
using trace::Trace;

// What tells graphs apart.
using Key = std::pair<int64_t, int64_t>;  // device, graph

bool IsLaunch(int64_t correlation) { return correlation > 0; }

// Sets of numbers that share members.
class Sets {
 public:
  size_t Of(int64_t number) {
    const auto [found, fresh] = index_.try_emplace(number, parent_.size());
    if (fresh) parent_.push_back(parent_.size());
    return Root(found->second);
  }
  void Join(int64_t a, int64_t b) {
    const size_t x = Of(a);
    const size_t y = Of(b);
    parent_[std::max(x, y)] = std::min(x, y);
  }

 private:
  size_t Root(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  absl::flat_hash_map<int64_t, size_t> index_;
  std::vector<size_t> parent_;
};

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_(trace) {}

  std::vector<GraphRuns> Run() {
    bool ids = false;
    bool launches = true;
    bool graphs = true;
    for (const SliceId s : trace_.device_slices()) {
      const DeviceArgs* args = trace_.Device(s);
      if (args == nullptr || args->graph_node_id == kNoInt) continue;
      ids = true;
      launches = launches && IsLaunch(args->correlation);
      graphs = graphs && args->graph_id != kNoInt;
    }
    if (ids) {
      ByNodeId(graphs, launches);
    } else {
      ByLaunch();
    }
    for (GraphRuns& runs : out_) FindPhase(runs);
    return std::move(out_);
  }

  std::vector<GraphRuns> RunEager(const std::function<bool(SliceId)>& wanted) {
    ReadSteps();
    absl::flat_hash_map<int64_t, bool> launches = GraphLaunches();
    // By device and step; kernels outside of all steps are of none.
    std::map<std::pair<int64_t, size_t>, std::vector<SliceId>> rows;
    for (const SliceId s : trace_.device_slices()) {
      const DeviceArgs* args = trace_.Device(s);
      if (args == nullptr || trace_.KindOf(s) != trace::Kind::kKernel ||
          args->graph_node_id != kNoInt ||
          launches.contains(args->correlation) || (wanted && !wanted(s)))
        continue;
      if (marks_.empty()) {
        rows[{args->device, 0}].push_back(s);
        continue;
      }
      const auto launch = launch_time_.find(args->correlation);
      const int64_t time =
          launch == launch_time_.end() ? trace_.Start(s) : launch->second;
      const auto step = std::upper_bound(
          marks_.begin(), marks_.end(), time,
          [](int64_t t, const Step& one) { return t < one.start_ns; });
      if (step == marks_.begin() || std::prev(step)->end_ns <= time) continue;
      rows[{args->device, static_cast<size_t>(step - marks_.begin())}]
          .push_back(s);
    }
    bool launched = true;
    for (auto& [key, slices] : rows) {
      launched &= SortByLaunch(slices);
      std::vector<size_t> begins{0};
      if (marks_.empty()) begins = StepBegins(slices);
      begins.push_back(slices.size());
      for (size_t i = 0; i + 1 < begins.size(); ++i) {
        AddRun(std::vector<SliceId>(
            slices.begin() + static_cast<ptrdiff_t>(begins[i]),
            slices.begin() + static_cast<ptrdiff_t>(begins[i + 1])));
      }
    }
    for (GraphRuns& runs : out_) {
      runs.eager = true;
      // The host launches in the order of the ops, whatever the stream.
      runs.order_by_id = launched;
      if (!launched) Order(runs);
      FindPhase(runs);
    }
    return std::move(out_);
  }

 private:
  // By launch: the time of the call, else its number, else (false) by start.
  bool SortByLaunch(std::vector<SliceId>& slices) const {
    bool calls = true;
    bool numbers = true;
    for (const SliceId s : slices) {
      const int64_t launch = trace_.Device(s)->correlation;
      calls &= launch_time_.contains(launch);
      numbers &= IsLaunch(launch);
    }
    const auto key = [&](SliceId s) {
      const int64_t launch = trace_.Device(s)->correlation;
      return calls     ? launch_time_.at(launch)
             : numbers ? launch
                       : trace_.Start(s);
    };
    std::stable_sort(slices.begin(), slices.end(), [&](SliceId a, SliceId b) {
      return std::pair(key(a), trace_.Start(a)) <
             std::pair(key(b), trace_.Start(b));
    });
    return calls || numbers;
  }

  absl::flat_hash_map<int64_t, bool> GraphLaunches() const {
    absl::flat_hash_map<int64_t, bool> launches;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const trace::ApiArgs* api = trace_.Api(SliceId(i));
      if (api != nullptr && IsLaunch(api->correlation) &&
          trace::IsGraphLaunch(trace_.Name(SliceId(i))))
        launches[api->correlation] = true;
    }
    return launches;
  }

  // Where steps begin when no range says it. The rarest name that comes again
  // comes once a step; of all places in between the step begins where the
  // device waited longest. One step when nothing comes again at equal distance.
  std::vector<size_t> StepBegins(const std::vector<SliceId>& slices) const {
    absl::flat_hash_map<StringId, std::vector<size_t>> places;
    for (size_t i = 0; i < slices.size(); ++i)
      places[trace_.slices.name[slices[i].value]].push_back(i);
    const std::vector<size_t>* rarest = nullptr;
    for (const auto& [name, at] : places) {
      if (at.size() > 1 &&
          (rarest == nullptr || std::pair(at.size(), at[0]) <
                                    std::pair(rarest->size(), (*rarest)[0])))
        rarest = &at;
    }
    if (rarest == nullptr) return {0};
    std::map<size_t, size_t> distances;
    for (size_t i = 1; i < rarest->size(); ++i)
      ++distances[(*rarest)[i] - (*rarest)[i - 1]];
    size_t period = 0;
    size_t most = 0;
    for (const auto& [distance, count] : distances) {
      if (count <= most) continue;
      most = count;
      period = distance;
    }
    // Two that happen to be equal are no period.
    if (10 * most < 6 * (rarest->size() - 1)) return {0};
    std::vector<int64_t> waits(period, 0);
    int64_t end = trace_.Start(slices[0]);
    for (size_t i = 0; i < slices.size(); ++i) {
      waits[i % period] += std::max<int64_t>(0, trace_.Start(slices[i]) - end);
      end = std::max(end, trace_.End(slices[i]));
    }
    const auto longest = std::max_element(waits.begin(), waits.end());
    std::vector<size_t> out{0};
    for (auto at = static_cast<size_t>(longest - waits.begin());
         at < slices.size(); at += period) {
      if (at > 0) out.push_back(at);
    }
    return out;
  }

  // One run of some kernels; those with the same ones are of one graph.
  void AddRun(std::vector<SliceId> slices) {
    Shape shape;
    for (const SliceId s : slices) {
      shape.emplace_back(trace_.Device(s)->stream,
                         trace_.slices.name[s.value].value);
    }
    const auto [found, fresh] = known_.try_emplace(shape, out_.size());
    if (fresh) {
      GraphRuns runs;
      runs.graph_id = static_cast<int64_t>(out_.size());
      runs.device = trace_.Device(slices[0])->device;
      for (const SliceId s : slices) {
        runs.slots.push_back(
            {kNoInt, trace_.slices.name[s.value], trace_.Device(s)->stream});
      }
      out_.push_back(std::move(runs));
    }
    Replay replay;
    replay.slices = std::move(slices);
    Measure(replay, false);
    out_[found->second].replays.push_back(std::move(replay));
  }

  void ByNodeId(bool graphs, bool launches) {
    Sets sets;
    if (!graphs && launches) {
      for (const SliceId s : trace_.device_slices()) {
        const DeviceArgs* args = trace_.Device(s);
        // Launches that share a node are of one graph. Both kinds of numbers
        // are kept apart by their sign.
        if (args != nullptr && args->graph_node_id != kNoInt)
          sets.Join(args->graph_node_id, -1 - args->correlation);
      }
    }
    std::map<Key, std::vector<SliceId>> rows;
    for (const SliceId s : trace_.device_slices()) {
      const DeviceArgs* args = trace_.Device(s);
      if (args == nullptr || args->graph_node_id == kNoInt) continue;
      // The upper half of a node id is its graph.
      const int64_t graph =
          graphs     ? args->graph_id
          : launches ? static_cast<int64_t>(sets.Of(args->graph_node_id))
                     : args->graph_node_id >> 32;
      rows[{args->device, graph}].push_back(s);
    }
    for (auto& [key, slices] : rows) Add(key, slices, graphs, launches);
  }

  void Add(const Key& key, const std::vector<SliceId>& slices, bool graphs,
           bool launches) {
    GraphRuns runs;
    runs.device = key.first;
    runs.graph_id =
        graphs ? key.second : trace_.Device(slices[0])->graph_node_id >> 32;
    std::map<int64_t, uint32_t> slots;
    for (const SliceId s : slices)
      slots.try_emplace(trace_.Device(s)->graph_node_id, 0);
    for (auto& [id, slot] : slots) {
      slot = static_cast<uint32_t>(runs.slots.size());
      runs.slots.push_back({id, {}, kNoInt});
    }
    absl::flat_hash_map<int64_t, size_t> open;  // launch to replay
    std::vector<bool> repeated;
    uint32_t last = 0;
    for (const SliceId s : slices) {
      const DeviceArgs& args = *trace_.Device(s);
      const uint32_t slot = slots[args.graph_node_id];
      runs.slots[slot].name = trace_.slices.name[s.value];
      runs.slots[slot].stream = args.stream;
      const int64_t launch = launches ? args.correlation : 0;
      auto [found, fresh] = open.try_emplace(launch, runs.replays.size());
      // Without launches a replay ends where a node comes again, or where the
      // ids go back to the begin: the recording may start inside of one.
      const bool wraps = last > slot + runs.slots.size() / 2;
      if (!fresh && !launches &&
          (wraps || runs.replays[found->second].slices[slot].valid())) {
        found->second = runs.replays.size();
        fresh = true;
      }
      last = slot;
      if (fresh) {
        runs.replays.emplace_back();
        runs.replays.back().slices.resize(runs.slots.size());
        repeated.push_back(false);
      }
      Replay& replay = runs.replays[found->second];
      if (replay.slices[slot].valid()) repeated[found->second] = true;
      replay.slices[slot] = s;
    }
    for (size_t i = 0; i < runs.replays.size(); ++i)
      Measure(runs.replays[i], repeated[i]);
    Order(runs);
    out_.push_back(std::move(runs));
  }

  void Measure(Replay& replay, bool repeated) const {
    replay.full = !repeated;
    bool first = true;
    for (const SliceId s : replay.slices) {
      if (!s.valid()) {
        replay.full = false;
        continue;
      }
      replay.start_ns =
          first ? trace_.Start(s) : std::min(replay.start_ns, trace_.Start(s));
      replay.end_ns =
          first ? trace_.End(s) : std::max(replay.end_ns, trace_.End(s));
      first = false;
    }
  }

  // By id where ids grow along every stream of every full replay; else by the
  // start in the full replay of median length.
  void Order(GraphRuns& runs) const {
    std::sort(runs.replays.begin(), runs.replays.end(),
              [](const Replay& a, const Replay& b) {
                return std::tie(a.start_ns, a.end_ns) <
                       std::tie(b.start_ns, b.end_ns);
              });
    std::vector<const Replay*> full;
    for (const Replay& replay : runs.replays) {
      if (replay.full) full.push_back(&replay);
    }
    if (full.empty()) return;
    runs.order_by_id =
        std::all_of(full.begin(), full.end(), [&](const Replay* replay) {
          absl::flat_hash_map<int64_t, int64_t> last;
          for (size_t i = 0; i < runs.slots.size(); ++i) {
            const int64_t start = trace_.Start(replay->slices[i]);
            const auto [found, fresh] =
                last.try_emplace(runs.slots[i].stream, start);
            if (!fresh && start < found->second) return false;
            found->second = start;
          }
          return runs.slots[0].node_id != kNoInt;
        });
    if (runs.order_by_id) return;
    // Kernels that overlap on one stream ran on several: what the recording
    // says of streams is no order then, and ids that are nearly in order of
    // start are.
    if (Overlaps(*full[0], runs) && NearlyById(*full[0])) {
      runs.order_by_id = true;
      return;
    }
    std::stable_sort(full.begin(), full.end(),
                     [](const Replay* a, const Replay* b) {
                       return a->end_ns - a->start_ns < b->end_ns - b->start_ns;
                     });
    const Replay& median = *full[(full.size() - 1) / 2];
    const std::vector<uint32_t> order = ByStart(median);
    const auto arrange = [&](auto& items) {
      auto old = items;
      for (size_t i = 0; i < order.size(); ++i) items[i] = old[order[i]];
    };
    arrange(runs.slots);
    for (Replay& replay : runs.replays) arrange(replay.slices);
  }

  std::vector<uint32_t> ByStart(const Replay& replay) const {
    std::vector<uint32_t> order(replay.slices.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return trace_.Start(replay.slices[a]) < trace_.Start(replay.slices[b]);
    });
    return order;
  }

  bool Overlaps(const Replay& replay, const GraphRuns& runs) const {
    absl::flat_hash_map<int64_t, int64_t> ends;
    for (const uint32_t i : ByStart(replay)) {
      const SliceId s = replay.slices[i];
      int64_t& end =
          ends.try_emplace(runs.slots[i].stream, INT64_MIN).first->second;
      if (trace_.Start(s) < end) return true;
      end = std::max(end, trace_.End(s));
    }
    return false;
  }

  bool NearlyById(const Replay& replay) const {
    const std::vector<uint32_t> order = ByStart(replay);
    const size_t most = std::max<size_t>(8, order.size() / 20);
    for (size_t i = 0; i < order.size(); ++i) {
      if (std::max<size_t>(i, order[i]) - std::min<size_t>(i, order[i]) > most)
        return false;
    }
    return !order.empty();
  }

  // Kernels of one graph launch without node ids, in order of start. Launches
  // with the same kernels on the same streams are replays of one graph.
  void ByLaunch() {
    const absl::flat_hash_map<int64_t, bool> launches = GraphLaunches();
    std::map<int64_t, std::vector<SliceId>> rows;
    for (const SliceId s : trace_.device_slices()) {
      const DeviceArgs* args = trace_.Device(s);
      if (args != nullptr && launches.contains(args->correlation) &&
          trace_.KindOf(s) != trace::Kind::kGraph)
        rows[args->correlation].push_back(s);
    }
    for (auto& [launch, slices] : rows) {
      std::stable_sort(
          slices.begin(), slices.end(), [this](SliceId a, SliceId b) {
            return trace_.Device(a)->stream < trace_.Device(b)->stream;
          });
      AddRun(std::move(slices));
    }
    for (GraphRuns& runs : out_) Order(runs);
  }

  // "... 0 ctx reqs, 8 gen reqs" around the launch, else the kernels of
  // attention.
  void FindPhase(GraphRuns& runs) {
    if (!steps_read_) ReadSteps();
    std::map<Stage, size_t> votes;
    for (const Replay& replay : runs.replays) {
      const auto launch = launch_time_.find([&] {
        for (const SliceId s : replay.slices) {
          if (s.valid()) return trace_.Device(s)->correlation;
        }
        return kNoInt;
      }());
      const int64_t time =
          launch == launch_time_.end() ? replay.start_ns : launch->second;
      const auto step = std::upper_bound(
          steps_.begin(), steps_.end(), time,
          [](int64_t t, const Step& one) { return t < one.start_ns; });
      if (step != steps_.begin() && std::prev(step)->end_ns > time)
        ++votes[std::prev(step)->phase];
    }
    size_t most = 0;
    for (const auto& [phase, count] : votes) {
      if (count <= most) continue;
      most = count;
      runs.phase = phase;
    }
    if (runs.phase) return;
    bool decode = false;
    bool prefill = false;
    for (const Slot& slot : runs.slots) {
      const std::string_view name = trace_.Text(slot.name);
      decode = decode || ContainsIgnoringCase(name, "decode");
      prefill = prefill || ContainsIgnoringCase(name, "prefill") ||
                ContainsIgnoringCase(name, "context_");
    }
    if (decode != prefill)
      runs.phase = decode ? Stage::kDecode : Stage::kPrefill;
  }

  struct Step {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    Stage phase = Stage::kUnknown;
  };

  void ReadSteps() {
    steps_read_ = true;
    static const RE2 pattern(R"((\d{1,9}) ctx reqs, (\d{1,9}) gen reqs)");
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      if (const trace::ApiArgs* api = trace_.Api(s)) {
        if (IsLaunch(api->correlation))
          launch_time_.try_emplace(api->correlation, trace_.Start(s));
      }
      if (trace_.KindOf(s) != trace::Kind::kAnnotation) continue;
      const std::string_view name = trace_.Name(s);
      if (name.starts_with("ProfilerStep#"))
        profiled_.push_back({trace_.Start(s), trace_.End(s)});
      int context = 0;
      int generation = 0;
      if (!RE2::PartialMatch(re2::StringPiece(name.data(), name.size()),
                             pattern, &context, &generation))
        continue;
      steps_.push_back({trace_.Start(s), trace_.End(s),
                        context == 0     ? Stage::kDecode
                        : generation > 0 ? Stage::kMixed
                                         : Stage::kPrefill});
    }
    const auto by_start = [](const Step& a, const Step& b) {
      return a.start_ns < b.start_ns;
    };
    std::sort(steps_.begin(), steps_.end(), by_start);
    marks_ = steps_.empty() ? std::move(profiled_) : steps_;
    std::sort(marks_.begin(), marks_.end(), by_start);
  }

  const Trace& trace_;
  std::vector<GraphRuns> out_;
  bool steps_read_ = false;
  std::vector<Step> steps_;
  std::vector<Step> profiled_;
  std::vector<Step> marks_;  // the steps that eager kernels are told apart by
  using Shape = std::vector<std::pair<int64_t, uint32_t>>;  // stream, name
  std::map<Shape, size_t> known_;
  absl::flat_hash_map<int64_t, int64_t> launch_time_;
};

}  // namespace

size_t GraphRuns::full_replays() const {
  return static_cast<size_t>(
      std::count_if(replays.begin(), replays.end(),
                    [](const Replay& replay) { return replay.full; }));
}

size_t GraphRuns::streams() const {
  std::vector<int64_t> seen;
  for (const Slot& slot : slots) seen.push_back(slot.stream);
  std::sort(seen.begin(), seen.end());
  return static_cast<size_t>(std::unique(seen.begin(), seen.end()) -
                             seen.begin());
}

std::vector<GraphRuns> FindGraphs(const Trace& trace) {
  return Finder(trace).Run();
}

std::vector<GraphRuns> FindEager(const Trace& trace,
                                 const std::function<bool(SliceId)>& wanted) {
  return Finder(trace).RunEager(wanted);
}

}  // namespace lamina::graph_kernels
