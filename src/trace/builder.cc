// SPDX-License-Identifier: Apache-2.0
//
// Segments of readers, joined into one trace: ids given in the order of events,
// begins and ends paired, tracks named, rows sorted. n log(runs) in events.

#include "trace/builder.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "trace/categories.h"
#include "trace/repair_times.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

// Begin and end events as slices.
//
// Those of a track pair like brackets. Where the events of a track stand in
// the order of time, that of the file decides at one instant. Elsewhere (all
// begins of a group before all ends) they are sorted, and an instant first
// closes what was open before it, then opens, then closes the rest:
// back-to-back spans stay apart, empty ones stay empty.

// Adds a slice for every pair; counts what has no partner. Ids are those of
// the trace.
void PairHalves(PodVector<HalfSlice> halves, Trace& trace);

// Metadata events as names and places of tracks.

// `facts` in the order of the file; their ids are those of the trace.
void ApplyFacts(std::span<const TrackFact> facts, Trace& trace);

namespace {

// Rows of halves: a half is too large to be moved around.
using Rows = std::span<uint32_t>;

// Sorts what stands at one instant of a track: ends of spans that are open,
// begins, the other ends.
class InstantSorter {
 public:
  explicit InstantSorter(std::span<const HalfSlice> halves) : halves_(halves) {}

  void Sort(Rows track) {
    open_ = 0;
    for (size_t begin = 0; begin < track.size();) {
      const int64_t time_ns = halves_[track[begin]].time_ns;
      size_t end = begin + 1;
      while (end < track.size() && halves_[track[end]].time_ns == time_ns)
        ++end;
      SortInstant(track.subspan(begin, end - begin));
      begin = end;
    }
  }

 private:
  void SortInstant(Rows instant) {
    rows_.assign(instant.begin(), instant.end());
    const auto ends = static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(),
                      [&](uint32_t row) { return !halves_[row].begin; }));
    const size_t closing = std::min(open_, ends);
    const size_t begins = rows_.size() - ends;
    // Places of the next half of each group.
    size_t closed = 0;
    size_t begun = closing;
    size_t other = closing + begins;
    for (const uint32_t row : rows_) {
      size_t& at = halves_[row].begin ? begun
                   : closed < closing ? closed
                                      : other;
      instant[at++] = row;
    }
    open_ = open_ - closing + begins;
    open_ -= std::min(open_, ends - closing);
  }

  std::span<const HalfSlice> halves_;
  size_t open_ = 0;  // spans before the instant
  std::vector<uint32_t> rows_;
};

void AddSlice(const HalfSlice& begin, int64_t end_ns, Trace& trace) {
  if (end_ns - begin.time_ns > kMaxDurationNs) {
    trace.diagnostics.Add(Effect::kLost, "duration_out_of_range",
                          "The duration of an event is no number, or longer "
                          "than 7 days.",
                          begin.offset);
    return;
  }
  trace.slices.push_back({.start_ns = begin.time_ns,
                          .dur_ns = end_ns - begin.time_ns,
                          .name = begin.name,
                          .kind = begin.kind,
                          .category = begin.category,
                          .track = begin.track,
                          .uid = begin.uid,
                          .offset = begin.offset,
                          .detail = begin.detail});
}

// The begin that an end closes: the innermost of its name, since some recorders
// let spans of a track cross, else the innermost. Deeper ones are not searched.
std::vector<uint32_t>::iterator BeginOf(const HalfSlice& end,
                                        std::span<const HalfSlice> halves,
                                        std::vector<uint32_t>& open) {
  constexpr ptrdiff_t kDeepest = 256;
  const auto top = open.end() - 1;
  const auto last =
      top - open.begin() > kDeepest ? top - kDeepest : open.begin();
  for (auto it = top;; --it) {
    if (halves[*it].name == end.name) return it;
    if (it == last) return top;
  }
}

void PairTrack(std::span<const HalfSlice> halves, Rows track, Trace& trace) {
  std::vector<uint32_t> open;
  for (const uint32_t row : track) {
    const HalfSlice& half = halves[row];
    if (half.begin) {
      open.push_back(row);
    } else if (open.empty()) {
      trace.diagnostics.Add(Effect::kLost, "end_without_begin",
                            "An end event (ph E) has no begin event.",
                            half.offset);
    } else {
      const auto begin = BeginOf(half, halves, open);
      AddSlice(halves[*begin], half.time_ns, trace);
      open.erase(begin);
    }
  }
  for (const uint32_t row : open) {
    trace.diagnostics.Add(
        Effect::kRepaired, "begin_without_end",
        "A begin event (ph B) has no end event; it is taken to last to the "
        "last event of its track.",
        halves[row].offset);
    AddSlice(halves[row], halves[track.back()].time_ns, trace);
  }
}

