// SPDX-License-Identifier: Apache-2.0
//
// The tables of idle time: causes, gaps and their parts, summed by what is
// asked for. One file, because all of them walk the same parts once.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "analysis/common/lost_work.h"
#include "analysis/common/stats.h"
#include "analysis/host/launch_annotations.h"
#include "analysis/host/steady.h"
#include "analysis/host/sync_cost.h"
#include "analysis/host/tables.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::analysis::host {
namespace {

Schema CausesSchema() {
  return {
      "idle_causes",
      "Idle time of the devices by what caused it; the rows of one scope and "
      "device add up to its idle time.",
      {{"scope", ColumnType::kText,
        "device: over the union of its streams; stream; or what --by names: "
        "the gaps of a device by the step, layer, annotation or op whose "
        "launch ended them."},
       {"device", ColumnType::kText, "process:device."},
       {"stream", ColumnType::kInt, "Stream; empty: all.", Shown::kHidden},
       {"name", ColumnType::kText, "Step, layer, annotation or op."},
       {"cause", ColumnType::kText,
        "unlinked, graph, memcpy, sync, no_work, host_bound, launch_overhead, "
        "dependency, kernel_wait or submitted_wait (docs/host.md)."},
       {"activity", ColumnType::kText,
        "Of host_bound: what the launching thread did, by rule (data_loader "
        "...), or op, call, python, annotation, os_call, slow_launch, "
        "preempted, blocked, off_processor, running, other_thread, nothing."},
       {"detail", ColumnType::kText,
        "The op, call, frame or range that took most of it."},
       {"gaps", ColumnType::kInt, "Gaps with a part of this row."},
       {"time_us", ColumnType::kTime, "Sum of the parts."},
       {"idle_percent", ColumnType::kReal, "Share of the idle time.",
        Shown::kBar},
       {"span_percent", ColumnType::kReal,
        "Share of the time from the first start to the last end.",
        Shown::kPercent},
       {"after_sync_us", ColumnType::kTime,
        "Of host_bound: behind a blocking call that drained the device."},
       {"largest_us", ColumnType::kTime, "Longest part."},
       {"largest_uid", ColumnType::kInt,
        "Event number of the work that ended the gap of the longest part.",
        Shown::kHidden}}};
}

Schema GapsSchema() {
  return {"idle_gaps",
          "The longest gaps with their parts.",
          {{"device", ColumnType::kText, "process:device."},
           {"start_us", ColumnType::kTime,
            "Begin, from the first event of the trace."},
           {"dur_us", ColumnType::kTime, "Length."},
           {"cause", ColumnType::kText, "Cause of the largest part."},
           {"parts", ColumnType::kText,
            "Every cause with its time, cause or cause/activity:us."},
           {"host_event", ColumnType::kText,
            "What the launching thread did in the largest part."},
           {"thread", ColumnType::kText, "Launching thread."},
           {"step", ColumnType::kInt, "Step of the launch."},
           {"next_kernel", ColumnType::kText, "The work that ended the gap."},
           {"stream", ColumnType::kInt, "Its stream."},
           {"module", ColumnType::kText, "nn.Module that launched it."},
           {"evidence", ColumnType::kText, "What says so."},
           {"prev_uid", ColumnType::kInt,
            "Event number of the work before the gap.", Shown::kHidden},
           {"next_uid", ColumnType::kInt, "Event number of the work behind it.",
            Shown::kHidden},
           {"launch_uid", ColumnType::kInt, "Event number of its launch call.",
            Shown::kHidden}}};
}

Schema PartsSchema() {
  return {"idle_parts",
          "Every part of every gap of a device; the parts tile the gap.",
          {{"device", ColumnType::kText, "process:device."},
           {"gap", ColumnType::kInt, "Number of the gap, from 0 by time."},
           {"cause", ColumnType::kText, "As in idle_causes."},
           {"activity", ColumnType::kText, "As in idle_causes."},
           {"detail", ColumnType::kText, "As in idle_causes."},
           {"start_us", ColumnType::kTime,
            "Begin, from the first event of the trace."},
           {"dur_us", ColumnType::kTime, "Length."},
           {"after_sync", ColumnType::kBool,
            "Behind a blocking call that drained the device."},
           {"next_uid", ColumnType::kInt,
            "Event number of the work that ended the gap."},
           {"prev_uid", ColumnType::kInt,
            "Event number of the work before the gap.", Shown::kHidden},
           {"launch_uid", ColumnType::kInt,
            "Event number of the call that launched the next work.",
            Shown::kHidden},
           {"track_id", ColumnType::kInt,
            "Thread of that call, a row of track.", Shown::kHidden},
           {"sync_uid", ColumnType::kInt,
            "The blocking call without which, and without those before it, "
            "the same host would not leave this idle time.",
            Shown::kHidden},
           {"step", ColumnType::kInt, "Step of the launch.", Shown::kHidden},
           {"steady", ColumnType::kBool,
            "In the steady part: of a step that is no warm-up and not cut, or "
            "of a recording without steps.",
            Shown::kHidden},
           {"edge", ColumnType::kBool,
            "The work before the gap is of another step.", Shown::kHidden},
           {"main_activity", ColumnType::kText,
            "Activity of the part that holds half of what the host and its "
            "launches take of the gap.",
            Shown::kHidden},
           {"main_detail", ColumnType::kText, "Its detail.", Shown::kHidden}}};
}

// Sums of one row of idle_causes.
struct Row {
  int64_t time_ns = 0;
  int64_t after_ns = 0;
  int64_t largest_ns = 0;
  int64_t gaps = 0;
  uint32_t last_gap = kNone;
  uint32_t largest_gap = kNone;
};

// Within a scope: cause, then what the host did.
struct Key {
  uint32_t device = 0;
  uint32_t name = 0;
  Cause cause = Cause::kUnlinked;
  uint32_t activity = kNone;
  auto operator<=>(const Key&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.device, key.name, key.cause,
                      key.activity);
  }
};

