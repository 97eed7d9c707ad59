// SPDX-License-Identifier: Apache-2.0
#include "analysis/memory/join.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "analysis/memory/memory.h"
#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::analysis::memory {
namespace {

namespace mem = ::lamina::memory;

constexpr double kLeastShare = 0.9;
constexpr int64_t kSlackNs = 1'000'000;  // of the ends of what both cover
constexpr int64_t kBucketNs = 200'000;   // offsets that agree
constexpr size_t kMostOfKey = 16;        // differences of one key: its square

// One side's event.
struct SideEvent {
  int64_t time_ns = 0;
  int64_t bytes = 0;  // negative: freed
  uint32_t id = 0;    // allocation of the snapshot, place in the trace's list
};
using SideEvents =
    absl::flat_hash_map<std::pair<int64_t, bool>, std::vector<SideEvent>>;

struct Pair {
  uint32_t allocation = 0;
  uint32_t event = 0;
  int64_t shift_ns = 0;
  bool alloc = false;
};

struct Match {
  std::vector<Pair> pairs;
  size_t snapshot = 0, trace = 0;  // events in the time that both cover
  int64_t offset_ns = 0;
  double share() const {
    const size_t most = std::max(snapshot, trace);
    return most == 0
               ? 0.0
               : static_cast<double>(pairs.size()) / static_cast<double>(most);
  }
};

std::vector<std::pair<int64_t, SideEvent>> SnapshotRows(
    const mem::Device& device) {
  const mem::Events& e = device.events();
  std::vector<std::pair<int64_t, SideEvent>> out;
  for (size_t i = 0; i < e.count(); ++i) {
    const bool alloc = e.action[i] == mem::Action::kAlloc;
    if (!alloc && e.action[i] != mem::Action::kFreeRequested) continue;
    const uint32_t id = device.AllocationOf(i);
    if (id == mem::kNoAllocation || e.time_us[i] == mem::kNoTime) continue;
    const int64_t bytes = device.allocations()[id].bytes;
    out.push_back(
        {e.address[i], {e.time_us[i] * 1000, alloc ? bytes : -bytes, id}});
  }
  return out;
}

SideEvents ByKey(const std::vector<std::pair<int64_t, SideEvent>>& list,
                 int64_t from, int64_t to, size_t* count) {
  SideEvents out;
  for (const auto& [address, row] : list) {
    if (row.time_ns < from || row.time_ns > to) continue;
    out[{address, row.bytes > 0}].push_back(row);
    ++*count;
  }
  return out;
}

using List = std::vector<std::pair<int64_t, SideEvent>>;

std::pair<int64_t, int64_t> Span(const List& list) {
  int64_t from = list.front().second.time_ns;
  int64_t to = from;
  for (const auto& [address, row] : list) {
    from = std::min(from, row.time_ns);
    to = std::max(to, row.time_ns);
  }
  return {from, to};
}

// `offset` is added to times of the snapshot.
Match MatchAt(const List& snapshot, const List& trace, int64_t offset) {
  Match out;
  out.offset_ns = offset;
  const auto [s_from, s_to] = Span(snapshot);
  const auto [t_from, t_to] = Span(trace);
  const int64_t from = std::max(s_from + offset, t_from) - kSlackNs;
  const int64_t to = std::min(s_to + offset, t_to) + kSlackNs;
  if (from > to) return out;
  const SideEvents ours =
      ByKey(snapshot, from - offset, to - offset, &out.snapshot);
  const SideEvents theirs = ByKey(trace, from, to, &out.trace);
  for (const auto& [key, list] : ours) {
    const auto other = theirs.find(key);
    if (other == theirs.end()) continue;
    for (size_t i = 0, k = 0; i < list.size() && k < other->second.size();) {
      const SideEvent& a = list[i];
      const SideEvent& b = other->second[k];
      if (a.bytes == b.bytes) {
        out.pairs.push_back(
            {a.id, b.id, b.time_ns - a.time_ns - offset, key.second});
        ++i;
        ++k;
      } else if (a.time_ns + offset <= b.time_ns) {
        ++i;
      } else {
        ++k;
      }
    }
  }
  // The map has no order of its own.
  std::sort(out.pairs.begin(), out.pairs.end(),
            [](const Pair& a, const Pair& b) { return a.event < b.event; });
  return out;
}

// The offset that most equal events agree on.
int64_t CommonOffset(const List& snapshot, const List& trace) {
  absl::flat_hash_map<std::pair<int64_t, int64_t>, std::vector<int64_t>> times;
  for (const auto& [address, row] : trace) {
    std::vector<int64_t>& list = times[{address, row.bytes}];
    if (list.size() < kMostOfKey) list.push_back(row.time_ns);
  }
  absl::flat_hash_map<std::pair<int64_t, int64_t>, size_t> seen;
  std::vector<int64_t> differences;
  for (const auto& [address, row] : snapshot) {
    const auto it = times.find({address, row.bytes});
    if (it == times.end() || seen[it->first]++ >= kMostOfKey) continue;
    for (const int64_t time : it->second)
      differences.push_back(time - row.time_ns);
  }
  std::sort(differences.begin(), differences.end());
  size_t best = 0, best_from = 0;
  for (size_t from = 0, to = 0; from < differences.size(); ++from) {
    while (to < differences.size() &&
           differences[to] - differences[from] <= kBucketNs)
      ++to;
    if (to - from > best) {
      best = to - from;
      best_from = from;
    }
  }
  return best == 0 ? 0 : differences[best_from + best / 2];
}

// Half of the distance between the 5th and the 95th of a hundred.
int64_t SpreadOf(const Match& match) {
  std::vector<int64_t> shifts;
  for (const Pair& pair : match.pairs) shifts.push_back(pair.shift_ns);
  if (shifts.empty()) return 0;
  std::sort(shifts.begin(), shifts.end());
  return (shifts[shifts.size() * 95 / 100] - shifts[shifts.size() * 5 / 100]) /
         2;
}

// A time between which steps lies; empty: none.
std::string StepName(const Context& context, int64_t time_ns) {
  const uint32_t step = context.steps.StepAt(time_ns);
  if (step == tree::Steps::kOutside) return {};
  return std::string(context.trace.Text(
      context.trace.slices.name[context.steps.steps()[step].slice.value]));
}

void TakeFacts(const Context& context, const std::vector<MemoryEvent>& events,
               const Match& match, mem::DeviceView* view) {
  mem::TraceFacts& joined = view->joined;
  joined.of.resize(view->device->allocations().size());
  for (const Pair& pair : match.pairs) {
    if (!pair.alloc) continue;
    const MemoryEvent& event = events[pair.event];
    mem::TraceFacts::Row& row = joined.of[pair.allocation];
    row.op = joined.texts.Intern(event.op.valid() ? context.tree.name(event.op)
                                                  : "(outside)");
    const tree::ModulePathId path = event.op.valid()
                                        ? context.modules.OwnerOf(event.op).path
                                        : tree::ModulePathId();
    row.module = joined.texts.Intern(
        path.valid() ? context.modules.PathText(path) : "(outside)");
    row.step = joined.texts.Intern(StepName(context, event.time_ns));
    const trace::Track& track =
        context.trace.tracks[context.trace.instants.track[event.instant].value];
    row.thread = joined.texts.Intern(context.trace.Text(track.tid));
  }
}

// Where the trace has no allocator: what was open at the time of the event.
size_t TakeTimes(const Context& context, int64_t base_ns,
                 mem::DeviceView* view) {
  size_t found = 0;
  mem::TraceFacts& joined = view->joined;
  const mem::Device& device = *view->device;
  joined.of.resize(device.allocations().size());
  for (uint32_t id = 0; id < device.allocations().size(); ++id) {
    const mem::Allocation& a = device.allocations()[id];
    if (a.before()) continue;
    const int64_t time = device.events().time_us[static_cast<size_t>(a.start)];
    if (time == mem::kNoTime) continue;
    const std::string step = StepName(context, time * 1000 - base_ns);
    if (step.empty()) continue;
    joined.of[id].step = joined.texts.Intern(step);
    ++found;
  }
  if (found == 0) joined.of.clear();
  return found;
}

struct JoinRow {
  int64_t device;
  size_t pairs, snapshot_events, trace_events;
  double percent;
  int64_t offset;                 // nanoseconds
  std::optional<int64_t> spread;  // nanoseconds
  bool joined;
};
const RowColumns<JoinRow>& JoinColumns() {
  static const RowColumns<JoinRow> columns{
      "memory_join",
      "Events of the snapshot that are events of the trace.",
      {{"device_index", ColumnType::kInt, "Number of the device.",
        &JoinRow::device},
       {"pairs", ColumnType::kInt, "Events that are in both.", &JoinRow::pairs},
       {"snapshot_events", ColumnType::kInt,
        "Of the snapshot, in the time that both cover.",
        &JoinRow::snapshot_events},
       {"trace_events", ColumnType::kInt,
        "Of the trace, in the time that both cover.", &JoinRow::trace_events},
       {"percent", ColumnType::kReal, "Pairs of the larger of both.",
        &JoinRow::percent, Shown::kPercent},
       {"offset_us", ColumnType::kTime, "Added to times of the snapshot.",
        &JoinRow::offset},
       {"spread_us", ColumnType::kTime,
        "Half of what lies between 5 and 95 % of the differences left.",
        &JoinRow::spread},
       {"joined", ColumnType::kBool,
        "Whether ops, modules and steps are taken from the trace.",
        &JoinRow::joined}}};
  return columns;
}

}  // namespace

