// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/tables.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/common/stats.h"
#include "analysis/host/tables.h"
#include "analysis/path/chain_tables.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/parallel.h"

namespace lamina::analysis::path {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

Schema SummarySchema() {
  return {"path_summary",
          "The critical path by class; the rows add up to the window.",
          {{"class", ColumnType::kText,
            "host, device, comm, copy, wait or before_trace."},
           {"kind", ColumnType::kText, "Kind of segment (docs/host.md)."},
           {"time_us", ColumnType::kTime, "Sum of the segments."},
           {"percent", ColumnType::kReal, "Share of the window.", Shown::kBar},
           {"segments", ColumnType::kInt, "Segments."},
           {"inferred_us", ColumnType::kTime,
            "Behind waits that were inferred, not recorded."}}};
}

Schema GraphSchema() {
  return {"path_graph",
          "Size of the graph and what was counted while it was made.",
          {{"what", ColumnType::kText,
            "nodes, edges, \"edges: KIND\", or a counter."},
           {"count", ColumnType::kInt, "How many."}}};
}

Schema VerdictsSchema() {
  return {
      "verdicts",
      "What bounds the window and its steps: the class with 60 % of the "
      "chain. Layers are parts of the chain of the window, each up to the "
      "begin of the next. Shares are sensitivities: a class that gets 1 % "
      "faster saves "
      "1 % of its share.",
      {{"scope", ColumnType::kText, "window, step or layer (with --by layer)."},
       {"name", ColumnType::kText, "Name of the step or layer."},
       {"start_us", ColumnType::kTime, "From the first event."},
       {"window_us", ColumnType::kTime, "Length."},
       {"verdict", ColumnType::kText,
        "host_bound, device_bound, comm_bound, copy_bound, unexplained_wait, "
        "or mixed with the two largest."},
       {"strength_percent", ColumnType::kReal, "Share of the largest class.",
        Shown::kPercent},
       {"second", ColumnType::kText, "Second class."},
       {"second_percent", ColumnType::kReal, "Its share.", Shown::kPercent},
       {"host_us", ColumnType::kTime, "Time on the chain."},
       {"device_us", ColumnType::kTime, "Time on the chain."},
       {"comm_us", ColumnType::kTime, "Time on the chain."},
       {"copy_us", ColumnType::kTime, "Time on the chain."},
       {"wait_us", ColumnType::kTime, "Time on the chain."},
       {"before_trace_us", ColumnType::kTime,
        "Waiting for work from before the recording; in no share."},
       {"device_busy_percent", ColumnType::kReal,
        "Share of the window in which the device worked; of several, the "
        "mean.",
        Shown::kPercent},
       {"empty_queue_percent", ColumnType::kReal,
        "Share of the window in which nothing that was launched waited to "
        "start, on any stream; empty where most launches are not known.",
        Shown::kPercent},
       {"host_bound_idle_us", ColumnType::kTime,
        "Idle time of the device in the window by cause (lamina host), of "
        "several in sum: the host had not launched."},
       {"launch_overhead_us", ColumnType::kTime,
        "Idle time: launched, within the launch floor."},
       {"submitted_wait_us", ColumnType::kTime,
        "Idle time: submitted, and nothing recorded explains the wait."},
       {"saved_host_half_us", ColumnType::kTime,
        "Of the window, if all host work took half the time."},
       {"saved_device_half_us", ColumnType::kTime,
        "If all computation took half the time."},
       {"saved_comm_half_us", ColumnType::kTime,
        "If all communication took half the time."},
       {"confidence", ColumnType::kText,
        "recorded; inferred: above 5 % of the chain hangs on inferred waits; "
        "weak: much is unlinked or unexplained, what half of a class saves is "
        "not known to a fifth of the window, or the chain runs along the host "
        "while the device worked for four fifths of the time."}}};
}

Schema WhatIfSchema() {
  return {
      "what_if",
      "The end of the window if some work took another time. Order of work, "
      "waits that nothing explains and host work that is not named stay. "
      "Where the trace does not say what waited for what the answer is the "
      "likeliest of a range.",
      {{"spec", ColumnType::kText, "What was asked."},
       {"window_us", ColumnType::kTime, "As recorded."},
       {"new_window_us", ColumnType::kTime, "Then."},
       {"saved_us", ColumnType::kTime, "Difference."},
       {"saved_low_us", ColumnType::kTime,
        "The least that is saved, whatever waited for what."},
       {"saved_high_us", ColumnType::kTime, "The most."},
       {"saved_percent", ColumnType::kReal, "Share of the window.",
        Shown::kPercent},
       {"doubtful", ColumnType::kText,
        "What the trace does not say, if the range has a width: the largest "
        "reason."},
       {"touched_nodes", ColumnType::kInt,
        "Points in time that moved or were "
        "looked at."},
       {"verdict_after", ColumnType::kText, "As in verdicts."},
       {"host_percent", ColumnType::kReal, "Share of the new chain.",
        Shown::kPercent},
       {"device_percent", ColumnType::kReal, "Share of the new chain.",
        Shown::kPercent}}};
}

class Tables {
 public:
  Tables(const Graph& graph, const Window& window, const PathSums& sums)
      : graph_(graph),
        model_(graph.model()),
        trace_(model_.trace()),
        window_(window),
        sums_(sums) {}

