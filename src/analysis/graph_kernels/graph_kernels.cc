// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph_kernels/graph_kernels.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "analysis/graph_kernels/align.h"
#include "analysis/layers/repeats.h"
#include "base/escape.h"
#include "base/text.h"

namespace lamina::graph_kernels {
namespace {

using graph::NodeId;
using trace::SliceId;

// Two choices whose scores differ by less are equally good.
constexpr float kAmbiguous = 0.5F;
// A graph below this share of understood kernels is not that of the dump.
constexpr double kFits = 0.5;

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

void Say(std::vector<Note>& notes, Severity severity, const char* id,
         std::string text) {
  notes.push_back(MakeNote(severity, id, std::move(text)));
}

// The hexadecimal number at the end of "mlir_fused_1a2b" or the name of a
// kernel "fused_kernel_1a2b(...)".
std::string_view HashBehind(std::string_view name, std::string_view prefix) {
  const size_t at = name.find(prefix);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + prefix.size());
  const size_t end = name.find_first_not_of("0123456789abcdef");
  return name.substr(0, end);
}

Table CandidateTable(const std::vector<GraphRuns>& graphs,
                     const std::vector<double>& fits, size_t chosen) {
  Table table({"graphs",
               "Device graphs that the trace replays.",
               {{"graph_id", ColumnType::kInt, "Id of the graph."},
                {"chosen", ColumnType::kBool, "Its kernels are shown."},
                {"kernels", ColumnType::kInt, "Nodes that run on the device."},
                {"replays", ColumnType::kInt, "Launches in the trace."},
                {"full_replays", ColumnType::kInt,
                 "Launches with every node exactly once."},
                {"streams", ColumnType::kInt, "Streams."},
                {"phase", ColumnType::kText,
                 "prefill, decode or mixed, by step ranges or kernel names."},
                {"fit", ColumnType::kReal,
                 "Share of kernels and ops that belong together; empty "
                 "without a dump."}}});
  for (size_t i = 0; i < graphs.size(); ++i) {
    const GraphRuns& runs = graphs[i];
    table.Add(runs.graph_id, i == chosen, runs.slots.size(),
              runs.replays.size(), runs.full_replays(), runs.streams(),
              runs.phase, fits.empty() ? Value() : Value(fits[i]));
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
    if (!options.phase.empty() && runs.phase != options.phase &&
        !(runs.phase == "mixed" && options.phase == "prefill"))
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
                        runs.phase.empty() ? "" : ", ", runs.phase);
  }
  return Fail(UsageError("no fully replayed graph is as asked for",
                         "the trace has " + list));
}

// Times of kernels, nodes and layers over the full replays.
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
      if (fresh) map_.layers.push_back({kernel.layer_name, {}, {}, 0});
      map_.layers[found->second].kernels.push_back(k);
    }
    for (NodeTime& node : map_.nodes) node.time = Sum(node.kernels);
    for (LayerTime& layer : map_.layers) {
      layer.time = Sum(layer.kernels);
      std::vector<int64_t> streams;
      for (const size_t k : layer.kernels)
        streams.push_back(map_.kernels[k].slot.stream);
      std::sort(streams.begin(), streams.end());
      layer.streams = static_cast<size_t>(
          std::unique(streams.begin(), streams.end()) - streams.begin());
    }
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
      Say(map_.notes, Severity::kInfo, "truncated_replays",
          fmt::format("{} of {} replays lack kernels or have some twice and "
                      "are left out.",
                      truncated, map_.runs.replays.size()));
    }
    const Timing all = TimingOf(sums);
    if (sums.size() > 2 && static_cast<double>(sums[0]) > 1.2 * all.median_ns) {
      Say(map_.notes, Severity::kInfo, "warm_up",
          fmt::format("The first full replay takes {:.2f} times the median: "
                      "it is a warm-up.",
                      static_cast<double>(sums[0]) / all.median_ns));
    }
  }

  const trace::Trace& trace_;
  KernelMap& map_;
};

KernelMap MakeMap(const trace::Trace& trace, const GraphRuns& runs,
                  const graph::LaunchTable& launches, Table candidates) {
  KernelMap map{runs, {}, {}, {}, {}, std::move(candidates)};
  for (const Slot& slot : runs.slots) {
    MappedKernel kernel;
    kernel.slot = slot;
    kernel.full_name = trace.Text(slot.name);
    kernel.name = launches.ShortName(kernel.full_name);
    kernel.confidence = "none";
    kernel.layer_name = "shared";
    map.kernels.push_back(std::move(kernel));
  }
  return map;
}