ResultSet JoinTrace(const Context& context, mem::Recording* recording) {
  ResultSet out;
  std::vector<JoinRow> rows;
  const int64_t base = context.trace.info.base_time_ns.value_or(0);
  auto by_device = EventsByDevice(context);
  for (mem::DeviceView& view : recording->devices) {
    const int64_t ordinal = view.device->ordinal();
    const std::vector<MemoryEvent>& events = by_device[ordinal];
    const auto say = [&](Severity severity, std::string text) {
      out.notes.push_back(MakeNote(severity, "memory_join", std::move(text),
                                   {{"memory_join", "", "", {}}}));
    };
    List theirs;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].address == trace::kNoInt) continue;
      theirs.push_back({events[i].address,
                        {events[i].time_ns + base, events[i].bytes,
                         static_cast<uint32_t>(i)}});
    }
    const List ours = SnapshotRows(*view.device);
    if (theirs.empty() || ours.empty()) {
      const size_t found =
          theirs.empty() && !ours.empty() ? TakeTimes(context, base, &view) : 0;
      rows.push_back({.device = ordinal,
                      .pairs = 0,
                      .snapshot_events = ours.size(),
                      .trace_events = theirs.size(),
                      .percent = 0.0,
                      .offset = 0,
                      .spread = std::nullopt,
                      .joined = false});
      say(found > 0 ? Severity::kInfo : Severity::kWarning,
          ours.empty()
              ? fmt::format("GPU {}: the snapshot has no events with times to "
                            "join.",
                            ordinal)
              : fmt::format("GPU {}: the trace has no allocations with "
                            "addresses; {} allocations lie in a step of it by "
                            "their time (medium confidence).",
                            ordinal, found));
      continue;
    }
    Match match = MatchAt(ours, theirs, 0);
    if (match.share() < kLeastShare) {
      Match other = MatchAt(ours, theirs, CommonOffset(ours, theirs));
      if (other.share() > match.share()) match = std::move(other);
    }
    const bool joined = match.share() >= kLeastShare;
    if (joined) TakeFacts(context, events, match, &view);
    rows.push_back({.device = ordinal,
                    .pairs = match.pairs.size(),
                    .snapshot_events = match.snapshot,
                    .trace_events = match.trace,
                    .percent = 100.0 * match.share(),
                    .offset = match.offset_ns,
                    .spread = SpreadOf(match),
                    .joined = joined});
    if (joined) {
      say(Severity::kInfo,
          fmt::format("GPU {}: {} of {} events of the snapshot and {} of the "
                      "trace are the same, {} apart; ops, modules and steps "
                      "are those of the trace.",
                      ordinal, match.pairs.size(), match.snapshot, match.trace,
                      HumanTime(match.offset_ns)));
    } else {
      say(Severity::kWarning,
          fmt::format("GPU {}: the trace is not of the same run: {} of {} "
                      "events of the snapshot and {} of the trace are the "
                      "same in the time that both cover. Nothing is joined.",
                      ordinal, match.pairs.size(), match.snapshot,
                      match.trace));
    }
  }
  out.tables.push_back(JoinColumns().Make(rows));
  return out;
}

}  // namespace lamina::analysis::memory