  // Whether most device time has a launch; before Verdicts.
  void FindLinked() {
    int64_t linked = 0, all = 0;
    for (const SliceId s : trace_.device_slices()) {
      all += trace_.Duration(s);
      if (model_.call(s) != host::kNone) linked += trace_.Duration(s);
    }
    linked_ = 10 * linked >= 9 * all;
  }

  // A row of verdicts.
  struct Scope {
    std::string_view scope, name;
    int64_t start_ns, end_ns;
    PathSums sums;
    double busy_percent = 0;  // of the devices, the mean; 0: not known
  };

  // The window, whose sums Verdicts adds, its steps and layers.
  std::vector<Scope> Scopes(const TableOptions& options,
                            const std::vector<StepPath>& steps,
                            const std::vector<Segment>& segments) const {
    std::vector<Scope> scopes = {{"window",
                                  window_.name,
                                  window_.start_ns,
                                  graph_.time(window_.sink),
                                  {}}};
    AddSteps(scopes, steps);
    AddLayers(scopes, options, segments);
    return scopes;
  }

  // `saved`: with half the work of host, computation and communication.
  Table Verdicts(ResultSet& result, std::vector<Scope>& scopes,
                 const std::optional<host::IdleEvidence>& evidence,
                 const std::array<Saved, kHalves>& saved) const {
    scopes[0].sums = sums_;
    Table table(VerdictsSchema());
    for (size_t i = 0; i < scopes.size(); ++i) {
      const auto* const idle =
          evidence && evidence->devices() > 0 ? &evidence->window(i) : nullptr;
      if (idle != nullptr && scopes[i].end_ns > scopes[i].start_ns) {
        scopes[i].busy_percent =
            PercentOf(idle->busy_ns, scopes[i].end_ns - scopes[i].start_ns) /
            static_cast<double>(evidence->devices());
      }
      AddVerdict(table, scopes[i], idle, i == 0 ? &saved : nullptr);
    }
    Say(result, saved, scopes[0].busy_percent);
    return table;
  }

 private:
  void AddSteps(std::vector<Scope>& scopes,
                const std::vector<StepPath>& paths) const {
    const auto& steps = model_.context().steps.steps();
    for (const StepPath& path : paths) {
      scopes.push_back({"step", trace_.Name(steps[path.step].slice),
                        path.start_ns, path.end_ns, path.sums});
    }
  }

  // The parts of the window's chain.
  void AddLayers(std::vector<Scope>& scopes, const TableOptions& options,
                 const std::vector<Segment>& segments) const {
    if (options.cuts.empty()) return;
    const int64_t end = graph_.time(window_.sink);
    int64_t from = window_.start_ns;
    const auto add = [&](std::string_view name, int64_t to) {
      to = std::min(to, end);
      if (to <= from) return;
      scopes.push_back(
          {"layer", name, from, to, SumWithin(segments, from, to)});
      from = to;
    };
    add("prologue", options.cuts[0].start_ns);
    for (size_t i = 0; i + 1 < options.cuts.size(); ++i)
      add(options.cuts[i].name, options.cuts[i + 1].start_ns);
    add(options.cuts.back().name, options.cut_end_ns);
    add("epilogue", end);
  }

