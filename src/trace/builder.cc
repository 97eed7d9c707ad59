// SPDX-License-Identifier: Apache-2.0
#include "trace/builder.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>

#include "base/decimal.h"
#include "base/parallel.h"
#include "base/status.h"

namespace lamina::trace {
namespace {

constexpr uint8_t kManyCategories = 255;

// Joins argument rows: copies them behind those of the trace and moves their
// ids. Returns the row number of the first.
template <class T>
uint32_t AppendRows(PodVector<T>& to, const PodVector<T>& from) {
  const size_t base = to.size();
  LAMINA_CHECK(base + from.size() < kNoRow);
  to.append(from.data(), from.size());
  return static_cast<uint32_t>(base);
}

}  // namespace

LocalNames::LocalNames() = default;

StringId LocalNames::Intern(std::string_view text) {
  return strings_.Intern(text);
}

TrackId LocalNames::InternTrack(StringId pid, StringId tid) {
  const auto [it, is_new] = track_ids_.try_emplace(
      std::pair(pid, tid), static_cast<uint32_t>(tracks_.size()));
  if (is_new) tracks_.emplace_back(pid, tid);
  return TrackId(it->second);
}

uint32_t LocalNames::InternConfig(const LaunchConfig& config) {
  const auto [it, is_new] =
      config_ids_.try_emplace(config, static_cast<uint32_t>(configs_.size()));
  if (is_new) configs_.push_back(config);
  return it->second;
}

uint8_t LocalNames::InternCategory(StringId text) {
  for (size_t i = 0; i < categories_.size(); ++i) {
    if (categories_[i] == text) return static_cast<uint8_t>(i);
  }
  if (categories_.size() >= kManyCategories) return kManyCategories;
  categories_.push_back(text);
  return static_cast<uint8_t>(categories_.size() - 1);
}

void Segment::Seal() {
  LocalNames& n = *names;
  for (size_t i = n.sent_strings_; i < n.strings_.size(); ++i)
    new_texts_.push_back(n.strings_[StringId(static_cast<uint32_t>(i))]);
  n.sent_strings_ = n.strings_.size();
  new_tracks_.assign(n.tracks_.begin() + static_cast<ptrdiff_t>(n.sent_tracks_),
                     n.tracks_.end());
  n.sent_tracks_ = n.tracks_.size();
  new_configs_.assign(
      n.configs_.begin() + static_cast<ptrdiff_t>(n.sent_configs_),
      n.configs_.end());
  n.sent_configs_ = n.configs_.size();
  new_categories_.assign(
      n.categories_.begin() + static_cast<ptrdiff_t>(n.sent_categories_),
      n.categories_.end());
  n.sent_categories_ = n.categories_.size();
}

void Segment::Clear() {
  next_uid = 0;
  slices.start_ns.clear();
  slices.dur_ns.clear();
  slices.name.clear();
  slices.kind.clear();
  slices.category.clear();
  slices.track.clear();
  slices.uid.clear();
  slices.offset.clear();
  slices.detail.clear();
  ops.clear();
  api_calls.clear();
  device.clear();
  python.clear();
  collectives.clear();
  memory.clear();
  graph_nodes.clear();
  instructions.clear();
  flows.time_ns.clear();
  flows.id.clear();
  flows.track.clear();
  flows.phase.clear();
  flows.kind.clear();
  flows.uid.clear();
  instants.time_ns.clear();
  instants.name.clear();
  instants.track.clear();
  instants.uid.clear();
  instants.memory.clear();
  counters.time_ns.clear();
  counters.name.clear();
  counters.series.clear();
  counters.track.clear();
  counters.value.clear();
  counters.uid.clear();
  halves.clear();
  facts.clear();
  diagnostics = Diagnostics();
  new_texts_.clear();
  new_tracks_.clear();
  new_configs_.clear();
  new_categories_.clear();
}

// --------------------------------------------------------------------------

struct TraceBuilder::State {
  Trace trace;
  uint64_t events = 0;
  absl::flat_hash_map<std::pair<StringId, StringId>, uint32_t> track_ids;
  absl::flat_hash_map<LaunchConfig, uint32_t> config_ids;
  absl::flat_hash_map<StringId, uint8_t> category_ids;
  std::vector<HalfSlice> halves;
  std::vector<TrackFact> facts;

  // The ids of one worker as ids of the trace, made on first use.
  struct Mapper {
    State& state;
    LocalNames::Joined& names;

