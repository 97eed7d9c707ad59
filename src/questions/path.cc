// SPDX-License-Identifier: Apache-2.0
//
// lamina path: the chain of last arrivals that the time of a run is made of,
// and what would change it.
#include <algorithm>
#include <fmt/core.h>

#include "analysis/host_tables/tables.h"
#include "analysis/path/tables.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "dist/job.h"
#include "emit/chrome/copy.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/find_traces.h"
#include "engine/report.h"
#include "questions/bodies.h"

namespace lamina::questions {
namespace {

namespace path = analysis::path;
using trace::SliceId;

// A process of its own, with a number that no profiler gives.
constexpr int64_t kProcess = 2000000100;
constexpr std::string_view kName = "lamina: critical path";

struct PathOptions {
  std::vector<std::string> traces;
  std::string window;
  std::string by = "step";
  std::vector<std::string> what_if;
  std::string overlay;
  std::string infer = "on";
  bool critical_only = false;
  bool no_sync_records = false;
};

std::string SpanName(const trace::Trace& trace, const path::Segment& s) {
  std::string name(path::SegmentKindName(s.kind));
  if (s.owner.valid()) name += ": " + std::string(trace.Name(s.owner));
  return name;
}

// Where an arrow of a segment begins or ends: the track of its owner.
const trace::Track* TrackOf(const trace::Trace& trace, const path::Segment& s) {
  return s.owner.valid() ? &trace.TrackOf(s.owner) : nullptr;
}

// Calls f(before, behind) where the chain goes from one track to another.
template <class F>
void ForArrows(const trace::Trace& trace,
               const std::vector<path::Segment>& segments, const F& f) {
  for (size_t i = 1; i < segments.size(); ++i) {
    const trace::Track* from = TrackOf(trace, segments[i - 1]);
    const trace::Track* to = TrackOf(trace, segments[i]);
    if (from != nullptr && to != nullptr && from != to)
      f(segments[i - 1], segments[i]);
  }
}

void AppendArrow(std::string& out, const trace::Trace& trace, char phase,
                 const trace::Track& track, int64_t id, int64_t time_ns) {
  const auto text = [&](StringId value) {
    const std::string_view raw = trace.Text(value);
    if (ParseInt(raw)) {
      out += raw;
    } else {
      AppendJsonQuoted(out, raw);
    }
  };
  out += "{\"ph\":\"";
  out += phase;
  out += "\",\"cat\":\"lamina_critical_path\",\"name\":\"critical path\",";
  if (phase == 'f') out += "\"bp\":\"e\",";
  out += "\"id\":" + std::to_string(id) + ",\"pid\":";
  text(track.pid);
  out += ",\"tid\":";
  text(track.tid);
  out += ",\"ts\":" + FormatMicroseconds(time_ns) + "},\n";
}

// The chain as records of Chrome JSON, each followed by a comma.
std::string Records(const trace::Trace& trace,
                    const std::vector<path::Segment>& segments) {
  std::string out;
  emit::AppendName(out, "process_name", kProcess, 0, kName);
  emit::AppendName(out, "thread_name", kProcess, 1, "critical path");
  for (const path::Segment& s : segments) {
    std::string args =
        "\"kind\":\"" + std::string(path::SegmentKindName(s.kind)) +
        "\",\"evidence\":\"" + (s.inferred ? "inferred" : "recorded") + "\"";
    if (s.owner.valid())
      args += ",\"uid\":" + std::to_string(trace.EventOf(s.owner));
    emit::AppendSpan(out, SpanName(trace, s), "lamina_critical_path", kProcess,
                     1, s.start_ns, s.end_ns - s.start_ns, args);
  }
  int64_t id = 0;
  for (const int64_t known : trace.flows.id) id = std::max(id, known);
  ForArrows(trace, segments,
            [&](const path::Segment& a, const path::Segment& b) {
              ++id;
              AppendArrow(out, trace, 's', *TrackOf(trace, a), id, a.start_ns);
              AppendArrow(out, trace, 'f', *TrackOf(trace, b), id, b.start_ns);
            });
  return out;
}

Status WriteOnly(const trace::Trace& trace, const std::string& output,
                 const std::vector<path::Segment>& segments) {
  std::string text = Records(trace, segments);
  // Without the last comma.
  const size_t comma = text.find_last_of(',');
  if (comma != std::string::npos) text.resize(comma);
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  sink->Write("{\"traceEvents\": [\n");
  sink->Write(text);
  sink->Write("\n]}\n");
  return sink->Close();
}

Status WriteOverlay(const PathOptions& options, const std::string& file,
                    const trace::Trace& trace,
                    const std::vector<path::Segment>& segments) {
  if (emit::perfetto::IsPerfettoName(options.overlay)) {
    emit::perfetto::Extras extras;
    for (const path::Segment& s : segments) {
      extras.spans.push_back({std::string(kName), "critical path",
                              SpanName(trace, s), s.start_ns,
                              s.end_ns - s.start_ns});
    }
    // What ends a call that waits began after it: there the arrow goes to the
    // segment.
    ForArrows(
        trace, segments, [&](const path::Segment& a, const path::Segment& b) {
          const bool in_order = trace.Start(a.owner) <= trace.Start(b.owner);
          extras.arrows.push_back(
              {a.owner, in_order ? b.owner : SliceId(),
               static_cast<uint32_t>(&b - segments.data())});
        });
    LAMINA_ASSIGN(const auto sink, CreateFileSink(options.overlay));
    emit::perfetto::WriteTrace(trace, extras, *sink);
    return sink->Close();
  }
  if (options.critical_only) return WriteOnly(trace, options.overlay, segments);
  LAMINA_TRY(CheckCopyable(trace, "⟨overlay⟩"));
  const auto& offsets = trace.slices.offset;
  if (offsets.empty()) return {};
  if (file == "-") {
    return Fail(UsageError("⟨overlay⟩ needs a file to copy",
                           "give the trace by its name, not as -"));
  }
  // In front of the last event: the others keep their numbers.
  emit::Addition addition;
  addition.offset = *std::max_element(offsets.begin(), offsets.end());
  addition.before = Records(trace, segments);
  LAMINA_ASSIGN(const auto source, OpenByteSource(file));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.overlay));
  LAMINA_TRY(emit::CopyWithAdditions(*source, *sink, {&addition, 1}));
  return sink->Close();
}

