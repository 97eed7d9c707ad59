// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/host_view.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <array>
#include <map>

#include "analysis/common/collective_names.h"
#include "trace/categories.h"
#include "trace/os_records.h"

namespace lamina::analysis {
namespace {

bool IsHostEvent(trace::Kind kind) {
  return trace::IsHostTree(kind) || kind == trace::Kind::kAnnotation;
}

// Lengths of the parts of intervals in a set, by prefix sums.
class Covered {
 public:
  explicit Covered(const IntervalSet& set) : intervals_(set.intervals()) {
    sums_.push_back(0);
    for (const Interval& i : intervals_)
      sums_.push_back(sums_.back() + i.length_ns());
  }
  int64_t Within(int64_t from, int64_t to) const {
    return to > from ? Until(to) - Until(from) : 0;
  }

 private:
  int64_t Until(int64_t time) const {
    const auto it = std::partition_point(
        intervals_.begin(), intervals_.end(),
        [&](const Interval& i) { return i.start_ns < time; });
    const auto n = static_cast<size_t>(it - intervals_.begin());
    if (n == 0) return 0;
    const Interval& last = intervals_[n - 1];
    return sums_[n - 1] + std::min(last.end_ns, time) - last.start_ns;
  }

  std::span<const Interval> intervals_;
  std::vector<int64_t> sums_;
};

// Nests the ops of a thread, given by (start, longest first, number).
size_t Nest(const Trace& trace, const Covered& api, HostThread& thread) {
  size_t not_nested = 0;
  std::vector<size_t> open;
  std::vector<int64_t> api_total(thread.ops.size());
  absl::flat_hash_map<StringId, int> open_names;
  for (size_t i = 0; i < thread.ops.size(); ++i) {
    HostOp& op = thread.ops[i];
    const int64_t start = trace.Start(op.slice);
    while (!open.empty() && thread.ops[open.back()].end_ns <= start) {
      --open_names[trace.slices.name[thread.ops[open.back()].slice.value]];
      open.pop_back();
    }
    op.end_ns = trace.End(op.slice);
    if (!open.empty() && op.end_ns > thread.ops[open.back()].end_ns) {
      op.end_ns = thread.ops[open.back()].end_ns;
      ++not_nested;
    }
    op.self_ns = op.end_ns - start;
    op.api_ns = api_total[i] = api.Within(start, op.end_ns);
    if (!open.empty()) {
      HostOp& parent = thread.ops[open.back()];
      parent.self_ns -= op.self_ns;
      parent.api_ns -= api_total[i];
    }
    int& same = open_names[trace.slices.name[op.slice.value]];
    op.outermost = same == 0;
    ++same;
    open.push_back(i);
    thread.self_ns += open.size() == 1 ? op.end_ns - start : 0;
  }
  return not_nested;
}

ThreadRole RoleOf(const Trace& trace, const HostThread& thread, bool has_step,
                  bool has_loader, bool only_collectives, size_t backward) {
  const trace::Track& track = trace.tracks[thread.track.value];
  const std::string_view name = trace.Text(track.thread_name);
  if (name.find("pt_autograd") != std::string_view::npos ||
      (thread.calls > 0 && 2 * backward > thread.calls))
    return ThreadRole::kBackward;
  if (has_step) return ThreadRole::kMain;
  if (has_loader) return ThreadRole::kLoader;
  if (only_collectives) return ThreadRole::kComm;
  return ThreadRole::kOther;
}

struct TrackEvents {
  std::vector<SliceId> ops, all, calls;
  bool step = false, loader = false, collectives = false, others = false;
  size_t backward = 0;
  bool under_backward = false;
};

constexpr std::string_view kBackward = "autograd::engine::evaluate_function";

struct NameFacts {
  bool collective = false, step = false, backward = false, loader = false;
};

NameFacts FactsOf(std::string_view name) {
  return {.collective = NamesCollective(name),
          .step = name.starts_with("ProfilerStep#"),
          .backward = name.starts_with(kBackward),
          .loader = name.starts_with("enumerate(DataLoader)")};
}

}  // namespace

std::string_view ThreadRoleName(ThreadRole role) {
  constexpr std::array<std::string_view, 5> kNames = {
      "main", "backward", "loader", "comm", "other"};
  return kNames[static_cast<size_t>(role)];
}

HostView HostView::Build(const Context& context) {
  const Trace& trace = context.trace;
  HostView view;
  std::vector<TrackEvents> tracks(trace.tracks.size());
  OfNames facts_of(trace, &FactsOf);
  const auto is_step = [&](SliceId s) {
    return facts_of(s).step || trace.Category(s) == trace::kStepCategory;
  };
  bool any = false;
  // Recorders of the system know no ops: ranges, calls of the runtime and of
  // the operating system are then what the host did.
  view.without_ops =
      std::find(trace.slices.kind.begin(), trace.slices.kind.end(),
                trace::Kind::kOp) == trace.slices.kind.end();
  const auto is_os_call = [&](SliceId s) {
    return trace.KindOf(s) == trace::Kind::kOther &&
           trace.Category(s) == trace::kOsCallCategory;
  };
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    const trace::Kind kind = trace.KindOf(s);
    const bool os_call = view.without_ops && is_os_call(s);
    if ((!IsHostEvent(kind) && !os_call) || trace.captured.Has(s)) continue;
    TrackEvents& track = tracks[trace.slices.track[i].value];
    track.all.push_back(s);
    if (!any) view.window = {trace.Start(s), trace.End(s)};
    any = true;
    view.window.start_ns = std::min(view.window.start_ns, trace.Start(s));
    view.window.end_ns = std::max(view.window.end_ns, trace.End(s));
    if (kind == trace::Kind::kOp ||
        (view.without_ops && kind != trace::Kind::kPython))
      track.ops.push_back(s);
    if (trace::IsApiCall(kind)) track.calls.push_back(s);
    const NameFacts facts = facts_of(s);
    if (kind == trace::Kind::kOp && facts.backward) ++track.backward;
    track.step = track.step || is_step(s);
    track.loader = track.loader || facts.loader;
    track.collectives = track.collectives || facts.collective;
    track.others = track.others || !facts.collective;
  }
  const auto by_start = [&](SliceId a, SliceId b) {
    if (trace.Start(a) != trace.Start(b))
      return trace.Start(a) < trace.Start(b);
    if (trace.Duration(a) != trace.Duration(b))
      return trace.Duration(a) > trace.Duration(b);
    return trace.Uid(a) < trace.Uid(b);
  };
  const auto union_of = [&](const std::vector<SliceId>& list) {
    std::vector<Interval> intervals;
    for (const SliceId s : list)
      intervals.push_back({trace.Start(s), trace.End(s)});
    return IntervalSet::Of(std::move(intervals));
  };
  std::vector<Interval> all_ops, all_events;
  absl::flat_hash_map<StringId, int64_t> self_by_name;
  const int64_t window = view.window.length_ns();
  for (uint32_t t = 0; t < tracks.size(); ++t) {
    TrackEvents& events = tracks[t];
    if (events.all.empty()) continue;
    std::sort(events.ops.begin(), events.ops.end(), by_start);
    HostThread thread;
    thread.track = trace::TrackId(t);
    thread.first_ns = INT64_MAX;
    thread.last_ns = INT64_MIN;
    for (const SliceId s : events.all) {
      thread.first_ns = std::min(thread.first_ns, trace.Start(s));
      thread.last_ns = std::max(thread.last_ns, trace.End(s));
      if (trace.KindOf(s) == trace::Kind::kPython) continue;
      all_events.push_back({trace.Start(s), trace.End(s)});
      if (window > 0 && !is_step(s)) {
        view.longest_share = std::max(view.longest_share,
                                      static_cast<double>(trace.Duration(s)) /
                                          static_cast<double>(window));
      }
    }
    thread.busy_ns = union_of(events.all).length_ns();
    thread.calls = events.ops.size();
    thread.events = events.all.size();
    for (const SliceId s : events.ops) {
      HostOp op;
      op.slice = s;
      thread.ops.push_back(op);
      all_ops.push_back({trace.Start(s), trace.End(s)});
    }
    view.not_nested += Nest(trace, Covered(union_of(events.calls)), thread);
    absl::flat_hash_set<StringId> names;
    for (const HostOp& op : thread.ops) {
      names.insert(trace.slices.name[op.slice.value]);
      self_by_name[trace.slices.name[op.slice.value]] += op.self_ns;
    }
    thread.names = names.size();
    thread.role = RoleOf(trace, thread, events.step, events.loader,
                         events.collectives && !events.others,
                         // Each evaluation holds two or more ops of its own.
                         events.backward * 3);
    view.self_ns += thread.self_ns;
    view.threads.push_back(std::move(thread));
  }
  // Without steps the thread with most ops is the main one.
  const bool has_main =
      std::any_of(view.threads.begin(), view.threads.end(),
                  [](const auto& t) { return t.role == ThreadRole::kMain; });
  if (!has_main) {
    HostThread* most = nullptr;
    for (HostThread& t : view.threads) {
      if (t.calls > 0 && t.role != ThreadRole::kBackward &&
          t.role != ThreadRole::kComm &&
          (most == nullptr || t.calls > most->calls))
        most = &t;
    }
    if (most != nullptr) most->role = ThreadRole::kMain;
  }
  view.ops = IntervalSet::Of(std::move(all_ops));
  view.events = IntervalSet::Of(std::move(all_events));
  for (const auto& [name, self] : self_by_name) {
    if (!view.top.valid() || self > view.top_self_ns ||
        (self == view.top_self_ns && trace.Text(name) < trace.Text(view.top))) {
      view.top = name;
      view.top_self_ns = self;
    }
  }
  return view;
}