    StringId Map(StringId local) {
      if (!local.valid()) return local;
      StringId& global = names.text_ids[local.value];
      if (!global.valid())
        global = state.trace.strings.Intern(names.texts[local.value]);
      return global;
    }
    TrackId Map(TrackId local) {
      TrackId& global = names.track_ids[local.value];
      if (!global.valid()) global = state.NewTrack(*this, local);
      return global;
    }
    uint32_t MapConfig(uint32_t local) {
      if (local == kNoRow) return local;
      uint32_t& global = names.config_ids[local];
      if (global == kNoRow) global = state.NewConfig(names.configs[local]);
      return global;
    }
    uint8_t MapCategory(uint8_t local) {
      if (local >= names.category_ids.size()) return state.NoCategory();
      int& global = names.category_ids[local];
      if (global < 0) global = state.NewCategory(Map(names.categories[local]));
      return static_cast<uint8_t>(global);
    }
  };

  TrackId NewTrack(Mapper& mapper, TrackId local) {
    const auto [pid, tid] = mapper.names.tracks[local.value];
    const std::pair key(mapper.Map(pid), mapper.Map(tid));
    const auto [it, is_new] =
        track_ids.try_emplace(key, static_cast<uint32_t>(trace.tracks.size()));
    if (is_new) {
      Track track;
      track.pid = key.first;
      track.tid = key.second;
      trace.tracks.push_back(track);
    }
    return TrackId(it->second);
  }

  uint32_t NewConfig(const LaunchConfig& config) {
    const auto [it, is_new] = config_ids.try_emplace(
        config, static_cast<uint32_t>(trace.configs.size()));
    if (is_new) trace.configs.push_back(config);
    return it->second;
  }

  uint8_t NewCategory(StringId text) {
    const auto it = category_ids.find(text);
    if (it != category_ids.end()) return it->second;
    if (trace.categories.size() >= kManyCategories) return NoCategory();
    const auto index = static_cast<uint8_t>(trace.categories.size());
    trace.categories.push_back(text);
    category_ids.emplace(text, index);
    return index;
  }

  // Index of the empty category, also for the 256th and later ones.
  uint8_t NoCategory() {
    const auto it = category_ids.find(StringPool::kEmpty);
    if (it != category_ids.end()) return it->second;
    const auto index = static_cast<uint8_t>(
        std::min<size_t>(trace.categories.size(), kManyCategories));
    trace.categories.push_back(StringPool::kEmpty);
    category_ids.emplace(StringPool::kEmpty, index);
    return index;
  }