class Tables {
 public:
  Tables(const HostModel& model, const Idle& idle, const TableOptions& options)
      : model_(model),
        trace_(model.trace()),
        idle_(idle),
        options_(options),
        causes_(CausesSchema()) {}

  ResultSet Make() {
    GroupActivities();
    names_ = {""};
    Fold("device", [](const Gap&) { return 0u; });
    if (options_.by == "stream") {
      Streams();
    } else if (options_.by != "device") {
      std::vector<uint32_t> group;
      Names(group);
      Fold(options_.by, [&](const Gap& gap) {
        return group[static_cast<size_t>(&gap - idle_.gaps.data())];
      });
    }
    ResultSet result;
    result.tables.push_back(std::move(causes_));
    result.tables.push_back(Longest());
    if (options_.events) result.tables.push_back(Parts());
    Say(result);
    return result;
  }

  Table Parts() const;
  Table Longest() const;

 private:
  bool Wanted(const Gap& gap) const {
    return !options_.step ||
           model_.context().steps.StepOf(gap.next) == *options_.step;
  }

  // Activities of one kind are one row; it names the largest detail.
  void GroupActivities() {
    std::map<std::string, uint32_t> known;
    std::vector<int64_t> times(idle_.activities.size(), 0);
    for (const Part& part : idle_.parts) {
      if (part.activity != kNone && Wanted(idle_.gaps[part.gap]))
        times[part.activity] += part.length_ns;
    }
    for (uint32_t i = 0; i < idle_.activities.size(); ++i) {
      const Activity& activity = idle_.activities[i];
      const auto [it, is_new] = known.try_emplace(
          activity.what, static_cast<uint32_t>(kinds_.size()));
      if (is_new) kinds_.push_back(i);
      kind_of_.push_back(it->second);
      if (times[i] > times[kinds_[it->second]]) kinds_[it->second] = i;
    }
  }

  void Names(std::vector<uint32_t>& group) {
    std::map<std::string, uint32_t> known;
    names_.clear();
    const LaunchAnnotations annotations = options_.by == "annotation"
                                              ? LaunchAnnotations(model_)
                                              : LaunchAnnotations();
    const auto& steps = model_.context().steps;
    for (const Gap& gap : idle_.gaps) {
      std::string name;
      if (options_.by == "step") {
        const uint32_t step = steps.StepOf(gap.next);
        name = step == tree::Steps::kOutside
                   ? "(outside)"
                   : std::string(trace_.Name(steps.steps()[step].slice));
      } else if (options_.by == "layer") {
        name = options_.layer_of ? options_.layer_of(gap.next) : "";
        if (name.empty()) name = "(outside)";
      } else if (options_.by == "annotation") {
        const SliceId range = annotations.Of(gap.next);
        name = range.valid() ? std::string(trace_.Name(range)) : "(outside)";
      } else {
        const NodeId launcher = model_.context().device.launcher(gap.next);
        name = launcher.valid()
                   ? std::string(model_.context().tree.name(launcher))
                   : "(unlinked)";
      }
      const auto [it, is_new] =
          known.try_emplace(name, static_cast<uint32_t>(names_.size()));
      if (is_new) names_.push_back(name);
      group.push_back(it->second);
    }
  }