// Room for a slice per begin.
void Reserve(const PodVector<HalfSlice>& halves, Slices& slices) {
  size_t count = slices.size();
  for (const HalfSlice& half : halves) count += half.begin;
  slices.reserve(count);
}

// Track by track, in the order of the input.
std::vector<uint32_t> ByTrack(std::span<const HalfSlice> halves,
                              size_t tracks) {
  std::vector<size_t> next(tracks + 1);  // place of a track's next one
  for (const HalfSlice& half : halves) ++next[half.track.value + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<uint32_t> rows(halves.size());
  for (uint32_t i = 0; i < halves.size(); ++i)
    rows[next[halves[i].track.value]++] = i;
  return rows;
}

}  // namespace

void PairHalves(PodVector<HalfSlice> half_slices, Trace& trace) {
  Reserve(half_slices, trace.slices);
  const std::span<const HalfSlice> halves = half_slices.span();
  std::vector<uint32_t> rows = ByTrack(halves, trace.tracks.size());
  const auto earlier = [&](uint32_t a, uint32_t b) {
    return halves[a].time_ns < halves[b].time_ns;
  };
  InstantSorter instants(halves);
  for (auto begin = rows.begin(); begin != rows.end();) {
    const TrackId on = halves[*begin].track;
    const auto end = std::find_if(begin, rows.end(), [&](uint32_t row) {
      return halves[row].track != on;
    });
    const Rows track(begin, end);
    if (!std::is_sorted(begin, end, earlier)) {
      std::stable_sort(begin, end, earlier);
      instants.Sort(track);
    }
    PairTrack(halves, track, trace);
    begin = end;
  }
}

namespace {

// A text about a process. It stands on one of its tracks, in Kineto files on
// that with tid 0; elsewhere the last one holds.
struct ProcessText {
  StringId text;
  bool from_zero = false;

  void Offer(StringId offered, bool zero) {
    if (zero || !from_zero) text = offered;
    from_zero = from_zero || zero;
  }
};

// They hold for all tracks of the process.
struct ProcessFacts {
  ProcessText name, labels;
  std::optional<int64_t> sort;
};

}  // namespace

void ApplyFacts(std::span<const TrackFact> facts, Trace& trace) {
  absl::flat_hash_map<StringId, ProcessFacts> processes;
  for (const TrackFact& fact : facts) {
    Track& track = trace.tracks[fact.track.value];
    ProcessFacts& process = processes[track.pid];
    const bool zero = trace.strings[track.tid] == "0";
    switch (fact.what) {
      case TrackFact::What::kProcessName:
        process.name.Offer(fact.text, zero);
        break;
      case TrackFact::What::kProcessLabels:
        process.labels.Offer(fact.text, zero);
        break;
      case TrackFact::What::kProcessSort:
        process.sort = fact.number;
        break;
      case TrackFact::What::kThreadName:
        track.thread_name = fact.text;
        break;
      case TrackFact::What::kThreadSort:
        track.thread_sort = fact.number;
        break;
    }
  }
  for (Track& track : trace.tracks) {
    const auto it = processes.find(track.pid);
    if (it == processes.end()) continue;
    track.process_name = it->second.name.text;
    track.process_labels = it->second.labels.text;
    track.process_sort = it->second.sort;
  }
}

namespace {

// Copies rows behind those of the trace and returns the number of the first.
template <class T>
uint32_t AppendRows(PodVector<T>& to, const PodVector<T>& from) {
  const size_t base = to.size();
  LAMINA_CHECK(base + from.size() < kNoRow);
  to.append(from.data(), from.size());
  return static_cast<uint32_t>(base);
}

// Moves a row number of the segment into the trace.
uint32_t Moved(uint32_t row, uint32_t base) {
  return row == kNoRow ? row : row + base;
}

// Joins one segment: copies its columns and translates its ids.
class Join {
 public:
  Join(Trace& trace, IdMap& ids, const Segment& segment, uint32_t uid_base)
      : trace_(trace), ids_(ids), from_(segment), uid_base_(uid_base) {}