analysis::host::Options ModelOptions(const PathOptions& options) {
  analysis::host::Options out;
  out.sync_records = !options.no_sync_records;
  out.infer = options.infer == "on";
  out.any_host = !options.what_if.empty();  // fuse: asks for idle time
  return out;
}

path::TableOptions WantedTables(Asker& asker) {
  path::TableOptions tables;
  // What is made without the rows of every segment and edge.
  static constexpr std::string_view kShort[] = {
      "verdicts", "path_summary", "path_owners",
      "what_if",  "path_ranks",   "path_collectives"};
  tables.segments =
      asker.only.empty()
          ? !asker.for_screen()
          : std::any_of(asker.only.begin(), asker.only.end(),
                        [](const std::string& name) {
                          return std::find(std::begin(kShort), std::end(kShort),
                                           name) == std::end(kShort);
                        });
  return tables;
}

bool Names(Asker& asker, std::string_view table) {
  return std::find(asker.only.begin(), asker.only.end(), table) !=
         asker.only.end();
}

bool WantsSegments(Asker& asker) {
  return asker.only.empty() ? !asker.for_screen()
                            : Names(asker, "path_segments");
}

// Each layer from its first kernel to that of the next.
void CutAtLayers(const trace::Trace& trace,
                 const analysis::layers::LayerModel& found,
                 path::TableOptions& tables) {
  tables.cut_end_ns = INT64_MIN;
  for (const analysis::layers::Layer& layer : found.layers) {
    if (layer.work.empty()) continue;
    tables.cuts.push_back(
        {trace.Start(layer.work.front()),
         fmt::format("{} {} of pass {}", found.stacks[layer.stack].name,
                     layer.index, layer.pass)});
    for (const SliceId s : layer.work)
      tables.cut_end_ns = std::max(tables.cut_end_ns, trace.End(s));
  }
  std::stable_sort(tables.cuts.begin(), tables.cuts.end(),
                   [](const path::Cut& a, const path::Cut& b) {
                     return a.start_ns < b.start_ns;
                   });
}

Status ExplainTrace(const PathOptions& options, const std::string& file,
                    Asker& asker, ResultSet& result) {
  LAMINA_ASSIGN(auto session, asker.OpenTrace(file));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  settings.sync_records = !options.no_sync_records;
  settings.infer_waits = options.infer == "on";
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  LAMINA_ASSIGN(const path::Graph* const made, context->Get<path::Graph>());
  const path::Graph& graph = *made;
  const ScopedStage stage(&asker.times, "path");
  if (graph.sink() == path::kNoNode) {
    result.notes.push_back(
        MakeNote(Severity::kInfo, "nothing_recorded",
                 "The trace has no ops, calls or device work: there is no "
                 "path."));
    return {};
  }
  LAMINA_ASSIGN(const path::Window window,
                path::FindWindow(graph, options.window));
  path::PathSums sums;
  path::TableOptions tables = WantedTables(asker);
  const bool by_layer = options.by == "layer";
  analysis::host::WorkLayers layers;
  if (by_layer || WantsSegments(asker)) {
    LAMINA_ASSIGN(const auto* const found,
                  context->Get<analysis::layers::LayerModel>());
    if (by_layer) CutAtLayers(session->trace(), *found, tables);
    layers = analysis::host_tables::LayersOfWork(session->trace(), *found);
    tables.layers = &layers;
  }
  tables.evidence = [&](std::span<const Interval> windows) {
    return analysis::host::IdleEvidence::Of(graph.model(), windows);
  };
  result = path::PathTables(graph, window, sums, tables);
  if (by_layer && tables.cuts.empty()) {
    result.notes.push_back(
        MakeNote(Severity::kWarning, "no_layers",
                 "No layers were found: ⟨by⟩ layer has nothing to cut at. "
                 "⟨layers()⟩ says what was looked for."));
  }
  if (!options.what_if.empty()) {
    const ScopedStage what_if(&asker.times, "what-if");
    LAMINA_ASSIGN(auto table,
                  path::WhatIfTable(graph, window, sums, options.what_if));
    result.tables.push_back(std::move(table));
  }
  if (!options.overlay.empty()) {
    LAMINA_TRY(
        WriteOverlay(options, file, session->trace(),
                     path::RecordedPath(graph, window.sink, window.start_ns)));
  }
  return {};
}