namespace {

struct DeviceSource {
  std::string_view text;
  std::string_view reason;
};

// Categories in which Kineto's plug-ins write work of a device.
constexpr std::array<DeviceSource, 5> kDeviceCategories = {{
    {"mtia_workloadd", "counters of MTIA"},
    {"mtia_insight", "counters of MTIA"},
    {"mtia_counters", "counters of MTIA"},
    {"xpu_scope_profiler", "counters of XPU"},
    {trace::kCounterRangeCategory,
     "counters of kernels (CUPTI range profiler): no times of a timeline; "
     "their values are in counter_kernels of lamina host"},
}};

// Categories that the host writes beside those of Kind.
constexpr std::array<std::string_view, 9> kHostCategories = {
    "cuda_sync",       "cuda_event",       "gcu_sync",
    "collective_comm", "enqueue",          "cpu_instant_event",
    "dequeue",         "async_task_queue", "npu_sync"};

bool StartsWithWord(std::string_view text, std::string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() || text[word.size()] == ' ' ||
          (text[word.size()] >= '0' && text[word.size()] <= '9'));
}

// Whether a track is one of a device by what the recording calls it.
bool IsDeviceTrack(const Trace& trace, const trace::Track& track) {
  const std::string_view labels = trace.Text(track.process_labels);
  for (const std::string_view label : {"GPU", "NPU", "HPU", "XPU", "TPU"}) {
    if (StartsWithWord(labels, label)) return true;
  }
  const std::string_view process = trace.Text(track.process_name);
  for (const std::string_view name :
       {"GPU", "MTIA", "NPU", "HPU", "XPU", "Gaudi", "MLU", "MUSA"}) {
    if (StartsWithWord(process, name)) return true;
  }
  const std::string_view thread = trace.Text(track.thread_name);
  return thread.starts_with("stream ") || thread.starts_with("Stream ");
}

}  // namespace