  void AppendSlices(const Segment& s, Mapper& map, uint32_t uid_base);
  void PairHalves();
  static void OrderInstants(std::span<HalfSlice> track);
  void PairTrack(std::span<const HalfSlice> track);
  void ApplyFacts();
  void MakeStreams(int threads);
};

TraceBuilder::TraceBuilder() : state_(std::make_unique<State>()) {}
TraceBuilder::~TraceBuilder() = default;

Info& TraceBuilder::info() { return state_->trace.info; }
Diagnostics& TraceBuilder::diagnostics() { return state_->trace.diagnostics; }

void TraceBuilder::State::AppendSlices(const Segment& s, Mapper& map,
                                       uint32_t uid_base) {
  // Rows of each argument table begin here.
  std::array<uint32_t, kKinds> base{};
  base.fill(0);
  const uint32_t collective_base = AppendRows(trace.collectives, s.collectives);
  for (size_t i = collective_base; i < trace.collectives.size(); ++i) {
    CollectiveArgs& row = trace.collectives[i];
    for (StringId* id :
         {&row.name, &row.group, &row.group_desc, &row.group_ranks, &row.dtype,
          &row.in_split, &row.out_split})
      *id = map.Map(*id);
  }
  const auto move_collective = [&](uint32_t& row) {
    if (row != kNoRow) row += collective_base;
  };

  for (Instruction row : s.instructions) {
    for (StringId* id : {&row.module, &row.name, &row.opcode, &row.op_name,
                         &row.shape, &row.target, &row.source, &row.precision})
      *id = map.Map(*id);
    move_collective(row.collective);
    trace.instructions.push_back(row);
  }

  const uint32_t op_base = AppendRows(trace.ops, s.ops);
  for (size_t i = op_base; i < trace.ops.size(); ++i) {
    OpArgs& row = trace.ops[i];
    for (StringId* id : {&row.dims, &row.types, &row.strides, &row.concrete})
      *id = map.Map(*id);
    move_collective(row.collective);
  }
  const uint32_t api_base = AppendRows(trace.api_calls, s.api_calls);
  for (size_t i = api_base; i < trace.api_calls.size(); ++i) {
    ApiArgs& row = trace.api_calls[i];
    row.kernel = map.Map(row.kernel);
    row.config = map.MapConfig(row.config);
  }
  const uint32_t device_base = AppendRows(trace.device, s.device);
  for (size_t i = device_base; i < trace.device.size(); ++i) {
    DeviceArgs& row = trace.device[i];
    row.config = map.MapConfig(row.config);
    move_collective(row.collective);
  }
  const uint32_t python_base = AppendRows(trace.python, s.python);

  for (const Kind kind : {Kind::kOp, Kind::kAnnotation, Kind::kGpuAnnotation})
    base[static_cast<size_t>(kind)] = op_base;
  for (const Kind kind : {Kind::kRuntime, Kind::kDriver})
    base[static_cast<size_t>(kind)] = api_base;
  for (const Kind kind :
       {Kind::kKernel, Kind::kMemcpy, Kind::kMemset, Kind::kGraph})
    base[static_cast<size_t>(kind)] = device_base;
  base[static_cast<size_t>(Kind::kPython)] = python_base;

  const size_t count = s.slices.size();
  Slices& to = trace.slices;
  LAMINA_CHECK(to.size() + count < SliceId::kNone);
  to.start_ns.append(s.slices.start_ns.data(), count);
  to.dur_ns.append(s.slices.dur_ns.data(), count);
  to.kind.append(s.slices.kind.data(), count);
  to.offset.append(s.slices.offset.data(), count);
  StringId* name = to.name.AppendUninitialized(count);
  uint8_t* category = to.category.AppendUninitialized(count);
  TrackId* track = to.track.AppendUninitialized(count);
  uint32_t* uid = to.uid.AppendUninitialized(count);
  uint32_t* detail = to.detail.AppendUninitialized(count);
  for (size_t i = 0; i < count; ++i) {
    name[i] = map.Map(s.slices.name[i]);
    category[i] = map.MapCategory(s.slices.category[i]);
    track[i] = map.Map(s.slices.track[i]);
    uid[i] = s.slices.uid[i] + uid_base;
    const uint32_t row = s.slices.detail[i];
    detail[i] =
        row == kNoRow ? row : row + base[static_cast<size_t>(s.slices.kind[i])];
  }

  for (HalfSlice half : s.halves) {
    half.name = map.Map(half.name);
    half.track = map.Map(half.track);
    half.category = map.MapCategory(half.category);
    half.uid += uid_base;
    if (half.detail != kNoRow)
      half.detail += base[static_cast<size_t>(half.kind)];
    halves.push_back(half);
  }
}

void TraceBuilder::Append(const Segment& s) {
  State& state = *state_;
  Trace& trace = state.trace;
  LocalNames::Joined& joined = s.names->joined_;
  const auto extend = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  extend(joined.texts, s.new_texts_);
  joined.text_ids.resize(joined.texts.size());
  extend(joined.tracks, s.new_tracks_);
  joined.track_ids.resize(joined.tracks.size());
  extend(joined.configs, s.new_configs_);
  joined.config_ids.resize(joined.configs.size(), kNoRow);
  extend(joined.categories, s.new_categories_);
  joined.category_ids.resize(joined.categories.size(), -1);
  State::Mapper map{state, joined};

  LAMINA_CHECK(state.events + s.next_uid < kNoRow);
  const auto uid_base = static_cast<uint32_t>(state.events);
  state.events += s.next_uid;
  state.AppendSlices(s, map, uid_base);

  const size_t flows = s.flows.size();
  trace.flows.time_ns.append(s.flows.time_ns.data(), flows);
  trace.flows.id.append(s.flows.id.data(), flows);
  trace.flows.phase.append(s.flows.phase.data(), flows);
  trace.flows.kind.append(s.flows.kind.data(), flows);
  for (size_t i = 0; i < flows; ++i) {
    trace.flows.track.push_back(map.Map(s.flows.track[i]));
    trace.flows.uid.push_back(s.flows.uid[i] + uid_base);
  }

  const uint32_t memory_base = AppendRows(trace.memory, s.memory);
  const size_t instants = s.instants.size();
  trace.instants.time_ns.append(s.instants.time_ns.data(), instants);
  for (size_t i = 0; i < instants; ++i) {
    trace.instants.name.push_back(map.Map(s.instants.name[i]));
    trace.instants.track.push_back(map.Map(s.instants.track[i]));
    trace.instants.uid.push_back(s.instants.uid[i] + uid_base);
    const uint32_t row = s.instants.memory[i];
    trace.instants.memory.push_back(row == kNoRow ? row : row + memory_base);
  }

  const size_t counters = s.counters.size();
  trace.counters.time_ns.append(s.counters.time_ns.data(), counters);
  trace.counters.value.append(s.counters.value.data(), counters);
  for (size_t i = 0; i < counters; ++i) {
    trace.counters.name.push_back(map.Map(s.counters.name[i]));
    trace.counters.series.push_back(map.Map(s.counters.series[i]));
    trace.counters.track.push_back(map.Map(s.counters.track[i]));
    trace.counters.uid.push_back(s.counters.uid[i] + uid_base);
  }

  for (GraphNode node : s.graph_nodes) {
    node.track = map.Map(node.track);
    trace.graph_nodes.push_back(node);
  }

  for (TrackFact fact : s.facts) {
    fact.track = map.Map(fact.track);
    fact.text = map.Map(fact.text);
    state.facts.push_back(fact);
  }
  trace.diagnostics.Merge(s.diagnostics);
}

// Begin and end events of a track pair like brackets. Where the events of a
// track stand in the order of time, that of the file decides at one instant.
// Elsewhere (all begins of a group before all ends) they are sorted, and an
// instant first closes what was open before it, then opens, then closes the
// rest: back-to-back spans stay apart, empty ones stay empty.
void TraceBuilder::State::PairHalves() {
  if (halves.empty()) return;
  std::stable_sort(
      halves.begin(), halves.end(),
      [](const HalfSlice& a, const HalfSlice& b) { return a.track < b.track; });
  const auto earlier = [](const HalfSlice& a, const HalfSlice& b) {
    return a.time_ns < b.time_ns;
  };
  for (auto begin = halves.begin(); begin != halves.end();) {
    auto end = begin;
    while (end != halves.end() && end->track == begin->track) ++end;
    if (!std::is_sorted(begin, end, earlier)) {
      std::stable_sort(begin, end, earlier);
      OrderInstants({&*begin, static_cast<size_t>(end - begin)});
    }
    PairTrack({&*begin, static_cast<size_t>(end - begin)});
    begin = end;
  }
  halves.clear();
  halves.shrink_to_fit();
}

void TraceBuilder::State::OrderInstants(std::span<HalfSlice> track) {
  size_t open = 0;
  for (size_t begin = 0; begin < track.size();) {
    size_t end = begin;
    while (end < track.size() && track[end].time_ns == track[begin].time_ns)
      ++end;
    // Ends of spans that are open, begins, the other ends.
    size_t closing = 0;
    for (size_t i = begin; i < end; ++i)
      closing += !track[i].begin && closing < open;
    size_t closed = 0;
    const auto rank = [&](const HalfSlice& half) {
      if (half.begin) return 1;
      return closed++ < closing ? 0 : 2;
    };
    std::array<std::vector<HalfSlice>, 3> parts;
    for (size_t i = begin; i < end; ++i)
      parts[static_cast<size_t>(rank(track[i]))].push_back(track[i]);
    size_t at = begin;
    for (const auto& part : parts) {
      for (const HalfSlice& half : part) track[at++] = half;
    }
    const size_t begins = parts[1].size();
    open = open - closing + begins;
    open -= std::min(open, parts[2].size());
    begin = end;
  }
}

void TraceBuilder::State::PairTrack(std::span<const HalfSlice> track) {
  Slices& to = trace.slices;
  const auto add = [&](const HalfSlice& begin, int64_t end_ns) {
    if (end_ns - begin.time_ns > kMaxDurationNs) {
      trace.diagnostics.Add(Effect::kLost, "duration_out_of_range",
                            "The duration of an event is no number, or longer "
                            "than 13 days.",
                            begin.offset);
      return;
    }
    to.start_ns.push_back(begin.time_ns);
    to.dur_ns.push_back(end_ns - begin.time_ns);
    to.name.push_back(begin.name);
    to.kind.push_back(begin.kind);
    to.category.push_back(begin.category);
    to.track.push_back(begin.track);
    to.uid.push_back(begin.uid);
    to.offset.push_back(begin.offset);
    to.detail.push_back(begin.detail);
  };
  std::vector<const HalfSlice*> open;
  for (const HalfSlice& half : track) {
    if (half.begin) {
      open.push_back(&half);
    } else if (open.empty()) {
      trace.diagnostics.Add(Effect::kLost, "end_without_begin",
                            "An end event (ph E) has no begin event.",
                            half.offset);
    } else {
      add(*open.back(), half.time_ns);
      open.pop_back();
    }
  }
  for (const HalfSlice* begin : open) {
    trace.diagnostics.Add(
        Effect::kRepaired, "begin_without_end",
        "A begin event (ph B) has no end event; it is taken to last to the "
        "last event of its track.",
        begin->offset);
    add(*begin, track.back().time_ns);
  }
}

void TraceBuilder::State::ApplyFacts() {
  // A process fact stands on one track (tid 0 in Kineto files) and holds for
  // all tracks of the process.
  struct ProcessFacts {
    StringId name, labels;
    bool name_from_zero = false;
    bool labels_from_zero = false;
    std::optional<int64_t> sort;
  };
  absl::flat_hash_map<StringId, ProcessFacts> processes;
  for (const TrackFact& fact : facts) {
    Track& track = trace.tracks[fact.track.value];
    ProcessFacts& process = processes[track.pid];
    const bool zero = trace.strings[track.tid] == "0";
    switch (fact.what) {
      case TrackFact::What::kProcessName:
        if (!process.name.valid() || zero || !process.name_from_zero)
          process.name = fact.text;
        process.name_from_zero = process.name_from_zero || zero;
        break;
      case TrackFact::What::kProcessLabels:
        if (!process.labels.valid() || zero || !process.labels_from_zero)
          process.labels = fact.text;
        process.labels_from_zero = process.labels_from_zero || zero;
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
    track.process_name = it->second.name;
    track.process_labels = it->second.labels;
    track.process_sort = it->second.sort;
  }
}

void TraceBuilder::State::MakeStreams(int threads) {
  const Slices& slices = trace.slices;
  auto& order = trace.device_order;
  order.reserve(trace.device.size());
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (IsDevice(slices.kind[i])) order.push_back(SliceId(i));
  }
  std::sort(order.begin(), order.end(), [&](SliceId a, SliceId b) {
    if (slices.start_ns[a.value] != slices.start_ns[b.value])
      return slices.start_ns[a.value] < slices.start_ns[b.value];
    return slices.uid[a.value] < slices.uid[b.value];
  });
  (void)threads;

  struct Key {
    StringId pid;
    int64_t device, stream;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return absl::HashOf(key.pid, key.device, key.stream);
    }
  };
  absl::flat_hash_map<Key, uint32_t, KeyHash> ids;
  std::vector<uint32_t> lane_of_row(trace.device.size(), kNoRow);
  for (const SliceId s : order) {
    const uint32_t row = slices.detail[s.value];
    DeviceArgs& args = trace.device[row];
    const Track& track = trace.TrackOf(s);
    // Without arguments the ids of the row in the viewer name the lane.
    if (args.device == kNoInt) {
      const auto device = ParseInt(trace.strings[track.pid]);
      if (device) args.device = *device;
    }
    if (args.stream == kNoInt) {
      const auto stream = ParseInt(trace.strings[track.tid]);
      if (stream) args.stream = *stream;
    }
    const Key key{track.pid, args.device, args.stream};
    const auto [it, is_new] =
        ids.try_emplace(key, static_cast<uint32_t>(trace.streams.size()));
    if (is_new) trace.streams.push_back({key.pid, key.device, key.stream, {}});
    args.lane = StreamId(it->second);
    trace.streams[it->second].slices.push_back(s);
  }
  // Lanes in the order people expect, whatever came first in the file.
  std::vector<uint32_t> by_key(trace.streams.size());
  std::iota(by_key.begin(), by_key.end(), 0);
  const auto pid_number = [&](StringId pid) {
    return ParseInt(trace.strings[pid]).value_or(kNoInt);
  };
  std::sort(by_key.begin(), by_key.end(), [&](uint32_t a, uint32_t b) {
    const Stream& x = trace.streams[a];
    const Stream& y = trace.streams[b];
    const int64_t p = pid_number(x.pid);
    const int64_t q = pid_number(y.pid);
    if (p != q) return p < q;
    if (x.pid != y.pid) return trace.strings[x.pid] < trace.strings[y.pid];
    return std::pair(x.device, x.stream) < std::pair(y.device, y.stream);
  });
  std::vector<uint32_t> place(by_key.size());
  std::vector<Stream> sorted;
  for (size_t i = 0; i < by_key.size(); ++i) {
    place[by_key[i]] = static_cast<uint32_t>(i);
    sorted.push_back(std::move(trace.streams[by_key[i]]));
  }
  trace.streams = std::move(sorted);
  for (DeviceArgs& args : trace.device) {
    if (args.lane.valid()) args.lane = StreamId(place[args.lane.value]);
  }
}

Trace TraceBuilder::Finish(int threads) {
  State& state = *state_;
  state.trace.info.events = state.events;
  state.PairHalves();
  state.ApplyFacts();
  state.MakeStreams(threads);
  const auto& starts = state.trace.slices.start_ns;
  if (!starts.empty())
    state.trace.first_ns = *std::min_element(starts.begin(), starts.end());
  return std::move(state.trace);
}

}  // namespace lamina::trace
