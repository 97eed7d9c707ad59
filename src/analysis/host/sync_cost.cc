// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/sync_cost.h"

#include <algorithm>

namespace lamina::analysis::host {
namespace {

// Work that waited longer than this for its stream was queued: the host is
// ahead.
constexpr int64_t kAheadNs = 20000;

// The call behind a part in or after a blocking call of its thread: the last
// one that had a target and began before the part ended.
SliceId WaitBefore(const HostModel& model, const Thread& thread,
                   int64_t time_ns) {
  const auto& waits = model.waits();
  auto it = std::partition_point(
      thread.waits.begin(), thread.waits.end(), [&](uint32_t w) {
        return model.trace().Start(waits[w].slice) < time_ns;
      });
  while (it != thread.waits.begin()) {
    --it;
    if (waits[*it].target.valid()) return waits[*it].slice;
  }
  return {};
}

class Blame {
 public:
  Blame(const HostModel& model, const Idle& idle)
      : model_(model), idle_(idle), out_(idle.parts.size()) {}

  std::vector<SliceId> Run() {
    uint32_t gap = 0;
    for (uint32_t d = 0; d < model_.devices().size(); ++d) {
      call_ = {};
      later_.clear();
      lead_ns_ = 0;
      for (const SliceId s : model_.devices()[d].work) {
        if (gap < idle_.gaps.size() && idle_.gaps[gap].device == d &&
            idle_.gaps[gap].next == s)
          OfGap(gap++);
        // Queued again: what the call cost is paid.
        if (Lead(s) > kAheadNs) {
          for (const uint32_t p : later_) out_[p] = call_;
          later_.clear();
          call_ = {};
        }
      }
      while (gap < idle_.gaps.size() && idle_.gaps[gap].device == d) ++gap;
    }
    return std::move(out_);
  }

 private:
  // How long work lay in the queue before it could start.
  int64_t Lead(SliceId s) const {
    return model_.call(s) == kNone ? 0
                                   : model_.trace().Start(s) - model_.Ready(s);
  }

  void OfGap(uint32_t g) {
    const Gap& gap = idle_.gaps[g];
    const uint32_t call = model_.call(gap.next);
    if (call == kNone) return;
    const Thread& thread = model_.threads()[model_.calls()[call].thread];
    bool drained = false;
    for (uint32_t p = idle_.first_part[g]; p < idle_.first_part[g + 1]; ++p) {
      const Part& part = idle_.parts[p];
      const int64_t end = part.start_ns + part.length_ns;
      const bool in_call =
          (part.cause == Cause::kSync || part.cause == Cause::kMemcpy) &&
          thread.blocked.Over(part.start_ns, end) > 0;
      if (in_call || part.after_sync) {
        const SliceId wait = WaitBefore(model_, thread, end);
        if (!wait.valid()) continue;
        if (wait != call_) {
          later_.clear();
          call_ = wait;
          lead_ns_ = gap.before.valid() ? Lead(gap.before) : 0;
        }
        drained = true;
        out_[p] = call_;
        continue;
      }
      if (!call_.valid() || (part.cause != Cause::kHostBound &&
                             part.cause != Cause::kLaunchOverhead))
        continue;
      if (drained) {
        out_[p] = call_;
      } else if (lead_ns_ >= part.length_ns) {
        lead_ns_ -= part.length_ns;
        later_.push_back(p);
      } else {
        later_.clear();
        call_ = {};
      }
    }
  }

  const HostModel& model_;
  const Idle& idle_;
  std::vector<SliceId> out_;
  SliceId call_;         // what the device still recovers from
  int64_t lead_ns_ = 0;  // how far the host was ahead before it
  // Parts that are its fault if the host gets ahead again.
  std::vector<uint32_t> later_;
};

}  // namespace

std::vector<SliceId> SyncOfParts(const HostModel& model, const Idle& idle) {
  return Blame(model, idle).Run();
}

}  // namespace lamina::analysis::host