  template <class NameOf>
  void Fold(const std::string& scope, const NameOf& name_of) {
    absl::flat_hash_map<Key, size_t> known;
    std::vector<std::pair<Key, Row>> sorted;
    // The row that a cause or activity had last: mostly that of the next part.
    std::vector<size_t> near(kCauses + kinds_.size(), 0);
    for (const Part& part : idle_.parts) {
      const Gap& gap = idle_.gaps[part.gap];
      if (!Wanted(gap)) continue;
      Key key;
      key.device = gap.device;
      key.name = name_of(gap);
      key.cause = part.cause;
      if (part.activity != kNone) key.activity = kind_of_[part.activity];
      size_t& at = near[key.activity == kNone ? static_cast<size_t>(key.cause)
                                              : kCauses + key.activity];
      if (at == sorted.size() || sorted[at].first != key) {
        const auto [it, is_new] = known.try_emplace(key, sorted.size());
        if (is_new) sorted.emplace_back(key, Row());
        at = it->second;
      }
      Row& row = sorted[at].second;
      row.time_ns += part.length_ns;
      if (part.after_sync) row.after_ns += part.length_ns;
      if (row.last_gap != part.gap) ++row.gaps;
      row.last_gap = part.gap;
      if (part.length_ns > row.largest_ns) {
        row.largest_ns = part.length_ns;
        row.largest_gap = part.gap;
      }
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::map<std::pair<uint32_t, uint32_t>, int64_t> sums;
    for (const auto& [key, row] : sorted)
      sums[{key.device, key.name}] += row.time_ns;
    // Groups by their idle time, rows of a group by theirs.
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const auto& a, const auto& b) {
                       if (a.first.device != b.first.device)
                         return a.first.device < b.first.device;
                       if (a.first.name != b.first.name) {
                         const int64_t x = sums[{a.first.device, a.first.name}];
                         const int64_t y = sums[{b.first.device, b.first.name}];
                         return x != y ? x > y : a.first.name < b.first.name;
                       }
                       return a.second.time_ns > b.second.time_ns;
                     });
    for (const auto& [key, row] : sorted) {
      const IdleSum& device = idle_.devices[key.device];
      const Activity* activity = key.activity == kNone
                                     ? nullptr
                                     : &idle_.activities[kinds_[key.activity]];
      causes_.Add(
          scope, model_.devices()[key.device].name, std::nullopt,
          names_[key.name], CauseName(key.cause),
          activity == nullptr ? Value() : Value(activity->what),
          activity == nullptr ? Value() : Value(activity->detail), row.gaps,
          row.time_ns, PercentOf(row.time_ns, sums[{key.device, key.name}]),
          PercentOf(row.time_ns, device.span_ns),
          key.cause == Cause::kHostBound ? Value(row.after_ns) : Value(),
          row.largest_ns, trace_.Uid(idle_.gaps[row.largest_gap].next));
    }
  }

  void Streams() {
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      const IdleSum sum = StreamIdle(model_, i);
      std::array<size_t, kCauses> order{};
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return sum.times[a] > sum.times[b];
      });
      for (const size_t c : order) {
        if (sum.times[c] == 0) continue;
        causes_.Add("stream", model_.devices()[model_.facts(i).device].name,
                    trace_.streams[i].stream, "",
                    CauseName(static_cast<Cause>(c)), std::nullopt,
                    std::nullopt, sum.counts[c], sum.times[c],
                    PercentOf(sum.times[c], sum.idle_ns()),
                    PercentOf(sum.times[c], sum.span_ns), std::nullopt,
                    sum.largest[c], trace_.Uid(sum.largest_next[c]));
      }
    }
  }

  std::string What(const Part& part) const {
    std::string text(CauseName(part.cause));
    if (part.activity != kNone)
      text += "/" + idle_.activities[part.activity].what;
    return text;
  }

  std::optional<std::string> ModuleOf(SliceId work) const {
    const NodeId launcher = model_.context().device.launcher(work);
    if (!launcher.valid()) return std::nullopt;
    const auto& modules = model_.context().modules;
    const auto owner = modules.OwnerOf(launcher);
    if (!owner.path.valid()) return std::nullopt;
    return modules.PathText(owner.path);
  }

  void AddGap(Table& table, uint32_t g) const {
    const Gap& gap = idle_.gaps[g];
    // Parts of one kind together, the largest first.
    struct Sum {
      std::string what;
      int64_t ns = 0;
      const Part* largest = nullptr;
    };
    std::vector<Sum> sums;
    for (uint32_t p = idle_.first_part[g]; p < idle_.first_part[g + 1]; ++p) {
      const Part& part = idle_.parts[p];
      const std::string what = What(part);
      auto it = std::find_if(sums.begin(), sums.end(),
                             [&](const Sum& s) { return s.what == what; });
      if (it == sums.end()) it = sums.insert(sums.end(), {what, 0, nullptr});
      it->ns += part.length_ns;
      if (it->largest == nullptr || part.length_ns > it->largest->length_ns)
        it->largest = &part;
    }
    std::stable_sort(sums.begin(), sums.end(),
                     [](const Sum& a, const Sum& b) { return a.ns > b.ns; });
    std::string parts;
    for (const Sum& sum : sums) {
      parts += (parts.empty() ? "" : ", ") + sum.what + ":" +
               FormatMicroseconds(sum.ns);
    }
    const Part& main = *sums[0].largest;
    const uint32_t c = model_.call(gap.next);
    const Call* call = c == kNone ? nullptr : &model_.calls()[c];
    const auto& steps = model_.context().steps;
    const uint32_t step = steps.StepOf(gap.next);
    std::string thread;
    if (call != nullptr) {
      const trace::Track& track = trace_.TrackOf(call->slice);
      thread = trace_.Text(track.thread_name.valid() ? track.thread_name
                                                     : track.tid);
    }
    table.Add(
        model_.devices()[gap.device].name,
        gap.interval.start_ns - trace_.first_ns, gap.interval.length_ns(),
        CauseName(main.cause), parts,
        main.activity == kNone ? Value()
                               : Value(idle_.activities[main.activity].detail),
        thread, steps.NumberOf(step), trace_.Name(gap.next),
        trace_.streams[model_.stream(gap.next)].stream, ModuleOf(gap.next),
        Evidence(gap, main, call), trace_.Uid(gap.before), trace_.Uid(gap.next),
        call == nullptr ? Value() : Value(trace_.EventOf(call->slice)));
  }

  std::string Evidence(const Gap& gap, const Part& part,
                       const Call* call) const {
    if (call == nullptr) return "no launch call in the file";
    const std::string api =
        fmt::format("{}, {}", trace_.Name(call->slice),
                    HumanTime(trace_.Duration(call->slice)));
    switch (part.cause) {
      case Cause::kGraph:
        return "spacing inside one " + std::string(trace_.Name(call->slice));
      case Cause::kSubmittedWait:
        return fmt::format("submitted {} before it started",
                           HumanTime(trace_.Start(gap.next) - call->submit_ns));
      case Cause::kNoWork:
        return "no event on any thread";
      case Cause::kDependency:
        return model_.Dependencies(gap.next).empty()
                   ? "work of another stream ended just before"
                   : "recorded wait for another stream";
      default:
        if (call->slow && part.start_ns >= trace_.Start(call->slice))
          return api + ", slow call on the launching thread";
        return "launched by " + api + ", " +
               HumanTime(std::max<int64_t>(
                   0, gap.interval.end_ns - trace_.Start(call->slice))) +
               " before the start";
    }
  }

  // By gap: the activity of the part that holds half of the time for which
  // the host and its launches are to blame; kNone without such a part.
  std::vector<uint32_t> MainActivities() const {
    std::vector<int64_t> sum(idle_.gaps.size(), 0), longest(sum);
    std::vector<uint32_t> main(sum.size(), kNone);
    for (const Part& part : idle_.parts) {
      if (part.cause != Cause::kHostBound && part.cause != Cause::kSync &&
          part.cause != Cause::kMemcpy && part.cause != Cause::kNoWork &&
          part.cause != Cause::kLaunchOverhead)
        continue;
      sum[part.gap] += part.length_ns;
      if (part.length_ns <= longest[part.gap]) continue;
      longest[part.gap] = part.length_ns;
      main[part.gap] = part.activity;
    }
    for (size_t g = 0; g < sum.size(); ++g) {
      if (2 * longest[g] < sum[g]) main[g] = kNone;
    }
    return main;
  }

  void Say(ResultSet& result) const { result.notes = IdleNotes(model_, idle_); }

  const HostModel& model_;
  const Trace& trace_;
  const Idle& idle_;
  const TableOptions& options_;
  Table causes_;
  std::vector<uint32_t> kind_of_;  // by activity: of kinds_
  std::vector<uint32_t> kinds_;    // activity with the largest detail
  std::vector<std::string> names_;
};

