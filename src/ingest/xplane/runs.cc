// SPDX-License-Identifier: Apache-2.0
//
// An instruction may launch several kernels, and its costs belong to all of
// them together: a run is a stretch of launches of one device, in the order of
// their correlation, that carry the same instruction. It ends where the
// execution of the program ends, as far as host ranges show that. A run
// becomes an op on the thread of its calls and spans them.
//
// There may be as many of these rows as events, so each list is sorted in
// place, back to front, and given back while it turns into the next.
#include "ingest/xplane/runs.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "ingest/xplane/executions.h"

namespace lamina::ingest::xplane {

using trace::kNoInt;
using trace::kNoRow;

namespace {

// From now on the rows of devices are in the order of their numbers.
void OrderDevices(Pending& pending) {
  auto& devices = pending.devices;
  std::vector<uint32_t> order(devices.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return devices[a] < devices[b]; });
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::sort(devices.begin(), devices.end());
  for (Launch& launch : pending.launches) launch.device = place[launch.device];
  for (Run& run : pending.runs) run.device = place[run.device];
  for (NamelessKernel& kernel : pending.nameless)
    kernel.device = place[kernel.device];
}

// In order of track and time, as they are written later.
void SortCalls(Waiting<Call>& calls) {
  const auto less = [](const Call& a, const Call& b) {
    return std::tuple(a.track, a.start_ns, -a.end_ns, a.offset) <
           std::tuple(b.track, b.start_ns, -b.end_ns, b.offset);
  };
  if (!std::is_sorted(calls.begin(), calls.end(), less))
    std::sort(calls.begin(), calls.end(), less);
}

// A kernel without an instruction takes the one that its name has everywhere
// else, when that is exactly one.
void NameKernels(Pending& pending) {
  if (pending.nameless.empty()) return;
  constexpr uint32_t kSeveral = kNoRow - 1;
  absl::flat_hash_map<StringId, uint32_t> by_kernel;
  for (const Launch& launch : pending.launches) {
    const auto [it, is_new] =
        by_kernel.try_emplace(launch.kernel, launch.instruction);
    if (!is_new && it->second != launch.instruction) it->second = kSeveral;
  }
  for (uint32_t i = 0; i < pending.nameless.size(); ++i) {
    const NamelessKernel& kernel = pending.nameless[i];
    const auto it = by_kernel.find(kernel.name);
    if (it == by_kernel.end() || it->second == kSeveral) continue;
    pending.launches.push_back({kernel.args.correlation, kernel.start_ns,
                                kernel.device, it->second, i, kernel.name});
  }
}

// Calls by their correlation. Launches of one device ask in order, so a search
// begins at the last answer.
class CallsByCorrelation {
 public:
  explicit CallsByCorrelation(Waiting<Call>& calls) : calls_(calls) {
    LAMINA_CHECK(calls.size() < kNoRow);
    entries_.reserve(calls.size());
    for (uint32_t i = 0; i < calls.size(); ++i)
      entries_.push_back({calls[i].correlation, i});
    const auto less = [&](const Entry& a, const Entry& b) {
      return std::tuple(a.correlation, calls[a.row].start_ns, a.row) <
             std::tuple(b.correlation, calls[b.row].start_ns, b.row);
    };
    if (!std::is_sorted(entries_.begin(), entries_.end(), less))
      std::sort(entries_.begin(), entries_.end(), less);
  }

  // The first call with a correlation; null where there is none.
  Call* Find(int64_t correlation) {
    const auto before = [&](const Entry& entry) {
      return entry.correlation < correlation;
    };
    size_t low = at_ < entries_.size() && before(entries_[at_]) ? at_ : 0;
    size_t high = entries_.size();
    for (size_t step = 1; low + step < high; step *= 2) {
      if (!before(entries_[low + step])) {
        high = low + step;
        break;
      }
      low += step;
    }
    const Entry* const found = std::partition_point(
        entries_.begin() + low, entries_.begin() + high, before);
    at_ = static_cast<size_t>(found - entries_.begin());
    return found != entries_.end() && found->correlation == correlation
               ? &calls_[found->row]
               : nullptr;
  }

 private:
  struct Entry {
    int64_t correlation;
    uint32_t row;
  };