  // The rows of arguments come first: all others name them.
  void Arguments() {
    const uint32_t collectives = Collectives();
    Instructions(collectives);
    const uint32_t ops = Ops(collectives);
    const uint32_t calls = ApiCalls();
    const uint32_t device = Device(collectives);
    const uint32_t python = AppendRows(trace_.python, from_.python);
    for (const Kind kind : {Kind::kOp, Kind::kAnnotation, Kind::kGpuAnnotation})
      row_base(kind) = ops;
    for (const Kind kind : {Kind::kRuntime, Kind::kDriver})
      row_base(kind) = calls;
    row_base(Kind::kOther) = calls;  // see trace/sync_record.h
    for (const Kind kind :
         {Kind::kKernel, Kind::kMemcpy, Kind::kMemset, Kind::kGraph})
      row_base(kind) = device;
    row_base(Kind::kPython) = python;
  }

  void JoinSlices() {
    const Slices& from = from_.slices;
    const size_t count = from.size();
    Slices& to = trace_.slices;
    LAMINA_CHECK(to.size() + count < SliceId::kNone);
    to.start_ns.append(from.start_ns.data(), count);
    to.dur_ns.append(from.dur_ns.data(), count);
    to.kind.append(from.kind.data(), count);
    to.offset.append(from.offset.data(), count);
    StringId* name = to.name.AppendUninitialized(count);
    uint8_t* category = to.category.AppendUninitialized(count);
    TrackId* track = to.track.AppendUninitialized(count);
    uint32_t* uid = to.uid.AppendUninitialized(count);
    uint32_t* detail = to.detail.AppendUninitialized(count);
    for (size_t i = 0; i < count; ++i) {
      name[i] = ids_.Map(from.name[i]);
      category[i] = ids_.MapCategory(from.category[i]);
      track[i] = ids_.Map(from.track[i]);
      uid[i] = from.uid[i] + uid_base_;
      detail[i] = Moved(from.detail[i], row_base(from.kind[i]));
    }
  }

  void JoinHalves(PodVector<HalfSlice>& to) {
    to.append(from_.halves.data(), from_.halves.size());
    for (HalfSlice& half : to.span().last(from_.halves.size())) {
      half.name = ids_.Map(half.name);
      half.track = ids_.Map(half.track);
      half.category = ids_.MapCategory(half.category);
      half.uid += uid_base_;
      half.detail = Moved(half.detail, row_base(half.kind));
    }
  }

  void JoinFlows() {
    const Flows& from = from_.flows;
    Flows& to = trace_.flows;
    to.time_ns.append(from.time_ns.data(), from.size());
    to.id.append(from.id.data(), from.size());
    to.phase.append(from.phase.data(), from.size());
    to.kind.append(from.kind.data(), from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      to.track.push_back(ids_.Map(from.track[i]));
      to.uid.push_back(from.uid[i] + uid_base_);
    }
  }

  void JoinInstants() {
    const uint32_t memory_base = AppendRows(trace_.memory, from_.memory);
    const Instants& from = from_.instants;
    Instants& to = trace_.instants;
    to.time_ns.append(from.time_ns.data(), from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      to.name.push_back(ids_.Map(from.name[i]));
      to.track.push_back(ids_.Map(from.track[i]));
      to.uid.push_back(from.uid[i] + uid_base_);
      to.memory.push_back(Moved(from.memory[i], memory_base));
    }
  }

  void JoinCounters() {
    const Counters& from = from_.counters;
    Counters& to = trace_.counters;
    to.time_ns.append(from.time_ns.data(), from.size());
    to.value.append(from.value.data(), from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      to.name.push_back(ids_.Map(from.name[i]));
      to.series.push_back(ids_.Map(from.series[i]));
      to.track.push_back(ids_.Map(from.track[i]));
      to.uid.push_back(from.uid[i] + uid_base_);
    }
  }

  void JoinEventCounters() {
    for (EventCounter row : from_.event_counters) {
      row.name = ids_.Map(row.name);
      row.uid += uid_base_;
      trace_.event_counters.push_back(row);
    }
  }

  void JoinGraphNodes() {
    for (GraphNode node : from_.graph_nodes) {
      node.track = ids_.Map(node.track);
      trace_.graph_nodes.push_back(node);
    }
  }

  void JoinFacts(std::vector<TrackFact>& to) {
    for (TrackFact fact : from_.facts) {
      fact.track = ids_.Map(fact.track);
      fact.text = ids_.Map(fact.text);
      to.push_back(fact);
    }
  }