Table Tables::Longest() const {
  constexpr size_t kMost = 100;
  std::vector<uint32_t> order;
  for (uint32_t g = 0; g < idle_.gaps.size(); ++g) {
    if (Wanted(idle_.gaps[g])) order.push_back(g);
  }
  const auto length = [&](uint32_t g) {
    return idle_.gaps[g].interval.length_ns();
  };
  const size_t keep =
      std::min(order.size(), options_.top > 0 ? options_.top : kMost);
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(keep),
                    order.end(), [&](uint32_t a, uint32_t b) {
                      return length(a) != length(b) ? length(a) > length(b)
                                                    : a < b;
                    });
  order.resize(keep);
  Table table(GapsSchema());
  for (const uint32_t g : order) AddGap(table, g);
  return table;
}

Table Tables::Parts() const {
  Table table(PartsSchema());
  const std::vector<uint32_t> main = MainActivities();
  const auto& steps = model_.context().steps;
  const auto flags = FlagSteps(model_);
  const auto syncs = SyncOfParts(model_, idle_);
  const auto uid = [&](SliceId s) {
    return s.valid() ? Value(trace_.EventOf(s)) : Value();
  };
  for (size_t p = 0; p < idle_.parts.size(); ++p) {
    const Part& part = idle_.parts[p];
    const Gap& gap = idle_.gaps[part.gap];
    if (!Wanted(gap)) continue;
    const uint32_t c = model_.call(gap.next);
    const SliceId call = c == kNone ? SliceId() : model_.calls()[c].slice;
    const uint32_t step = steps.StepOf(gap.next);
    const auto activity_of = [&](uint32_t number) -> const Activity* {
      return number == kNone ? nullptr : &idle_.activities[number];
    };
    const Activity* const activity = activity_of(part.activity);
    const Activity* const most = activity_of(main[part.gap]);
    table.Add(
        model_.devices()[gap.device].name, part.gap, CauseName(part.cause),
        activity == nullptr ? Value() : Value(activity->what),
        activity == nullptr ? Value() : Value(activity->detail),
        part.start_ns - trace_.first_ns, part.length_ns, part.after_sync,
        trace_.Uid(gap.next), uid(gap.before), uid(call),
        call.valid() ? Value(trace_.slices.track[call.value].value) : Value(),
        uid(syncs[p]), steps.NumberOf(step), IsSteady(model_, flags, gap.next),
        gap.before.valid() && steps.StepOf(gap.before) != step,
        most == nullptr ? Value() : Value(most->what),
        most == nullptr ? Value() : Value(most->detail));
  }
  return table;
}

