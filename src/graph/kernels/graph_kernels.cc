// SPDX-License-Identifier: Apache-2.0

#include "graph/kernels/graph_kernels.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "analysis/common/collective.h"
#include "analysis/layers/structure.h"
#include "base/counted.h"
#include "graph/kernels/mapper.h"
#include "table/row_columns.h"

namespace lamina::graph_kernels {

// Fills the times of kernels, nodes and layers, over the full replays, and says
// which replays are no measure.
void AddTimes(const trace::Trace& trace, KernelMap& map);

namespace {

using analysis::layers::Stage;

std::string_view PhaseName(const GraphRuns& runs) {
  return runs.phase ? StageName(*runs.phase) : "";
}

// A graph below this share of understood kernels is not that of the dump.
constexpr double kFits = 0.5;

struct GraphRow {
  int64_t graph_id;
  bool chosen;
  size_t kernels, replays, full_replays, streams;
  std::string_view phase;
  std::optional<double> fit;
};

Table CandidateTable(const std::vector<GraphRuns>& graphs,
                     const std::vector<double>& fits, size_t chosen) {
  const RowColumns<GraphRow> columns{
      "graphs",
      "Device graphs that the trace replays.",
      {{"graph_id", ColumnType::kInt, "Id of the graph.", &GraphRow::graph_id},
       {"chosen", ColumnType::kBool, "Its kernels are shown.",
        &GraphRow::chosen},
       {"kernels", ColumnType::kInt, "Nodes that run on the device.",
        &GraphRow::kernels},
       {"replays", ColumnType::kInt, "Launches in the trace.",
        &GraphRow::replays},
       {"full_replays", ColumnType::kInt,
        "Launches with every node exactly once.", &GraphRow::full_replays},
       {"streams", ColumnType::kInt, "Streams.", &GraphRow::streams},
       {"phase", ColumnType::kText,
        "prefill, decode or mixed, by step ranges or kernel names.",
        &GraphRow::phase},
       {"fit", ColumnType::kReal,
        "Share of kernels and ops that belong together; empty "
        "without a dump.",
        &GraphRow::fit}}};
  Table table(columns.schema());
  for (size_t i = 0; i < graphs.size(); ++i) {
    const GraphRuns& runs = graphs[i];
    columns.Add(table,
                {.graph_id = runs.graph_id,
                 .chosen = i == chosen,
                 .kernels = runs.slots.size(),
                 .replays = runs.replays.size(),
                 .full_replays = runs.full_replays(),
                 .streams = runs.streams(),
                 .phase = PhaseName(runs),
                 .fit = fits.empty() ? std::nullopt : std::optional(fits[i])});
  }
  return table;
}

// Graphs that the options allow.
Result<std::vector<size_t>> Allowed(const std::vector<GraphRuns>& graphs,
                                    const Options& options) {
  std::vector<size_t> out;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const GraphRuns& runs = graphs[i];
    if (runs.full_replays() == 0) continue;
    if (options.graph_id && runs.graph_id != *options.graph_id) continue;
    if (!options.phase.empty() && PhaseName(runs) != options.phase &&
        !(runs.phase == Stage::kMixed && options.phase == "prefill"))
      continue;
    out.push_back(i);
  }
  if (!out.empty()) return out;
  if (graphs.empty()) {
    return Fail(InputError(
        "", "the trace replays no device graph",
        "record with graph nodes (nsys profile --cuda-graph-trace=node)"));
  }
  std::string list;
  for (const GraphRuns& runs : graphs) {
    list += fmt::format("{}{} ({} kernels, {} full replays{}{})",
                        list.empty() ? "" : ", ", runs.graph_id,
                        runs.slots.size(), runs.full_replays(),
                        runs.phase ? ", " : "", PhaseName(runs));
  }
  return Fail(UsageError("no fully replayed graph is as asked for",
                         "the trace has " + list));
}

KernelMap MakeMap(const trace::Trace& trace, const GraphRuns& runs,
                  const graph::LaunchTable& launches, Table candidates) {
  KernelMap map{runs, {}, {}, {}, {}, std::move(candidates)};
  for (const Slot& slot : runs.slots) {
    MappedKernel kernel;
    kernel.slot = slot;
    kernel.full_name = trace.Text(slot.name);
    kernel.name = launches.ShortName(kernel.full_name);
    kernel.layer_name = "shared";
    map.kernels.push_back(std::move(kernel));
  }
  return map;
}

void NoteUnmapped(KernelMap& map) {
  double all = 0;
  double lost = 0;
  size_t count = 0;
  for (const MappedKernel& kernel : map.kernels) {
    all += kernel.time.median_ns;
    if (kernel.node.valid()) continue;
    lost += kernel.time.median_ns;
    ++count;
  }
  if (count == 0) return;
  const double share = all > 0 ? 100 * lost / all : 0;
  map.notes.push_back(MakeNote(
      share > 5 ? Severity::kWarning : Severity::kInfo, "unmapped_kernels",
      fmt::format("{} of {} kernels found no node ({:.1f} % of the time).",
                  count, map.kernels.size(), share)));
}

}  // namespace