  // `idle` may be null: nothing is known of devices.
  void AddVerdict(Table& table, const Scope& row,
                  const host::IdleEvidence::Sums* idle,
                  const std::array<Saved, kHalves>* saved) const {
    const Verdict verdict = VerdictOf(row.sums);
    const int64_t length = row.end_ns - row.start_ns;
    // Where no device works the host is bound by nothing else.
    const bool alone = trace_.device_slices().empty();
    const auto found = [&](const auto& value) {
      return alone ? Value() : Value(value);
    };
    const auto half = [&](size_t i) {
      return saved == nullptr ? Value() : Value((*saved)[i].best_ns);
    };
    static const host::IdleEvidence::Sums kNothing;
    const host::IdleEvidence::Sums& sums = idle == nullptr ? kNothing : *idle;
    const auto fact = [&](const auto& value) {
      return idle == nullptr ? Value() : Value(value);
    };
    table.Add(
        row.scope, row.name, row.start_ns - trace_.first_ns, length,
        found(verdict.text), found(verdict.percent), found(verdict.second),
        found(verdict.second_percent), row.sums.of(PathClass::kHost),
        row.sums.of(PathClass::kDevice), row.sums.of(PathClass::kComm),
        row.sums.of(PathClass::kCopy), row.sums.of(PathClass::kWait),
        row.sums.of(PathClass::kBeforeTrace), fact(row.busy_percent),
        // Without launches nothing is known of a queue.
        linked_ ? fact(PercentOf(length - sums.waiting_ns, length)) : Value(),
        fact(sums.host_bound_ns), fact(sums.launch_overhead_ns),
        fact(sums.submitted_wait_ns), half(0), half(1), half(2),
        Confidence(row.sums, verdict, row.busy_percent, saved));
  }

  // Whether the chain runs along the host while the device had little to wait
  // for: the host may have waited where no record says so, as JAX records none.
  static bool Doubtful(const Verdict& verdict, double busy_percent) {
    return verdict.text == "host_bound" && busy_percent >= 80;
  }

  // `saved` may be null: what halves save is not known.
  const char* Confidence(const PathSums& sums, const Verdict& verdict,
                         double busy_percent,
                         const std::array<Saved, kHalves>* saved) const {
    const bool wide =
        saved != nullptr &&
        std::any_of(saved->begin(), saved->end(), [&](const Saved& half) {
          return 5 * (half.high_ns - half.low_ns) > sums.total();
        });
    if (!linked_ || 5 * sums.of(PathClass::kWait) > sums.total() || wide ||
        Doubtful(verdict, busy_percent))
      return "weak";
    return 20 * sums.inferred_ns() > sums.total() ? "inferred" : "recorded";
  }

  // `busy_percent` of the window.
  void Say(ResultSet& result, const std::array<Saved, kHalves>& saved,
           double busy_percent) const {
    if (auto clocks = host::ClockNote(model_))
      result.notes.push_back(std::move(*clocks));
    if (trace_.device_slices().empty()) {
      result.notes.push_back(
          MakeNote(Severity::kInfo, "no_device_work",
                   "No device work is recorded: the chain runs along the host, "
                   "and what bounds the run is not recorded.",
                   {{"path_summary", "time_us", {}, {}}}));
      return;
    }
    const Verdict verdict = VerdictOf(sums_);
    if (verdict.text.empty()) return;
    const int64_t whole = sums_.total() - sums_.of(PathClass::kBeforeTrace);
    std::string text = fmt::format("{}: of {} the critical path spends",
                                   verdict.text, HumanTime(whole));
    bool first = true;
    for (size_t c = 0; c + 1 < kPathClasses; ++c) {
      const double percent =
          PercentOf(sums_.of(static_cast<PathClass>(c)), whole);
      if (percent < 1) continue;
      static constexpr std::array<std::string_view, kPathClasses - 1> kWhere = {
          "on the host", "in kernels and the gaps between them",
          "in communication", "in copies", "waiting for what is not recorded"};
      text +=
          fmt::format("{} {:.0f} % {}", first ? "" : ",", percent, kWhere[c]);
      first = false;
    }
    text += fmt::format(
        ". Half the host time would save {}, half the computation {}, half "
        "the communication {}.",
        SaidOf(saved[0], whole), SaidOf(saved[1], whole),
        SaidOf(saved[2], whole));
    if (Doubtful(verdict, busy_percent)) {
      text += fmt::format(
          " But the device worked for {:.0f} % of the time: the host may have "
          "waited for it where no record says so.",
          busy_percent);
    }
    text[0] = static_cast<char>(std::toupper(text[0]));
    std::replace(text.begin(),
                 text.begin() + static_cast<ptrdiff_t>(verdict.text.size()),
                 '_', ' ');
    result.notes.push_back(MakeNote(Severity::kVerdict, "path_verdict", text,
                                    {{"verdicts", "scope", "window", {}}}));
    if (graph_.counts().contains("stream_pairs_left_out")) {
      result.notes.push_back(MakeNote(
          Severity::kWarning, "path_streams",
          "A device has very many streams: where nothing is recorded of waits, "
          "only those that launch next to each other are taken for ones that "
          "may wait. Ranges of what-ifs may be too narrow."));
    }
    const auto inferred = graph_.counts().find("dependencies_inferred");
    if (inferred != graph_.counts().end()) {
      result.notes.push_back(MakeNote(
          Severity::kInfo, "inferred_waits",
          Counted(static_cast<uint64_t>(inferred->second), "wait") +
              " between streams had to be inferred from times; waits that "
              "delayed nothing stay unknown. What-ifs say the range that this "
              "leaves; --infer off leaves the waits out.",
          {{"path_edges", "kind", "dependency_inferred", {}}}));
    }
  }