// The ops of a dump that can launch, and the alignment of a graph with them.
class Mapper {
 public:
  Mapper(const trace::Trace& trace, const DumpView& dump,
         const graph::LaunchTable& launches)
      : trace_(trace), dump_(dump), launches_(launches) {
    for (const NodeId id : dump.graph.nodes()) {
      if (dump.graph[id].kind != graph::NodeKind::kOp ||
          launches.NeverLaunches(dump.graph.op(id)))
        continue;
      nodes_.push_back(id);
      ops_.push_back(dump.graph.op(id));
    }
  }

  Status Align(const GraphRuns& runs) {
    std::vector<std::string_view> names;
    for (const Slot& slot : runs.slots) names.push_back(trace_.Text(slot.name));
    LAMINA_ASSIGN(assigned_, AlignKernels(ops_, names, launches_));
    return {};
  }

  // Mean of the shares of kernels and of necessary ops that found a partner.
  double Fit() const {
    size_t mapped = 0;
    std::vector<bool> has(nodes_.size(), false);
    for (const Assignment& one : assigned_) {
      if (one.node == Assignment::kNone) continue;
      ++mapped;
      has[one.node] = true;
    }
    size_t needed = 0;
    size_t found = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (launches_.MayLaunchNothing(ops_[i]) ||
          launches_.RulesFor(ops_[i]).empty())
        continue;
      ++needed;
      found += has[i] ? 1 : 0;
    }
    if (assigned_.empty() || needed == 0) return 0;
    const auto share = [](size_t part, size_t of) {
      return static_cast<double>(part) / static_cast<double>(of);
    };
    return share(mapped, assigned_.size()) * share(found, needed);
  }

  void Apply(KernelMap& map) const {
    for (size_t k = 0; k < assigned_.size(); ++k) {
      MappedKernel& kernel = map.kernels[k];
      const Assignment& one = assigned_[k];
      if (one.node == Assignment::kNone) continue;
      kernel.node = nodes_[one.node];
      kernel.confidence = one.margin < kAmbiguous ? "ambiguous" : "likely";
    }
    Judge(map);
    // A kernel without a node is of the layer around it.
    int last = -1;
    std::string last_name = "shared";
    for (MappedKernel& kernel : map.kernels) {
      if (kernel.node.valid()) {
        const graph::Place place = dump_.layers.PlaceOf(kernel.node);
        last = place >= 0 && place != graph::kEpilogue ? place : -1;
        last_name = dump_.layers.NameOf(place);
      }
      kernel.layer = last;
      kernel.layer_name = last_name;
    }
  }

 private:
  // "sure": a rule names the kernel, nothing else fits as well, and all layers
  // of the kind agree. "exact": the same hash in both names, or one of a kind.
  void Judge(KernelMap& map) const {
    absl::flat_hash_map<std::string_view, size_t> ops;
    absl::flat_hash_map<std::string_view, size_t> names;
    for (const std::string_view op : ops_) ++ops[op];
    for (const MappedKernel& kernel : map.kernels) ++names[kernel.full_name];
    // What each node launched, as text, by its place in its kind of layer.
    absl::flat_hash_map<NodeId, std::string> launched;
    for (const MappedKernel& kernel : map.kernels) {
      if (kernel.node.valid())
        launched[kernel.node] += std::string(kernel.full_name) + "\n";
    }
    std::map<std::pair<uint32_t, size_t>, std::pair<std::string, bool>> agree;
    absl::flat_hash_map<NodeId, std::pair<uint32_t, size_t>> where;
    const auto& layers = dump_.layers.layers;
    for (size_t l = 0; l < layers.size(); ++l) {
      for (size_t i = 0; i < layers[l].nodes.size(); ++i) {
        const NodeId id = layers[l].nodes[i];
        const std::pair<uint32_t, size_t> key = {dump_.kinds.of_layer[l], i};
        where[id] = key;
        const auto [found, fresh] = agree.try_emplace(key, launched[id], true);
        if (!fresh && found->second.first != launched[id])
          found->second.second = false;
      }
    }
    for (size_t k = 0; k < map.kernels.size(); ++k) {
      MappedKernel& kernel = map.kernels[k];
      if (!kernel.node.valid() || kernel.confidence != "likely") continue;
      const std::string_view op = dump_.graph.op(kernel.node);
      const std::string_view hash = HashBehind(op, "mlir_fused_");
      if (hash.size() >= 4 &&
          hash == HashBehind(kernel.full_name, "fused_kernel_")) {
        kernel.confidence = "exact";
        continue;
      }
      if (!assigned_[k].by_rule) continue;
      if (ops[op] == 1 && names[kernel.full_name] == 1) {
        kernel.confidence = "exact";
        continue;
      }
      const auto found = where.find(kernel.node);
      const bool same = found == where.end() || agree[found->second].second;
      // Kernels of several streams by start are in no certain order.
      if (same && (map.runs.order_by_id || map.runs.streams() == 1))
        kernel.confidence = "sure";
    }
  }

  const trace::Trace& trace_;
  const DumpView& dump_;
  const graph::LaunchTable& launches_;
  std::vector<NodeId> nodes_;
  std::vector<std::string_view> ops_;
  std::vector<Assignment> assigned_;
};

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
  Say(map.notes, share > 5 ? Severity::kWarning : Severity::kInfo,
      "unmapped_kernels",
      fmt::format("{} of {} kernels found no node ({:.1f} % of the time).",
                  count, map.kernels.size(), share));
}

}  // namespace

