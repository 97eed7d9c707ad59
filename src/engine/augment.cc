// SPDX-License-Identifier: Apache-2.0
#include "engine/augment.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>

#include "base/escape.h"
#include "emit/chrome/copy.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/replay_spans.h"

namespace lamina::engine {
namespace {

using cudagraph::Annotation;
using cudagraph::Match;
using cudagraph::Replay;
using cudagraph::Tags;
using trace::SliceId;

// A process of its own for each device, with a number that no profiler gives.
constexpr int64_t kProcess = 2000001000;
// Kineto's place of a device among the processes, when the trace has none.
constexpr int64_t kDeviceSort = 5000000;

void AppendMember(std::string& out, std::string_view key,
                  std::string_view value, bool quoted) {
  if (value.empty()) return;
  if (!out.empty()) out += ',';
  AppendJsonQuoted(out, key);
  out += ':';
  if (quoted) {
    AppendJsonQuoted(out, value);
  } else {
    out += value;
  }
}

// A list of texts as JSON.
std::string ListOf(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    AppendJsonQuoted(out, text);
  }
  return out + "]";
}

class Augmenter {
 public:
  Augmenter(const trace::Trace& trace, const Annotation& annotation,
            const AugmentLevels& levels)
      : trace_(trace),
        annotation_(annotation),
        levels_(levels),
        spans_(trace, annotation, {levels.op, levels.module}),
        texts_(annotation.alignments.size()) {
    FindKernels();
    FindLaunches();
    std::stable_sort(
        places_.begin(), places_.end(),
        [](const Place& a, const Place& b) { return a.offset < b.offset; });
    if (places_.empty()) return;
    // The tracks are named before the first event that is added to.
    heading_ = Heading();
  }

  Result<emit::CopyLoss> Copy(const std::string& input,
                              const std::string& output) {
    std::vector<uint64_t> offsets;
    offsets.reserve(places_.size());
    for (const Place& place : places_) offsets.push_back(place.offset);
    return emit::CopyFile(
        input, output, offsets, [&](size_t i, emit::Addition& addition) {
          if (i == 0) addition.before = heading_;
          const Place& place = places_[i];
          if (place.position == kLaunch) {
            Flow(annotation_.replays[place.replay].launch, addition.before);
          } else {
            Spans(place, addition.before);
            addition.args = Arguments(place);
          }
        });
  }

  // The same for a trace that is written anew.
  emit::perfetto::Extras Extras() const {
    emit::perfetto::Extras extras;
    for (const Place& place : places_) {
      if (place.position == kLaunch) continue;
      const uint32_t stream = spans_.work()[place.index].stream;
      for (const ReplaySpans::Span& span : spans_.StartingAt(place.index)) {
        extras.spans.push_back({GroupName(stream),
                                TrackName(span.track, stream),
                                std::string(span.name), span.start_ns,
                                span.end_ns - span.start_ns});
      }
      const Replay& replay = annotation_.replays[place.replay];
      ForEachArgument(
          replay, place.position,
          [&](std::string_view key, std::string_view value, bool) {
            if (value.empty()) return;
            extras.args.push_back({replay.work[place.position],
                                   std::string(key), std::string(value)});
          });
    }
    std::stable_sort(extras.args.begin(), extras.args.end(),
                     [](const auto& a, const auto& b) {
                       return a.slice.value < b.slice.value;
                     });
    return extras;
  }

 private:
  static constexpr uint32_t kLaunch = UINT32_MAX;
  // A record that something is added to: a kernel of a replay or its launch.
  struct Place {
    uint64_t offset;
    uint32_t replay;
    uint32_t position;  // in Replay::work; kLaunch
    uint32_t index;     // of ReplaySpans::work(); kLaunch
  };

  void FindKernels() {
    const auto& work = spans_.work();
    for (uint32_t i = 0; i < work.size(); ++i) {
      places_.push_back({trace_.slices.offset[spans_.SliceOf(work[i]).value],
                         work[i].replay, work[i].position, i});
    }
  }