  const Graph& graph_;
  const HostModel& model_;
  const Trace& trace_;
  const Window& window_;
  const PathSums& sums_;  // of the window's chain
  bool linked_ = true;    // at least 90 % of the device time has a launch
};

// "1.5ms" from the first event.
std::optional<int64_t> ParseTime(std::string_view text) {
  int64_t unit = 1000;
  for (const auto& [ending, ns] :
       {std::pair<std::string_view, int64_t>{"ms", 1000000},
        {"us", 1000},
        {"ns", 1},
        {"s", 1000000000}}) {
    if (!text.ends_with(ending)) continue;
    text.remove_suffix(ending.size());
    unit = ns;
    break;
  }
  const auto value = ParseDouble(text);
  if (!value || !(*value >= 0) || *value > 1e12) return std::nullopt;
  return static_cast<int64_t>(*value * static_cast<double>(unit));
}

}  // namespace

Result<Window> FindWindow(const Graph& graph, const std::string& text) {
  const Trace& trace = graph.model().trace();
  Window window;
  if (text.empty()) {
    window.start_ns = graph.start_ns();
    window.sink = graph.sink();
    return window;
  }
  window.name = text;
  const size_t dots = text.find("..");
  if (dots != std::string::npos) {
    const auto from = ParseTime(std::string_view(text).substr(0, dots));
    const auto to = ParseTime(std::string_view(text).substr(dots + 2));
    if (from && to && *from < *to) {
      window.start_ns = trace.first_ns + *from;
      window.sink = graph.SinkAt(trace.first_ns + *to);
      if (window.sink == kNoNode || graph.time(window.sink) <= window.start_ns)
        return Fail(UsageError(
            "--window: nothing is recorded in " + EscapeTerminal(text),
            "times count from the first event"));
      return window;
    }
  }
  // A step by its number, else the last range whose name contains the text.
  SliceId range;
  for (const tree::Step& step : graph.model().context().steps.steps()) {
    if (std::to_string(step.number) == text) range = step.slice;
  }
  for (uint32_t i = 0; !range.valid() && i < trace.slices.size(); ++i) {
    if (trace.slices.kind[i] != trace::Kind::kAnnotation) continue;
    const SliceId s(i);
    if (trace.Name(s).find(text) == std::string_view::npos) continue;
    for (uint32_t j = i; j < trace.slices.size(); ++j) {
      const SliceId other(j);
      if (trace.slices.kind[j] == trace::Kind::kAnnotation &&
          trace.Name(other).find(text) != std::string_view::npos)
        range = other;
    }
    break;
  }
  if (!range.valid()) {
    return Fail(UsageError(
        "--window: no step and no range is named '" + EscapeTerminal(text) +
            "'",
        "a step number, a part of a range's name, or A..B as in 1.5ms..2ms"));
  }
  window.name = trace.Name(range);
  window.start_ns = trace.Start(range);
  int64_t end = trace.End(range);
  for (const SliceId s : trace.device_slices()) {
    const uint32_t c = graph.model().call(s);
    if (c == host::kNone) continue;
    const int64_t call = trace.Start(graph.model().calls()[c].slice);
    if (call >= window.start_ns && call < trace.End(range))
      end = std::max(end, trace.End(s));
  }
  window.sink = graph.SinkAt(end);
  return window;
}