double SureShare(const KernelMap& map) {
  double all = 0;
  double sure = 0;
  for (const MappedKernel& kernel : map.kernels) {
    all += kernel.time.median_ns;
    if (kernel.node.valid() && kernel.fit >= graph::KernelFit::kSure)
      sure += kernel.time.median_ns;
  }
  return all > 0 ? sure / all : 0;
}

std::string MisfitText(double sure_share) {
  // 0.79 is a little less than 79 % in binary.
  const double percent = std::floor(100 * sure_share + 1e-6);
  return fmt::format(
      "{:.0f} % of the kernel time of the trace is surely on nodes of this "
      "dump, {:.0f} % are needed",
      std::min(percent, 100 * kSureEnough - 1), 100 * kSureEnough);
}

Result<KernelMap> MapKernels(const trace::Trace& trace, const DumpView& dump,
                             const graph::LaunchTable& launches,
                             const Options& options) {
  const Instructions ran(trace, dump.graph.dialect == "hlo"
                                    ? ModuleOf(dump.graph)
                                    : std::string_view());
  std::vector<GraphRuns> graphs = FindGraphs(trace);
  // Other programs of the process are not of this dump.
  if (graphs.empty() && !ran.empty())
    graphs = FindEager(trace,
                       [&](trace::SliceId s) { return ran.Of(s) != nullptr; });
  // Prefill runs without device graphs as a rule.
  if (graphs.empty()) graphs = FindEager(trace);
  LAMINA_ASSIGN(const std::vector<size_t> allowed, Allowed(graphs, options));
  Mapper mapper(trace, dump, launches, ran);
  std::vector<double> fits(graphs.size(), 0);
  size_t best = allowed[0];
  for (const size_t i : allowed) {
    LAMINA_TRY(mapper.Align(graphs[i]));
    fits[i] = mapper.Fit();
    if (fits[i] > fits[best]) best = i;
  }
  // The same model as prefill and as decode: only the user knows.
  if (options.phase.empty() && !options.graph_id) {
    for (const size_t i : allowed) {
      if (graphs[i].phase == graphs[best].phase || !graphs[i].phase ||
          !graphs[best].phase || fits[i] < kFits || fits[best] < kFits)
        continue;
      return Fail(UsageError(
          fmt::format("graph {} ({}) and graph {} ({}) both fit the dump",
                      graphs[best].graph_id, PhaseName(graphs[best]),
                      graphs[i].graph_id, PhaseName(graphs[i])),
          "choose with ⟨phase⟩ or ⟨graph⟩"));
    }
  }
  LAMINA_TRY(mapper.Align(graphs[best]));
  KernelMap map = MakeMap(trace, graphs[best], launches,
                          CandidateTable(graphs, fits, best));
  mapper.Apply(map);
  AddTimes(trace, map);
  if (graphs[best].eager) {
    map.notes.push_back(MakeNote(
        Severity::kInfo, "eager",
        fmt::format("The trace replays no device graph: {} of {} are joined by "
                    "{}.",
                    Counted(graphs[best].slots.size(), "kernel"),
                    graphs[best].replays.size() > 1
                        ? Counted(graphs[best].replays.size(), "equal step")
                        : std::string("a step"),
                    ran.empty() ? "names and order"
                                : "the instructions that the trace names")));
  }
  if (fits[best] < kFits) {
    map.notes.push_back(MakeNote(
        Severity::kWarning, "poor_fit",
        fmt::format("Only {:.0f} % of the kernels and ops of graph {} belong "
                    "together: it may not be the graph of this dump.",
                    100 * fits[best], graphs[best].graph_id)));
  }
  NoteUnmapped(map);
  return map;
}