 private:
  // Where the argument rows of a kind of slice begin in the trace.
  uint32_t& row_base(Kind kind) { return row_base_[static_cast<size_t>(kind)]; }

  uint32_t Collectives() {
    const uint32_t base = AppendRows(trace_.collectives, from_.collectives);
    for (size_t i = base; i < trace_.collectives.size(); ++i) {
      CollectiveArgs& row = trace_.collectives[i];
      ids_.MapAll(row.name, row.group, row.group_desc, row.group_ranks,
                  row.dtype, row.in_split, row.out_split);
    }
    return base;
  }

  void Instructions(uint32_t collectives) {
    for (Instruction row : from_.instructions) {
      ids_.MapAll(row.module, row.name, row.opcode, row.op_name, row.shape,
                  row.target, row.source, row.precision);
      row.collective = Moved(row.collective, collectives);
      trace_.instructions.push_back(row);
    }
  }

  uint32_t Ops(uint32_t collectives) {
    const uint32_t base = AppendRows(trace_.ops, from_.ops);
    for (size_t i = base; i < trace_.ops.size(); ++i) {
      OpArgs& row = trace_.ops[i];
      ids_.MapAll(row.dims, row.types, row.strides, row.concrete);
      row.collective = Moved(row.collective, collectives);
    }
    return base;
  }

  uint32_t ApiCalls() {
    const uint32_t base = AppendRows(trace_.api_calls, from_.api_calls);
    for (size_t i = base; i < trace_.api_calls.size(); ++i) {
      ApiArgs& row = trace_.api_calls[i];
      row.kernel = ids_.Map(row.kernel);
      row.config = ids_.MapConfig(row.config);
    }
    return base;
  }

  uint32_t Device(uint32_t collectives) {
    const uint32_t base = AppendRows(trace_.device, from_.device);
    for (size_t i = base; i < trace_.device.size(); ++i) {
      DeviceArgs& row = trace_.device[i];
      row.config = ids_.MapConfig(row.config);
      row.collective = Moved(row.collective, collectives);
    }
    return base;
  }

  Trace& trace_;
  IdMap& ids_;
  const Segment& from_;
  const uint32_t uid_base_;
  std::array<uint32_t, kKinds> row_base_{};
};

// Zeros in the description of a device are facts that its profiler lacked.
void ForgetZeros(Info& info) {
  for (DeviceInfo& device : info.devices) {
    for (int64_t* const fact :
         {&device.memory_bytes, &device.sm_count, &device.clock_khz,
          &device.memory_bandwidth_bytes_per_s}) {
      if (*fact <= 0) *fact = kNoInt;
    }
  }
}

// Clocks that count from an event of their own give negative times. They stay
// as they are, so that what is added to a copy stands beside its records:
// nothing depends on where zero is.
void SayNegative(Trace& trace) {
  const auto& starts = trace.slices.start_ns;
  const auto count = static_cast<uint64_t>(std::count_if(
      starts.begin(), starts.end(), [](int64_t start) { return start < 0; }));
  if (count == 0) return;
  trace.diagnostics.Add(Effect::kInfo, "negative_times",
                        "Events begin before the zero of their clock: tables "
                        "count times from the first slice.",
                        Diagnostics::kNoOffset, count);
}

}  // namespace

void TraceBuilder::Append(const Segment& segment) {
  LAMINA_CHECK(events_ + segment.next_uid < kNoRow);
  IdMap ids(&ids_, segment);
  Join join(trace_, ids, segment, static_cast<uint32_t>(events_));
  events_ += segment.next_uid;
  join.Arguments();
  join.JoinSlices();
  join.JoinHalves(halves_);
  join.JoinFlows();
  join.JoinInstants();
  join.JoinCounters();
  join.JoinEventCounters();
  join.JoinGraphNodes();
  join.JoinFacts(facts_);
  trace_.diagnostics.Merge(segment.diagnostics);
}

Trace TraceBuilder::Finish(int threads, void (*adjust)(Trace&)) {
  trace_.info.events = events_;
  PairHalves(std::move(halves_), trace_);
  ApplyFacts(facts_, trace_);
  if (adjust != nullptr) adjust(trace_);
  ForgetZeros(trace_.info);
  RepairStarts(trace_);
  SayNegative(trace_);
  MakeStreams(trace_, threads);
  RepairDurations(trace_);
  const auto& starts = trace_.slices.start_ns;
  if (!starts.empty())
    trace_.first_ns = *std::min_element(starts.begin(), starts.end());
  return std::move(trace_);
}

}  // namespace lamina::trace