std::vector<int64_t> TotalSlack(const Graph& graph, uint32_t sink) {
  std::vector<int64_t> slack(graph.nodes(), kNever);
  slack[sink] = 0;
  const auto order = graph.order();
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t v = order[i];
    if (slack[v] == kNever) continue;
    const bool chain = graph.chain(v) != EdgeKind::kNone;
    if (graph.In(v).empty() && graph.pinned(v) == 0) {
      // Nothing but the chain leads to it, and that without slack.
      if (chain) slack[v - 1] = std::min(slack[v - 1], slack[v]);
      continue;
    }
    // The latest arrival that leaves the sink where it is.
    const bool pinned = (graph.pinned(v) & host::kBest) != 0;
    const int64_t latest =
        graph.time(v) - (pinned ? 0 : graph.residual(v)) + slack[v];
    if (chain)
      slack[v - 1] = std::min(slack[v - 1],
                              latest - graph.time(v - 1) - graph.chain_work(v));
    for (const uint32_t e : graph.In(v)) {
      const Edge& edge = graph.edges()[e];
      if (!edge.In(host::kBest)) continue;
      slack[edge.from] = std::min(
          slack[edge.from], latest - graph.time(edge.from) - edge.work_ns);
    }
  }
  return slack;
}

Table GraphTable(const Graph& graph) {
  Table table(GraphSchema());
  table.Add("nodes", graph.nodes());
  const auto kinds = graph.EdgeCounts();
  int64_t edges = 0;
  for (const auto& [kind, count] : kinds) edges += count;
  table.Add("edges", edges);
  for (const auto& [kind, count] : kinds) table.Add("edges: " + kind, count);
  std::map<std::string, int64_t> counts = graph.counts();
  for (uint32_t part = 0; part < graph.parts(); ++part) {
    for (const auto& [what, count] : graph.model(part).counts())
      counts[what] += count;
  }
  for (const auto& [what, count] : counts) table.Add(what, count);
  return table;
}

Table SummaryTable(const Graph& graph, const Window& window,
                   const PathSums& sums) {
  const int64_t length = graph.time(window.sink) - window.start_ns;
  std::array<size_t, kSegmentKinds> order{};
  for (size_t k = 0; k < kSegmentKinds; ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sums.kind[a] > sums.kind[b];
  });
  Table table(SummarySchema());
  for (const size_t k : order) {
    if (sums.segments[k] == 0) continue;
    const auto kind = static_cast<SegmentKind>(k);
    table.Add(PathClassName(ClassOf(kind)), SegmentKindName(kind), sums.kind[k],
              PercentOf(sums.kind[k], length), sums.segments[k],
              sums.inferred[k]);
  }
  return table;
}

std::vector<StepPath> StepPaths(const Graph& graph) {
  const HostModel& model = graph.model();
  const Trace& trace = model.trace();
  const tree::Steps& steps = model.context().steps;
  if (steps.steps().empty()) return {};
  std::vector<int64_t> ends;
  for (const tree::Step& step : steps.steps()) ends.push_back(step.host.end_ns);
  for (const SliceId s : trace.device_slices()) {
    const uint32_t step = steps.StepOf(s);
    if (step != tree::Steps::kOutside)
      ends[step] = std::max(ends[step], trace.End(s));
  }
  std::vector<int64_t> sorted = ends;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<uint32_t> sinks = graph.SinksAt(sorted);
  std::vector<StepPath> out;
  std::vector<uint32_t> sink_of;  // of each in `out`
  for (size_t i = 0; i < ends.size(); ++i) {
    const int64_t start = steps.steps()[i].host.start_ns;
    const uint32_t sink = sinks[static_cast<size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), ends[i]) -
        sorted.begin())];
    if (sink == kNoNode || graph.time(sink) <= start) continue;
    out.push_back({static_cast<uint32_t>(i), start, graph.time(sink), {}});
    sink_of.push_back(sink);
  }
  ParallelFor(model.context().settings.threads, out.size(), [&](size_t i) {
    out[i].sums = SumRecorded(graph, sink_of[i], out[i].start_ns);
  });
  return out;
}

