// SPDX-License-Identifier: Apache-2.0
#include "graph/kernels/times.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "analysis/common/collective.h"

namespace lamina::graph_kernels {
namespace {

using graph::NodeId;
using trace::SliceId;

Timing TimingOf(std::vector<int64_t> values) {
  Timing out;
  out.count = values.size();
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  out.median_ns =
      n % 2 == 1 ? static_cast<double>(values[n / 2])
                 : static_cast<double>(values[n / 2 - 1] + values[n / 2]) / 2;
  out.p95_ns = values[(n * 95 + 99) / 100 - 1];
  return out;
}

class Timer {
 public:
  Timer(const trace::Trace& trace, KernelMap& map) : trace_(trace), map_(map) {}

  void Run() {
    for (size_t k = 0; k < map_.kernels.size(); ++k)
      map_.kernels[k].time = Sum({k});
    absl::flat_hash_map<NodeId, size_t> nodes;
    std::map<std::string, size_t> layers;
    for (size_t k = 0; k < map_.kernels.size(); ++k) {
      const MappedKernel& kernel = map_.kernels[k];
      if (kernel.node.valid()) {
        const auto [found, fresh] =
            nodes.try_emplace(kernel.node, map_.nodes.size());
        if (fresh)
          map_.nodes.push_back({kernel.node, kernel.layer_name, {}, {}});
        map_.nodes[found->second].kernels.push_back(k);
      }
      const auto [found, fresh] =
          layers.try_emplace(kernel.layer_name, map_.layers.size());
      if (fresh) map_.layers.push_back({kernel.layer_name, {}, {}, 0, {}});
      map_.layers[found->second].kernels.push_back(k);
    }
    for (NodeTime& node : map_.nodes) node.time = Sum(node.kernels);
    for (LayerTime& layer : map_.layers) {
      layer.time = Sum(layer.kernels);
      layer.wall = Wall(layer.kernels);
      Starts(layer.kernels);
      std::vector<int64_t> streams;
      for (const size_t k : layer.kernels)
        streams.push_back(map_.kernels[k].slot.stream);
      std::sort(streams.begin(), streams.end());
      layer.streams = static_cast<size_t>(
          std::unique(streams.begin(), streams.end()) - streams.begin());
    }
    Collectives();
    WarmUp();
  }

 private:
  Timing Sum(const std::vector<size_t>& kernels) const {
    std::vector<int64_t> sums;
    for (const Replay& replay : map_.runs.replays) {
      if (!replay.full) continue;
      int64_t sum = 0;
      for (const size_t k : kernels) sum += trace_.Duration(replay.slices[k]);
      sums.push_back(sum);
    }
    return TimingOf(std::move(sums));
  }

  Timing Wall(const std::vector<size_t>& kernels) const {
    std::vector<int64_t> walls;
    for (const Replay& replay : map_.runs.replays) {
      if (!replay.full || kernels.empty()) continue;
      int64_t first = trace_.Start(replay.slices[kernels[0]]);
      int64_t last = first;
      for (const size_t k : kernels) {
        first = std::min(first, trace_.Start(replay.slices[k]));
        last = std::max(last, trace_.End(replay.slices[k]));
      }
      walls.push_back(last - first);
    }
    return TimingOf(std::move(walls));
  }

  void Starts(const std::vector<size_t>& kernels) {
    std::vector<std::vector<int64_t>> starts(kernels.size());
    for (const Replay& replay : map_.runs.replays) {
      if (!replay.full || kernels.empty()) continue;
      int64_t first = trace_.Start(replay.slices[kernels[0]]);
      for (const size_t k : kernels)
        first = std::min(first, trace_.Start(replay.slices[k]));
      for (size_t i = 0; i < kernels.size(); ++i)
        starts[i].push_back(trace_.Start(replay.slices[kernels[i]]) - first);
    }
    for (size_t i = 0; i < kernels.size(); ++i)
      map_.kernels[kernels[i]].start_ns =
          TimingOf(std::move(starts[i])).median_ns;
  }

  // What the profiler wrote of a collective, of the first full replay.
  void Collectives() {
    const auto full =
        std::find_if(map_.runs.replays.begin(), map_.runs.replays.end(),
                     [](const Replay& one) { return one.full; });
    if (full == map_.runs.replays.end()) return;
    for (size_t k = 0; k < map_.kernels.size(); ++k) {
      const trace::DeviceArgs* const device = trace_.Device(full->slices[k]);
      const trace::CollectiveArgs* const args =
          device == nullptr ? nullptr : trace_.Collective(device->collective);
      if (args == nullptr) continue;
      MappedKernel& kernel = map_.kernels[k];
      kernel.ranks = std::max<int64_t>(args->group_size, 0);
      const int64_t elements = analysis::MessageElements(
          analysis::CollectiveKindOf(trace_.Text(args->name)),
          args->in_elements, args->out_elements);
      if (elements > 0) {
        kernel.bytes =
            analysis::CollectiveBytes(elements, trace_.Text(args->dtype))
                .value_or(0);
      }
    }
  }

  void WarmUp() {
    std::vector<int64_t> sums;
    size_t truncated = 0;
    for (const Replay& replay : map_.runs.replays) {
      if (!replay.full) {
        ++truncated;
        continue;
      }
      int64_t sum = 0;
      for (const SliceId s : replay.slices) sum += trace_.Duration(s);
      sums.push_back(sum);
    }
    if (truncated > 0) {
      map_.notes.push_back(MakeNote(
          Severity::kInfo, "truncated_replays",
          fmt::format("{} of {} replays lack kernels or have some twice and "
                      "are left out.",
                      truncated, map_.runs.replays.size())));
    }
    const Timing all = TimingOf(sums);
    if (sums.size() > 2 && static_cast<double>(sums[0]) > 1.2 * all.median_ns) {
      map_.notes.push_back(MakeNote(
          Severity::kInfo, "warm_up",
          fmt::format("The first full replay takes {:.2f} times the median: "
                      "it is a warm-up.",
                      static_cast<double>(sums[0]) / all.median_ns)));
    }
  }

  const trace::Trace& trace_;
  KernelMap& map_;
};

}  // namespace

void AddTimes(const trace::Trace& trace, KernelMap& map) {
  Timer(trace, map).Run();
}

}  // namespace lamina::graph_kernels