// "the data loader" for "data_loader".
std::string Words(std::string_view what) {
  std::string text(what);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::vector<IdleShare> IdleShares(const HostModel& model, const Idle& idle) {
  (void)model;
  // Texts once per activity, not once per part.
  std::vector<CauseTimes> times(idle.activities.size() + 1);
  for (const Part& part : idle.parts) {
    const size_t activity =
        part.activity == kNone ? idle.activities.size() : part.activity;
    times[activity][static_cast<size_t>(part.cause)] += part.length_ns;
  }
  std::map<std::pair<Cause, std::string>, IdleShare> sums;
  std::map<std::pair<Cause, std::string>, std::map<std::string, int64_t>> names;
  for (size_t i = 0; i < times.size(); ++i) {
    for (size_t c = 0; c < kCauses; ++c) {
      const int64_t ns = times[i][c];
      if (ns == 0) continue;
      std::pair<Cause, std::string> key{static_cast<Cause>(c), ""};
      if (i < idle.activities.size()) {
        key.second = idle.activities[i].what;
        names[key][idle.activities[i].detail] += ns;
      }
      IdleShare& share = sums[key];
      share.cause = key.first;
      share.activity = key.second;
      share.time_ns += ns;
    }
  }
  std::vector<IdleShare> out;
  for (auto& [key, share] : sums) {
    int64_t most = 0;
    for (const auto& [name, ns] : names[key]) {
      if (ns > most) {
        most = ns;
        share.detail = name;
      }
    }
    out.push_back(std::move(share));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const IdleShare& a, const IdleShare& b) {
                     return a.time_ns > b.time_ns;
                   });
  return out;
}

