// SPDX-License-Identifier: Apache-2.0
#include "engine/augment.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>

#include "base/escape.h"
#include "emit/chrome/copy.h"
#include "emit/perfetto/trace_writer.h"

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

// "A/B/C" up to its d-th separator, all of it when there are fewer.
std::string_view Prefix(std::string_view path, size_t d) {
  size_t end = 0;
  for (size_t i = 0; i <= d; ++i) {
    end = path.find('/', end == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return path;
  }
  return path.substr(0, end);
}
size_t Depth(std::string_view path) {
  return path.empty() ? 0
                      : 1 + static_cast<size_t>(
                                std::count(path.begin(), path.end(), '/'));
}

class Augmenter {
 public:
  Augmenter(const trace::Trace& trace, const Annotation& annotation,
            const AugmentLevels& levels)
      : trace_(trace),
        annotation_(annotation),
        levels_(levels),
        texts_(annotation.alignments.size()) {
    FindWork();
    FindLaunches();
    std::stable_sort(
        places_.begin(), places_.end(),
        [](const Place& a, const Place& b) { return a.offset < b.offset; });
    if (places_.empty()) return;
    // The tracks are named before the first event that is added to.
    heading_ = Heading();
  }

  Status Copy(const std::string& input, const std::string& output) {
    LAMINA_ASSIGN(const auto source, OpenByteSource(input));
    LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
    std::vector<uint64_t> offsets;
    offsets.reserve(places_.size());
    for (const Place& place : places_) offsets.push_back(place.offset);
    LAMINA_TRY(emit::CopyWithAdditions(
        *source, *sink, offsets, [&](size_t i, emit::Addition& addition) {
          if (i == 0) addition.before = heading_;
          const Place& place = places_[i];
          if (place.position == kLaunch) {
            Flow(annotation_.replays[place.replay].launch, addition.before);
          } else {
            Spans(place, addition.before);
            addition.args = Arguments(place);
          }
        }));
    return sink->Close();
  }

  // The same for a trace that is written anew.
  emit::perfetto::Extras Extras() const {
    emit::perfetto::Extras extras;
    for (const Place& place : places_) {
      if (place.position == kLaunch) continue;
      ForEachSpan(place, [&](TrackOf track, uint32_t stream,
                             std::string_view name, int64_t start, int64_t end,
                             std::string_view) {
        extras.spans.push_back(
            {GroupName(stream),
             (track == TrackOf::kOps ? "ops" : "modules") + OfStream(stream),
             std::string(name), start, end - start});
      });
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
  enum class TrackOf : uint8_t { kOps, kModules };
  // A record that something is added to: a kernel of a replay or its launch.
  struct Place {
    uint64_t offset;
    uint32_t replay;
    uint32_t position;  // in Replay::work; kLaunch
    uint32_t index;     // of work_
  };
  // The kernels of all replays in the order of their streams.
  struct Work {
    uint32_t replay;
    uint32_t position;
    uint32_t stream;
  };

  SliceId SliceOf(const Work& work) const {
    return annotation_.replays[work.replay].work[work.position];
  }

  void FindWork() {
    for (uint32_t r = 0; r < annotation_.replays.size(); ++r) {
      const Replay& replay = annotation_.replays[r];
      for (uint32_t i = 0; i < replay.work.size(); ++i) {
        const trace::DeviceArgs* args = trace_.Device(replay.work[i]);
        work_.push_back({r, i, args != nullptr ? args->lane.value : 0});
      }
    }
    std::stable_sort(
        work_.begin(), work_.end(), [&](const Work& a, const Work& b) {
          if (a.stream != b.stream) return a.stream < b.stream;
          return trace_.Start(SliceOf(a)) < trace_.Start(SliceOf(b));
        });
    for (uint32_t i = 0; i < work_.size(); ++i) {
      places_.push_back({trace_.slices.offset[SliceOf(work_[i]).value],
                         work_[i].replay, work_[i].position, i});
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

  const Tags* TagsOf(const Work& work) const {
    return annotation_.PartnerOf(annotation_.replays[work.replay],
                                 work.position);
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
  static int64_t ModuleTrack(uint32_t stream) { return 2 * stream + 1; }
  static int64_t OpTrack(uint32_t stream) { return 2 * stream + 2; }

  std::string Heading() const {
    std::string out;
    uint32_t last = UINT32_MAX;
    for (const Work& work : work_) {
      if (work.stream == last) continue;
      last = work.stream;
      const int64_t process = ProcessOf(last);
      const trace::Track& device = trace_.TrackOf(SliceOf(work));
      const std::string stream = OfStream(last);
      emit::AppendName(out, "process_name", process, 0, GroupName(last));
      emit::AppendSortIndex(out, process,
                            device.process_sort.value_or(kDeviceSort) - 1);
      emit::AppendName(out, "thread_name", process, ModuleTrack(last),
                       "modules" + stream);
      emit::AppendName(out, "thread_name", process, OpTrack(last),
                       "ops" + stream);
    }
    return out;
  }

  // The end of a run of kernels from `index` on, not behind the next kernel.
  template <class F>
  int64_t RunEnd(uint32_t index, F same) const {
    int64_t end = 0;
    uint32_t i = index;
    do {
      end = std::max(end, trace_.End(SliceOf(work_[i])));
      ++i;
    } while (i < work_.size() && work_[i].stream == work_[index].stream &&
             work_[i].replay == work_[index].replay && same(work_[i]));
    if (i < work_.size() && work_[i].stream == work_[index].stream)
      end = std::min(end, trace_.Start(SliceOf(work_[i])));
    return end;
  }

  // The spans of op and modules that begin with this kernel:
  // `add(track, stream, name, start_ns, end_ns, op_path)`.
  template <class F>
  void ForEachSpan(const Place& place, F add) const {
    const Work& work = work_[place.index];
    const Tags* tags = TagsOf(work);
    if (tags == nullptr) return;
    const Tags* before = nullptr;
    if (place.index > 0 && work_[place.index - 1].stream == work.stream &&
        work_[place.index - 1].replay == work.replay)
      before = TagsOf(work_[place.index - 1]);
    const int64_t start = trace_.Start(SliceOf(work));
    const auto span = [&](TrackOf track, std::string_view name, int64_t end,
                          std::string_view op_path) {
      if (end > start) add(track, work.stream, name, start, end, op_path);
    };
    if (levels_.op && !tags->op.empty() &&
        (before == nullptr || before->op_uid != tags->op_uid ||
         before->op != tags->op)) {
      const int64_t end = RunEnd(place.index, [&](const Work& other) {
        const Tags* its = TagsOf(other);
        return its != nullptr && its->op_uid == tags->op_uid &&
               its->op == tags->op;
      });
      span(TrackOf::kOps, tags->op, end, tags->op_path);
    }
    if (!levels_.module) return;
    const std::string_view path = tags->module;
    for (size_t d = 0; d < Depth(path); ++d) {
      const std::string_view prefix = Prefix(path, d);
      const auto within = [&](const Tags* its) {
        return its != nullptr && Depth(its->module) > d &&
               Prefix(its->module, d) == prefix;
      };
      if (within(before)) continue;
      const int64_t end = RunEnd(place.index, [&](const Work& other) {
        return within(TagsOf(other));
      });
      const size_t slash = prefix.rfind('/');
      span(TrackOf::kModules,
           slash == std::string_view::npos ? prefix : prefix.substr(slash + 1),
           end, {});
    }
  }

  // The same as records of a Chrome trace.
  void Spans(const Place& place, std::string& out) const {
    ForEachSpan(
        place, [&](TrackOf track, uint32_t stream, std::string_view name,
                   int64_t start, int64_t end, std::string_view op_path) {
          std::string args;
          AppendMember(args, "lamina_op_path", op_path, true);
          emit::AppendSpan(
              out, name, "lamina", ProcessOf(stream),
              track == TrackOf::kOps ? OpTrack(stream) : ModuleTrack(stream),
              start, end - start, args);
        });
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
    add("lamina_confidence", cudagraph::ConfidenceOf(match.level), true);
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
  std::vector<Work> work_;
  std::vector<Place> places_;
  std::string heading_;
  std::vector<std::vector<std::string>> texts_;  // by alignment and position
};

}  // namespace

Status WriteAugmented(const std::string& input, const std::string& output,
                      const trace::Trace& trace, const Annotation& annotation,
                      const AugmentLevels& levels) {
  Augmenter augmenter(trace, annotation, levels);
  if (!emit::perfetto::IsPerfettoName(output))
    return augmenter.Copy(input, output);
  emit::perfetto::Extras extras = augmenter.Extras();
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  emit::perfetto::WriteTrace(trace, extras, *sink);
  return sink->Close();
}

Status WriteSourceLines(const std::string& input, const std::string& output,
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
  LAMINA_ASSIGN(const auto source, OpenByteSource(input));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  LAMINA_TRY(emit::CopyWithAdditions(
      *source, *sink, offsets, [&](size_t i, emit::Addition& addition) {
        AppendMember(addition.args, "source_lines", tags_of(places[i].second),
                     true);
      }));
  return sink->Close();
}

}  // namespace lamina::engine