  // Launches whose device work has the end of a flow, but none begins there.
  void FindLaunches() {
    absl::flat_hash_set<int64_t> starts;
    absl::flat_hash_set<int64_t> ends;
    const trace::Flows& flows = trace_.flows;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (flows.kind[f] != trace::FlowKind::kLaunch) continue;
      (flows.phase[f] == trace::FlowPhase::kStart ? starts : ends)
          .insert(flows.id[f]);
    }
    for (uint32_t r = 0; r < annotation_.replays.size(); ++r) {
      const SliceId launch = annotation_.replays[r].launch;
      const trace::ApiArgs* api = trace_.Api(launch);
      if (api == nullptr || !ends.contains(api->correlation) ||
          starts.contains(api->correlation))
        continue;
      places_.push_back(
          {trace_.slices.offset[launch.value], r, kLaunch, kLaunch});
    }
  }

  void Flow(SliceId launch, std::string& out) const {
    const trace::Track& track = trace_.TrackOf(launch);
    emit::AppendFlowStart(out, trace_.Api(launch)->correlation,
                          trace_.Text(track.pid), trace_.Text(track.tid),
                          trace_.Start(launch));
  }

  int64_t ProcessOf(uint32_t stream) const {
    const int64_t device = stream < trace_.streams.size()
                               ? trace_.streams[stream].device
                               : trace::kNoInt;
    return kProcess + (device >= 0 && device < 1000 ? device : 999);
  }
  std::string GroupName(uint32_t stream) const {
    return "lamina: replayed graphs, device " +
           std::to_string(ProcessOf(stream) - kProcess);
  }
  std::string OfStream(uint32_t stream) const {
    if (stream >= trace_.streams.size() ||
        trace_.streams[stream].stream == trace::kNoInt)
      return "";
    return " of stream " + std::to_string(trace_.streams[stream].stream);
  }
  std::string TrackName(ReplaySpans::Track track, uint32_t stream) const {
    return (track == ReplaySpans::Track::kOps ? "ops" : "modules") +
           OfStream(stream);
  }
  static int64_t TrackNumber(ReplaySpans::Track track, uint32_t stream) {
    return 2 * stream + (track == ReplaySpans::Track::kOps ? 2 : 1);
  }

  std::string Heading() const {
    std::string out;
    uint32_t last = UINT32_MAX;
    for (const ReplaySpans::Work& work : spans_.work()) {
      if (work.stream == last) continue;
      last = work.stream;
      const int64_t process = ProcessOf(last);
      const trace::Track& device = trace_.TrackOf(spans_.SliceOf(work));
      emit::AppendName(out, "process_name", process, 0, GroupName(last));
      emit::AppendSortIndex(out, process,
                            device.process_sort.value_or(kDeviceSort) - 1);
      for (const auto track :
           {ReplaySpans::Track::kModules, ReplaySpans::Track::kOps}) {
        emit::AppendName(out, "thread_name", process, TrackNumber(track, last),
                         TrackName(track, last));
      }
    }
    return out;
  }

  // As records of a Chrome trace.
  void Spans(const Place& place, std::string& out) const {
    const uint32_t stream = spans_.work()[place.index].stream;
    for (const ReplaySpans::Span& span : spans_.StartingAt(place.index)) {
      std::string args;
      AppendMember(args, "lamina_op_path", span.op_path, true);
      emit::AppendSpan(out, span.name, "lamina", ProcessOf(stream),
                       TrackNumber(span.track, stream), span.start_ns,
                       span.end_ns - span.start_ns, args);
    }
  }

  // Replays with the same kernels have the same texts; they are kept.
  const std::string& Arguments(const Place& place) {
    const Replay& replay = annotation_.replays[place.replay];
    auto& texts = texts_[replay.alignment];
    if (texts.empty()) texts.resize(replay.work.size());
    std::string& text = texts[place.position];
    if (text.empty()) text = MakeArguments(replay, place.position);
    return text;
  }

  std::string MakeArguments(const Replay& replay, size_t position) const {
    std::string out;
    ForEachArgument(
        replay, position,
        [&](std::string_view key, std::string_view value, bool quoted) {
          AppendMember(out, key, value, quoted);
        });
    return out;
  }