std::string ShareText(const IdleShare& share) {
  const std::string detail = Shorten(share.detail, 60);
  const auto with = [&](const std::string& text) {
    return detail.empty() ? text : text + " (" + detail + ")";
  };
  switch (share.cause) {
    case Cause::kUnlinked:
      return "before work without a launch in the file";
    case Cause::kGraph:
      return "between the kernels of graph launches";
    case Cause::kMemcpy:
      return "waiting for copies";
    case Cause::kSync:
      return "the host waited for the device before it launched on";
    case Cause::kNoWork:
      return "nothing recorded on any thread";
    case Cause::kLaunchOverhead:
      return "launch overhead";
    case Cause::kDependency:
      return "waiting for other streams";
    case Cause::kKernelWait:
      return "spacing between kernels";
    case Cause::kSubmittedWait:
      return "submitted work that did not start";
    case Cause::kHostBound:
      break;
  }
  if (share.activity == "op") return with("the host ran ops");
  if (share.activity == "call") return with("the host sat in calls");
  if (share.activity == "python") return with("the host ran Python");
  if (share.activity == "annotation") return with("the host was in a range");
  if (share.activity == "slow_launch") return with("slow launch calls");
  if (share.activity == "os_call")
    return with("the host sat in calls of the operating system");
  if (share.activity == "preempted")
    return with("the launching thread had no processor");
  if (share.activity == "blocked") return with("the launching thread waited");
  if (share.activity == "off_processor")
    return with("the launching thread was off its processor");
  if (share.activity == "running")
    return "the launching thread ran what is not recorded";
  if (share.activity == "other_thread")
    return with("another thread worked before the launch");
  if (share.activity == "nothing" || share.activity.empty())
    return "nothing recorded on the launching thread";
  return with(Words(share.activity));
}

namespace {

// Whether everything that idle time is made from begins and ends at a whole
// microsecond. Of a few events that says nothing.
bool InMicroseconds(const HostModel& model) {
  constexpr size_t kLeast = 8;
  constexpr int64_t kUnit = 1000;
  const Trace& trace = model.trace();
  const auto whole = [&](SliceId s) {
    return (trace.Start(s) - trace.first_ns) % kUnit == 0 &&
           trace.Duration(s) % kUnit == 0;
  };
  const auto work = trace.device_slices();
  return work.size() >= kLeast &&
         std::all_of(work.begin(), work.end(), whole) &&
         std::all_of(model.calls().begin(), model.calls().end(),
                     [&](const Call& call) { return whole(call.slice); });
}

}  // namespace

std::optional<Note> ClockNote(const HostModel& model) {
  constexpr int64_t kShownNs = 1000;  // of recordings in whole microseconds
  const HostModel::Returns& returns = model.returns();
  const auto early = static_cast<int64_t>(returns.early_ns.size());
  if (20 * early <= returns.calls) return std::nullopt;
  const int64_t median = Pick(returns.early_ns, 0.5);
  if (median <= kShownNs) return std::nullopt;
  return MakeNote(
      Severity::kWarning, "clocks_differ",
      "Host and device clocks differ: of " +
          Counted(static_cast<uint64_t>(returns.calls), "call") +
          " that wait for the device " +
          Counted(static_cast<uint64_t>(early), "returns", "return") +
          " before its work has ended, by " + HumanTime(median) +
          " (median). Times from launch to start may be wrong by that.",
      {{"launch_apis", "latency_median_us", {}, {}}});
}