std::vector<Schema> Schemas() {
  std::vector<Schema> schemas = {SummarySchema(), VerdictsSchema(),
                                 WhatIfSchema()};
  for (Schema& schema : ChainSchemas()) schemas.push_back(std::move(schema));
  return schemas;
}

ResultSet PathTables(const Graph& graph, const Window& window, PathSums& sums,
                     const TableOptions& options) {
  Tables tables(graph, window, sums);
  ResultSet result;
  std::vector<Segment> segments;
  if (options.segments || !options.cuts.empty())
    segments = RecordedPath(graph, window.sink, window.start_ns);
  // All that a table needs beside its own rows, and the large tables.
  std::array<Saved, kHalves> saved{};
  WorkTotals totals;
  ChainOwners owners;
  std::vector<Tables::Scope> scopes;
  std::optional<host::IdleEvidence> evidence;
  std::optional<Table> all, edges;
  const std::function<void()> tasks[] = {
      [&] { saved = SavedByHalves(graph, window.sink); },
      [&] { totals = TotalsOfWork(graph, window); },
      [&] {
        std::tie(owners, sums) = OwnersOfChain(graph, window);
        tables.FindLinked();
      },
      [&] {
        scopes = tables.Scopes(
            options,
            window.name.empty() ? StepPaths(graph) : std::vector<StepPath>(),
            segments);
        if (!options.evidence) return;
        std::vector<Interval> windows;
        windows.reserve(scopes.size());
        for (const Tables::Scope& s : scopes)
          windows.push_back({s.start_ns, s.end_ns});
        evidence = options.evidence(windows);
      },
      [&] {
        if (options.segments)
          all = SegmentsTable(graph, segments, options.layers);
      },
      [&] {
        if (options.segments) edges = EdgesTable(graph);
      }};
  ParallelFor(graph.model().context().settings.threads, std::size(tasks),
              [&](size_t i) { tasks[i](); });
  result.tables.push_back(tables.Verdicts(result, scopes, evidence, saved));
  result.tables.push_back(SummaryTable(graph, window, sums));
  result.tables.push_back(OwnersTable(graph, window, owners, totals));
  if (options.segments) {
    result.tables.push_back(std::move(*all));
    result.tables.push_back(std::move(*edges));
    result.tables.push_back(GraphTable(graph));
  }
  return result;
}

std::string SaidOf(const Saved& saved, int64_t window_ns) {
  std::string text = HumanTime(saved.best_ns);
  if (20 * (saved.high_ns - saved.low_ns) > window_ns) {
    text += fmt::format(" ({} to {})", HumanTime(saved.low_ns),
                        HumanTime(saved.high_ns));
  }
  return text;
}

namespace {

// The chain of a scenario, summed. Where it comes to a node of the recorded
// chain before anything changes, the rest is what was recorded.
PathSums SumOf(const Graph& graph, const Outcome& outcome, const Window& window,
               const PathSums& recorded) {
  const int64_t from = window.start_ns;
  const uint32_t meet =
      MeetBefore(graph, outcome, window.sink, outcome.first_change(), from);
  if (meet == kNoNode) return SumChain(graph, outcome, window.sink, from);
  PathSums sums = recorded;
  const PathSums then = SumChain(graph, outcome, window.sink, from, meet);
  const PathSums now =
      SumChain(graph, Recorded{graph}, window.sink, from, meet);
  for (size_t k = 0; k < kSegmentKinds; ++k) {
    sums.kind[k] += then.kind[k] - now.kind[k];
    sums.inferred[k] += then.inferred[k] - now.inferred[k];
    sums.segments[k] += then.segments[k] - now.segments[k];
  }
  return sums;
}

}  // namespace