std::vector<UnreadEvents> FindUnread(const Trace& trace) {
  // Tracks with host events that are read are no device tracks.
  std::vector<bool> host(trace.tracks.size());
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (IsHostEvent(trace.slices.kind[i]))
      host[trace.slices.track[i].value] = true;
  }
  struct Found {
    UnreadEvents events;
    std::vector<Interval> intervals;
  };
  std::map<std::pair<std::string, std::string>, Found> found;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    if (trace.slices.kind[i] != trace::Kind::kOther) continue;
    const std::string_view category = trace.Category(s);
    if (category == trace::kOsCallCategory ||
        category == trace::kThreadStateCategory)
      continue;  // what lamina host reads
    const trace::Track& track = trace.TrackOf(s);
    std::string process(trace.Text(track.process_name));
    if (process.empty())
      process = "process " + std::string(trace.Text(track.pid));
    const auto known = std::find_if(
        kDeviceCategories.begin(), kDeviceCategories.end(),
        [&](const auto& source) { return source.text == category; });
    const std::string_view name = trace.Name(s);
    std::string_view reason;
    bool device = false;
    if (known != kDeviceCategories.end()) {
      device = true;
      reason = known->reason;
    } else if (std::find(kHostCategories.begin(), kHostCategories.end(),
                         category) != kHostCategories.end()) {
      reason = "host ranges that no table uses";
    } else if (process == "Overlap Analysis") {
      reason = "sums of the profiler over device work: no events";
    } else if (process == "Ascend Hardware") {
      device = true;
      reason = "kernels and copies of Ascend";
    } else if (name.ends_with(" Cmpt Exec")) {
      device = true;
      reason = "kernels of IBM AIU";
    } else if (name.ends_with(" DmaI") || name.ends_with(" DmaO")) {
      device = true;
      reason = "transfers of IBM AIU";
    } else if (name.ends_with(" Cmpt Prep")) {
      reason = "preparation of kernels of IBM AIU: not work";
    } else if (!host[trace.slices.track[i].value] &&
               IsDeviceTrack(trace, track)) {
      device = true;
      reason = "a track of a device, of a category that is not known";
    } else {
      reason = "a category that is not known";
    }
    std::string key = category.empty() ? process : std::string(category);
    if (category.empty() && !reason.empty()) key += "\t" + std::string(reason);
    Found& f = found[{std::move(key), process}];
    if (f.events.events == 0) {
      f.events.source = category.empty() ? process : std::string(category);
      f.events.category = category;
      f.events.process = process;
      f.events.device = device;
      f.events.first = s;
      f.events.reason = reason;
    }
    ++f.events.events;
    f.events.time_ns += trace.Duration(s);
    f.intervals.push_back({trace.Start(s), trace.End(s)});
  }
  std::vector<UnreadEvents> out;
  for (auto& [key, f] : found) {
    f.events.busy_ns = IntervalSet::Of(std::move(f.intervals)).length_ns();
    out.push_back(std::move(f.events));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const UnreadEvents& a, const UnreadEvents& b) {
                     if (a.device != b.device) return a.device;
                     return a.time_ns > b.time_ns;
                   });
  return out;
}

}  // namespace lamina::analysis