Result<KernelMap> ListKernels(const trace::Trace& trace,
                              const graph::LaunchTable& launches,
                              const Options& options) {
  const std::vector<GraphRuns> graphs = FindGraphs(trace);
  LAMINA_ASSIGN(const std::vector<size_t> allowed, Allowed(graphs, options));
  // The largest: small graphs (draft models) are replayed more often.
  size_t best = allowed[0];
  for (const size_t i : allowed) {
    if (graphs[i].slots.size() > graphs[best].slots.size()) best = i;
  }
  KernelMap map =
      MakeMap(trace, graphs[best], launches, CandidateTable(graphs, {}, best));
  std::vector<uint32_t> ids;
  for (const Slot& slot : map.runs.slots) ids.push_back(slot.name.value);
  const auto found = analysis::layers::FindStructure({ids, ids, {}}, {}).layers;
  // The most layers of one stack that follow each other.
  std::pair<size_t, size_t> main;
  for (size_t from = 0, l = 0; l < found.size(); ++l) {
    if (found[l].family != found[from].family) from = l;
    if (l + 1 - from > main.second - main.first) main = {from, l + 1};
  }
  for (size_t l = main.first; l < main.second; ++l) {
    const uint32_t end =
        l + 1 < main.second ? found[l + 1].begin : found[l].end;
    for (uint32_t k = found[l].begin; k < end; ++k) {
      map.kernels[k].layer = static_cast<int>(l - main.first);
      map.kernels[k].layer_name = std::to_string(l - main.first);
    }
    if (l + 1 < main.second) continue;
    for (uint32_t k = end; k < map.kernels.size(); ++k)
      map.kernels[k].layer_name = "epilogue";
  }
  AddTimes(trace, map);
  return map;
}

namespace {

// Streams by their time in all the graph, the longest first.
absl::flat_hash_map<int64_t, uint32_t> StreamRanks(const KernelMap& map) {
  absl::flat_hash_map<int64_t, double> times;
  for (const MappedKernel& kernel : map.kernels)
    times[kernel.slot.stream] += kernel.time.median_ns;
  std::vector<std::pair<double, int64_t>> order;
  for (const auto& [stream, ns] : times) order.emplace_back(-ns, stream);
  std::sort(order.begin(), order.end());
  absl::flat_hash_map<int64_t, uint32_t> out;
  for (const auto& [ns, stream] : order)
    out.try_emplace(stream, static_cast<uint32_t>(out.size()));
  return out;
}

}  // namespace

void AddKernels(const KernelMap& map, const graph::Graph& graph,
                graph::LayerGraph& layer) {
  const auto ranks = StreamRanks(map);
  const auto kernel_of = [&](const MappedKernel& kernel) {
    return graph::LayerKernel{kernel.name,
                              std::string(kernel.full_name),
                              kernel.time.median_ns,
                              kernel.time.p95_ns,
                              kernel.fit,
                              kernel.start_ns,
                              ranks.at(kernel.slot.stream),
                              kernel.ranks,
                              kernel.bytes};
  };
  std::string layer_name;  // as the map names it
  absl::flat_hash_map<std::string_view, std::vector<const MappedKernel*>> of;
  for (const MappedKernel& kernel : map.kernels) {
    if (kernel.node.valid()) of[graph[kernel.node].name].push_back(&kernel);
  }
  graph::TraceSummary summary;
  std::vector<int64_t> streams;
  for (graph::LayerNode& node : layer.nodes) {
    const auto found = of.find(node.id);
    if (found == of.end()) continue;
    for (const MappedKernel* kernel : found->second) {
      node.kernels.push_back(kernel_of(*kernel));
      if (node.boundary) continue;
      layer_name = kernel->layer_name;
      for (const LayerTime& one : map.layers) {
        if (one.name == kernel->layer_name)
          summary.wall_ns = one.wall.median_ns;
      }
      summary.total_ns += kernel->time.median_ns;
      ++summary.kernels;
      streams.push_back(kernel->slot.stream);
    }
  }
  for (const MappedKernel& kernel : map.kernels) {
    if (!kernel.node.valid() && kernel.layer_name == layer_name)
      layer.off_nodes.push_back(kernel_of(kernel));
  }
  std::sort(streams.begin(), streams.end());
  summary.streams = static_cast<size_t>(
      std::unique(streams.begin(), streams.end()) - streams.begin());
  layer.stream_ids.resize(ranks.size());
  for (const auto& [stream, rank] : ranks) layer.stream_ids[rank] = stream;
  summary.replays = map.runs.full_replays();
  layer.trace = summary;
}

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