std::string LargestCauses(const HostModel& model, const Idle& idle) {
  constexpr size_t kMostCauses = 3;
  constexpr int64_t kLeastPercent = 5;
  int64_t total = 0;
  for (const IdleSum& sum : idle.devices) total += sum.idle_ns();
  std::string text;
  const auto shares = IdleShares(model, idle);
  for (size_t i = 0; i < shares.size() && i < kMostCauses; ++i) {
    if (i > 0 && shares[i].time_ns * 100 < total * kLeastPercent) break;
    text +=
        fmt::format("{}{:.0f} % {}", text.empty() ? "" : "; ",
                    PercentOf(shares[i].time_ns, total), ShareText(shares[i]));
  }
  return text;
}

std::vector<Note> IdleNotes(const HostModel& model, const Idle& idle) {
  std::vector<Note> notes;
  int64_t span = 0, total = 0;
  for (const IdleSum& sum : idle.devices) {
    span += sum.span_ns;
    total += sum.idle_ns();
  }
  if (total == 0) return notes;
  std::string text = fmt::format(
      "{} idle {} of {} ({:.{}f} %)",
      idle.devices.size() == 1 ? "The device is" : "The devices are",
      HumanTime(total), HumanTime(span), PercentOf(total, span),
      PercentOf(total, span) < 1 ? 1 : 0);
  const std::string causes = LargestCauses(model, idle);
  if (!causes.empty()) text += ": " + causes;
  notes.push_back(MakeNote(Severity::kVerdict, "idle_causes", text + ".",
                           {{"idle_causes", "scope", "device", {}}}));
  int64_t unexplained = 0;
  for (const IdleSum& sum : idle.devices)
    unexplained += sum.times[static_cast<size_t>(Cause::kSubmittedWait)];
  // Above this share of the idle time, and where launches lack their work,
  // records are likely to be missing; below this share of all time nobody
  // misses them. A wait alone proves nothing: what it waits for may not be
  // recorded.
  constexpr int64_t kMissingPercent = 20;
  constexpr int64_t kWorthPercent = 1;
  if (FindLaunchesWithoutWork(model.context().tree).without > 0 &&
      unexplained * 100 > total * kMissingPercent &&
      unexplained * 100 > span * kWorthPercent) {
    notes.push_back(MakeNote(
        Severity::kWarning, "device_records_missing",
        fmt::format("Device records may be missing: {:.0f} % of the idle time "
                    "({}) lies before work that was submitted, on a free "
                    "stream, and nothing recorded explains it.",
                    PercentOf(unexplained, total), HumanTime(unexplained)),
        {{"idle_causes", "cause", "submitted_wait", {}}}));
  }
  const auto& counts = model.counts();
  const auto early = counts.find("starts_before_call");
  if (early != counts.end()) {
    notes.push_back(MakeNote(
        Severity::kInfo, "starts_before_call",
        Counted(static_cast<uint64_t>(early->second), "device event") +
            " began before the call that launched it: the clocks of host and "
            "device differ a little.",
        {{"launch_apis", "", "", {}}}));
  }
  if (auto clocks = ClockNote(model)) notes.push_back(std::move(*clocks));
  if (InMicroseconds(model)) {
    notes.push_back(MakeNote(
        Severity::kInfo, "time_resolution",
        "1 us resolution: the recording has whole microseconds only. Floors of "
        "launching and of spacing may be 0, and shorter gaps than that are not "
        "seen.",
        {{"launch_apis", "", "", {}}}));
  }
  return notes;
}

ResultSet IdleTables(const HostModel& model, const Idle& idle,
                     const TableOptions& options) {
  return Tables(model, idle, options).Make();
}

std::span<const std::string_view> EventTables() {
  static constexpr std::string_view kNames[] = {
      "idle_parts", "launch_events", "queue_depth_series", "comm_events",
      "counter_kernels"};
  return kNames;
}

Table IdleGapsTable(const HostModel& model, const Idle& idle,
                    const TableOptions& options) {
  return Tables(model, idle, options).Longest();
}

Table IdlePartsTable(const HostModel& model, const Idle& idle) {
  return Tables(model, idle, {}).Parts();
}

std::vector<Schema> IdlePartsSchemas() { return {PartsSchema()}; }

std::vector<Schema> IdleSchemas() {
  return {CausesSchema(), GapsSchema(), PartsSchema()};
}

}  // namespace lamina::analysis::host