  // `add(key, value, quoted)` for what is known of a kernel; an empty value is
  // none.
  template <class F>
  void ForEachArgument(const Replay& replay, size_t position, F add) const {
    const Match& match = annotation_.MatchesOf(replay)[position];
    const Tags tags = annotation_.TagsOf(replay, position);
    const bool ranges = levels_.range && !tags.ranges.empty();
    if (ranges || levels_.line)
      add("source_lines", ranges ? tags.ranges : tags.line, true);
    if (levels_.op) {
      add("lamina_op", tags.op, true);
      add("lamina_op_path", tags.op_path, true);
      add("lamina_input_dims", tags.dims, false);
      add("lamina_input_type", tags.types, false);
    }
    if (levels_.module) {
      add("lamina_module", tags.module, true);
      if (tags.layer >= 0)
        add("lamina_layer", std::to_string(tags.layer), false);
    }
    add("lamina_evidence", cudagraph::LevelName(match.level), true);
    add("lamina_confidence",
        cudagraph::ConfidenceName(cudagraph::ConfidenceOf(match.level)), true);
    if (match.level == cudagraph::Level::kAmbiguous) {
      add("lamina_alternatives",
          ListOf(annotation_.OpsByName(trace_, replay.work[position])), false);
    } else if (match.alternatives > 1) {
      add("lamina_alternatives", std::to_string(match.alternatives), false);
    }
    if (match.partner != Match::kNoPartner &&
        match.level != cudagraph::Level::kExactId) {
      const auto& segment =
          annotation_.segments[static_cast<size_t>(replay.segment)];
      add("lamina_source",
          "[" + std::to_string(segment.file) + "," +
              std::to_string(segment.number) + "," +
              std::to_string(match.partner) + "]",
          false);
    }
  }

  const trace::Trace& trace_;
  const Annotation& annotation_;
  AugmentLevels levels_;
  ReplaySpans spans_;
  std::vector<Place> places_;
  std::string heading_;
  std::vector<std::vector<std::string>> texts_;  // by alignment and position
};

}  // namespace

Result<emit::CopyLoss> WriteAugmented(const std::string& input,
                                      const std::string& output,
                                      const trace::Trace& trace,
                                      const Annotation& annotation,
                                      const AugmentLevels& levels) {
  Augmenter augmenter(trace, annotation, levels);
  if (!emit::perfetto::IsPerfettoName(output))
    return augmenter.Copy(input, output);
  emit::perfetto::Extras extras = augmenter.Extras();
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  emit::perfetto::WriteTrace(trace, extras, *sink);
  LAMINA_TRY(sink->Close());
  return emit::CopyLoss();
}

Result<emit::CopyLoss> WriteSourceLines(
    const std::string& input, const std::string& output,
    const trace::Trace& trace, const Annotation& annotation,
    const std::function<std::string(SliceId)>& tags_of) {
  std::vector<std::pair<uint64_t, SliceId>> places;
  for (const Replay& replay : annotation.replays) {
    for (const SliceId s : replay.work)
      places.emplace_back(trace.slices.offset[s.value], s);
  }
  std::sort(places.begin(), places.end());
  std::vector<uint64_t> offsets;
  for (const auto& [offset, s] : places) offsets.push_back(offset);
  return emit::CopyFile(input, output, offsets,
                        [&](size_t i, emit::Addition& addition) {
                          AppendMember(addition.args, "source_lines",
                                       tags_of(places[i].second), true);
                        });
}

Result<emit::CopyLoss> WriteCompiled(const std::string& input,
                                     const std::string& output,
                                     const trace::Trace& trace,
                                     const analysis::CompiledWork& compiled) {
  std::vector<std::pair<uint64_t, SliceId>> places;
  for (const SliceId s : trace.device_slices()) {
    if (compiled.uses.contains(s))
      places.emplace_back(trace.slices.offset[s.value], s);
  }
  std::sort(places.begin(), places.end());
  std::vector<uint64_t> offsets;
  for (const auto& [offset, s] : places) offsets.push_back(offset);
  return emit::CopyFile(
      input, output, offsets, [&](size_t i, emit::Addition& addition) {
        const auto use = compiled.uses.find(places[i].second);
        const auto& kernel = compiled.kernels[use->second.kernel];
        AppendMember(addition.args, "lamina_ops", kernel.ops, true);
        AppendMember(addition.args, "lamina_lines", kernel.lines, true);
        AppendMember(addition.args, "lamina_nodes", kernel.nodes, true);
        AppendMember(addition.args, "lamina_join",
                     analysis::Name(use->second.join), true);
      });
}

}  // namespace lamina::engine