Status ExplainRanks(const PathOptions& options,
                    const std::vector<std::string>& files, Asker& asker,
                    ResultSet& result) {
  if (options.by == "layer") {
    return Fail(UsageError("⟨by⟩ layer cuts the path of one trace",
                           "give one trace, or leave ⟨by⟩ out"));
  }
  if (!options.overlay.empty()) {
    return Fail(UsageError("⟨overlay⟩ draws the path into one trace",
                           "give one trace, or leave ⟨overlay⟩ out"));
  }
  LAMINA_ASSIGN(
      const dist::PathRanks ranks,
      dist::PathRanks::Open(files, asker.Open(), ModelOptions(options),
                            WantsSegments(asker)));
  const ScopedStage stage(&asker.times, "path");
  const path::JoinedView view = ranks.View();
  LAMINA_ASSIGN(const path::Window window,
                path::FindJoinedWindow(view, options.window));
  const auto segments =
      path::RecordedPath(view.graph, window.sink, window.start_ns);
  result = path::JoinedTables(view, window, segments, WantedTables(asker));
  if (!options.what_if.empty()) {
    LAMINA_ASSIGN(auto table, path::JoinedWhatIfTable(view, window, segments,
                                                      options.what_if));
    result.tables.push_back(std::move(table));
  }
  return {};
}

// What is said of the chain holds for each of its tables, and --only leaves the
// notes of the tables that stay.
void CiteAll(ResultSet& result) {
  for (Note& note : result.notes) {
    for (const Table& table : result.tables) {
      if (std::none_of(
              note.evidence.begin(), note.evidence.end(),
              [&](const Evidence& e) { return e.table == table.name(); }))
        note.evidence.push_back({table.name(), "", "", {}});
    }
  }
}

Result<Answer> RunPath(const PathOptions& options, Asker& asker) {
  std::vector<std::string> files = options.traces;
  if (files != std::vector<std::string>{"-"}) {
    LAMINA_ASSIGN(files, engine::FindTraces(files));
  }
  LAMINA_TRY(KeepInputs("⟨overlay⟩", options.overlay, files));
  std::vector<std::string> names = {"path_graph"};
  for (const Schema& schema : path::Schemas()) names.push_back(schema.name);
  if (files.size() > 1) {
    names.insert(names.end(), {"path_ranks", "path_collectives"});
  }
  LAMINA_TRY(engine::CheckOnly(asker.only, names));
  Document document;
  document.command = "path";
  document.inputs = files;
  document.inputs.insert(document.inputs.end(), asker.captures.begin(),
                         asker.captures.end());
  if (files.size() == 1) {
    LAMINA_TRY(ExplainTrace(options, files[0], asker, document.result));
  } else {
    LAMINA_TRY(ExplainRanks(options, files, asker, document.result));
  }
  CiteAll(document.result);
  return Answer(std::move(document));
}

}  // namespace

Body DescribePath(Description& args, Asker& asker) {
  auto options = std::make_shared<PathOptions>();
  args.Add("traces", options->traces,
           "Trace file; or those of several ranks, or a folder or pattern of "
           "them: the path then runs through all ranks, joined where they "
           "communicate")
      .Required();
  args.Add("--window", options->window,
           "A step, a range whose name contains this text, or A..B from "
           "the first event (1.5ms..2ms); else the whole trace");
  args.Add("--by", options->by,
           "What gets a verdict of its own beside the window")
      .OneOf({"step", "layer"})
      .ShowDefault();
  args.Add("--what-if", options->what_if,
           "Predict the end if: scale:kernel~RE:F, scale:op~RE:F, "
           "scale:host~RE:F, scale:class=NAME:F, bandwidth:copy=GBPS, "
           "bandwidth:comm=GBPS, drop:sync[~RE], graph:step=N, "
           "graph:run=STREAM/RUN, fuse:SEQUENCE, zero:launch or zero:gaps; may "
           "be repeated");
  args.Add("--overlay", options->overlay,
           "Write the trace with the path as a track to this file "
           "(.json, .pftrace, each also with .gz)");
  args.Flag("--critical-only", options->critical_only,
            "⟨overlay⟩ writes the path alone, without the trace");
  args.Flag("--no-sync-records", options->no_sync_records,
            "Take no notice of what the profiler recorded of waits");
  args.Add("--infer", options->infer,
           "Whether waits that are not recorded are inferred from times")
      .OneOf({"on", "off"})
      .ShowDefault();
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args);
  return [options, &asker] { return RunPath(*options, asker); };
}

}  // namespace lamina::questions