  Waiting<Call>& calls_;
  PodVector<Entry> entries_;
  size_t at_ = 0;  // of the last answer
};

// Joins launches, in their order, to runs.
class RunMaker {
 public:
  explicit RunMaker(Pending& pending)
      : pending_(pending),
        executions_(pending),
        calls_(pending.calls),
        runs_(std::move(pending.runs)) {
    for (Run& run : runs_) run.execution = kNoRow;
  }

  // The launch becomes part of the last run, or the next one.
  void Add(const Launch& launch) {
    Call* call = nullptr;
    // A kernel found by name has a call that launched something else.
    if (launch.nameless == kNoRow) {
      call = calls_.Find(launch.correlation);
      if (call == nullptr) {
        open_ = false;
        return;  // no call: a row of the timeline, and unlinked
      }
    }
    const uint32_t execution = call != nullptr ? executions_.Of(*call) : kNoRow;
    if (!open_ || !GoesOn(launch, call, execution)) {
      Run run;
      run.device = launch.device;
      run.instruction = launch.instruction;
      runs_.push_back(run);
      open_ = true;
    }
    Run& run = runs_.back();
    if (call == nullptr) {
      if (run.external_id == kNoInt)
        run.external_id = pending_.next_external_id++;
      NamelessKernel& kernel = pending_.nameless[launch.nameless];
      kernel.args.external_id = run.external_id;
      // The call that the profiler names is not the one that launched it.
      kernel.args.correlation = kNoInt;
      return;
    }
    if (!run.track.valid()) {
      run.track = call->track;
      run.start_ns = call->start_ns;
      run.end_ns = call->end_ns;
      run.execution = execution;
    }
    run.start_ns = std::min(run.start_ns, call->start_ns);
    run.end_ns = std::max(run.end_ns, call->end_ns);
    call->device = launch.device;
  }

  // Runs without a call of their own stand where the run before them on the
  // device ends.
  void Place(Rows& rows) {
    for (uint32_t i = 0; i < runs_.size(); ++i) runs_[i].number = i;
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (run.track.valid()) continue;
      const auto same = [&](size_t j) {
        return j < runs_.size() && runs_[j].device == run.device &&
               runs_[j].track.valid();
      };
      if (i > 0 && same(i - 1)) {
        run.track = runs_[i - 1].track;
        run.start_ns = run.end_ns = runs_[i - 1].end_ns;
        run.execution = runs_[i - 1].execution;
      } else if (same(i + 1)) {
        run.track = runs_[i + 1].track;
        run.start_ns = run.end_ns = runs_[i + 1].start_ns;
        run.execution = runs_[i + 1].execution;
      } else {
        run.track = rows.Track("/host:CPU", "no call");
      }
    }
  }

  Waiting<Run> Take() { return std::move(runs_); }

 private:
  bool GoesOn(const Launch& launch, const Call* call,
              uint32_t execution) const {
    const Run& run = runs_.back();
    return run.device == launch.device &&
           run.instruction == launch.instruction &&
           (call == nullptr || !run.track.valid() ||
            (run.track == call->track && run.execution == execution));
  }

  Pending& pending_;
  const Executions executions_;
  CallsByCorrelation calls_;
  bool open_ = false;  // runs_.back() may go on
  Waiting<Run> runs_;
};

}  // namespace

void SortRuns(Waiting<Run>& runs) {
  SortBackwards(runs, [](const Run& r) {
    return std::tuple(r.track, r.start_ns, -r.end_ns, r.number);
  });
}

Waiting<Run> MakeRuns(Pending& pending, Rows& rows) {
  OrderDevices(pending);
  NameKernels(pending);
  SortCalls(pending.calls);
  RunMaker maker(pending);
  auto& launches = pending.launches;
  SortBackwards(launches, [](const Launch& l) {
    // Kernels found by name, which have a row, come behind the others.
    return std::tuple(l.device, l.correlation, l.start_ns, l.nameless + 1,
                      l.instruction, l.kernel);
  });
  for (; !launches.empty(); launches.Pop()) maker.Add(launches.back());
  maker.Place(rows);
  Waiting<Run> runs = maker.Take();
  SortRuns(runs);
  SeparateDevices(runs, pending, rows);
  return runs;
}

}  // namespace lamina::ingest::xplane