// What of the graph leaves answers open: what most time hangs on.
WhatIfRows::Doubt WhatIfRows::DoubtOf(const Graph& graph) {
  Doubt doubt;
  const auto offer = [&](int64_t ns, const auto& text) {
    if (ns > doubt.ns) doubt = {ns, text()};
  };
  // Starts that come from outside, by stream; frames on the host.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<size_t, int64_t>> pins;
  size_t frames = 0;
  int64_t framed = 0;
  for (const Graph::Pin& pin : graph.pins()) {
    const uint32_t v = pin.node;
    if (!graph.OfDevice(v)) {
      ++frames;
      framed += graph.time(v) - graph.time(v - 1);
      continue;
    }
    const uint32_t part = graph.PartOf(v);
    auto& [count, ns] = pins[{part, graph.model(part).stream(graph.Work(v))}];
    ++count;
    ns += std::max(graph.residual(v), graph.residual(v, 1));
  }
  if (frames > 0) offer(framed, [] { return "the loader's own pace"; });
  for (const auto& [place, found] : pins) {
    offer(found.second, [&] {
      const int64_t stream =
          graph.model(place.first).trace().streams[place.second].stream;
      return Counted(found.first, "start") +
             (stream == trace::kNoInt ? ""
                                      : fmt::format(" on stream {}", stream)) +
             (found.first == 1 ? " waits" : " wait") +
             " for something outside, or for no record";
    });
  }
  size_t inferred = 0, calls = 0;
  int64_t waited = 0, blocked = 0;
  for (const Edge& edge : graph.edges()) {
    if (edge.readings == host::kAllReadings) continue;
    const int64_t ns = graph.time(edge.to) - graph.time(edge.from);
    if (graph.OfDevice(edge.to)) {
      ++inferred;
      waited += std::min<int64_t>(ns, host::kNearNs);
    } else if (graph.OfDevice(edge.from)) {
      ++calls;
      blocked += std::min<int64_t>(ns, host::kNearNs);
    }
  }
  if (inferred > 0) {
    offer(waited, [&] {
      return Counted(inferred, "wait") + " between streams " +
             (inferred == 1 ? "is" : "are") + " inferred";
    });
  }
  if (calls > 0) {
    offer(blocked, [&] {
      return Counted(calls, "end") +
             " of work for which a call may have waited";
    });
  }
  return doubt;
}

// The largest reason why an answer is a range.
std::string WhatIfRows::Reason(const Scenario& scenario) {
  if (!doubt_) doubt_ = DoubtOf(graph_);
  if (scenario.collectives.empty() && scenario.peers.empty())
    return doubt_->reason;
  int64_t waiting = 0;
  for (const auto& [v, stretch] : graph_.stretches())
    waiting += graph_.chain_work(v) - stretch.bound_ns;
  if (waiting < doubt_->ns) return doubt_->reason;
  return Counted(graph_.stretches().size(), "collective") +
         " of one rank: how long they wait for the others is not known";
}

WhatIfRows::WhatIfRows(const Graph& graph, const Window& window,
                       const PathSums& sums)
    : graph_(graph), window_(window), sums_(sums), table_(WhatIfSchema()) {}

void WhatIfRows::Add(const std::string& spec, const Scenario& scenario) {
  const int64_t length = graph_.time(window_.sink) - window_.start_ns;
  const Outcome outcome(graph_, scenario);
  ByReading by_reading = outcome.Ends(window_.sink);
  for (int64_t& ns : by_reading) ns = graph_.time(window_.sink) - ns;
  const Saved range = RangeOf(by_reading);
  const int64_t saved = range.best_ns;
  const PathSums then = SumOf(graph_, outcome, window_, sums_);
  const int64_t whole = then.total() - then.of(PathClass::kBeforeTrace);
  const std::string reason =
      range.low_ns < range.high_ns ? Reason(scenario) : std::string();
  table_.Add(spec, length, length - saved, saved, range.low_ns, range.high_ns,
             PercentOf(saved, length),
             range.low_ns < range.high_ns ? Value(reason) : Value(),
             outcome.touched(), VerdictOf(then).text,
             PercentOf(then.of(PathClass::kHost), whole),
             PercentOf(then.of(PathClass::kDevice), whole));
}

Result<Table> WhatIfTable(const Graph& graph, const Window& window,
                          const PathSums& sums,
                          const std::vector<std::string>& specs) {
  WhatIfRows rows(graph, window, sums);
  for (const std::string& spec : specs) {
    LAMINA_ASSIGN(const Scenario scenario, ParseScenario(graph, spec));
    rows.Add(spec, scenario);
  }
  return rows.Take();
}

}  // namespace lamina::analysis::path