Result<KernelMap> MapKernels(const trace::Trace& trace, const DumpView& dump,
                             const graph::LaunchTable& launches,
                             const Options& options) {
  const std::vector<GraphRuns> graphs = FindGraphs(trace);
  LAMINA_ASSIGN(const std::vector<size_t> allowed, Allowed(graphs, options));
  Mapper mapper(trace, dump, launches);
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
      if (graphs[i].phase == graphs[best].phase || graphs[i].phase.empty() ||
          graphs[best].phase.empty() || fits[i] < kFits || fits[best] < kFits)
        continue;
      return Fail(UsageError(
          fmt::format("graph {} ({}) and graph {} ({}) both fit the dump",
                      graphs[best].graph_id, graphs[best].phase,
                      graphs[i].graph_id, graphs[i].phase),
          "choose with --phase or --graph"));
    }
  }
  LAMINA_TRY(mapper.Align(graphs[best]));
  KernelMap map = MakeMap(trace, graphs[best], launches,
                          CandidateTable(graphs, fits, best));
  mapper.Apply(map);
  Timer(trace, map).Run();
  if (fits[best] < kFits) {
    Say(map.notes, Severity::kWarning, "poor_fit",
        fmt::format("Only {:.0f} % of the kernels and ops of graph {} belong "
                    "together: it may not be the graph of this dump.",
                    100 * fits[best], graphs[best].graph_id));
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
  const auto stacks = analysis::layers::FindStacks(ids, {}, {});
  const analysis::layers::Stack* main = nullptr;
  for (const auto& stack : stacks) {
    if (main == nullptr || stack.pieces.size() > main->pieces.size())
      main = &stack;
  }
  if (main != nullptr) {
    for (size_t p = 0; p < main->pieces.size(); ++p) {
      for (uint32_t k = main->pieces[p].begin; k < main->pieces[p].end; ++k) {
        map.kernels[k].layer = static_cast<int>(p);
        map.kernels[k].layer_name = std::to_string(p);
      }
    }
    for (uint32_t k = main->end(); k < map.kernels.size(); ++k)
      map.kernels[k].layer_name = "epilogue";
  }
  Timer(trace, map).Run();
  return map;
}

void AddKernels(const KernelMap& map, const graph::Graph& graph,
                graph::LayerGraph& layer) {
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
      node.kernels.push_back({kernel->name, std::string(kernel->full_name),
                              kernel->time.median_ns, kernel->time.p95_ns,
                              kernel->confidence});
      if (node.boundary) continue;
      summary.total_ns += kernel->time.median_ns;
      ++summary.kernels;
      streams.push_back(kernel->slot.stream);
    }
  }
  std::sort(streams.begin(), streams.end());
  summary.streams = static_cast<size_t>(
      std::unique(streams.begin(), streams.end()) - streams.begin());
  layer.trace = summary;
}

}  // namespace lamina::graph_kernels
