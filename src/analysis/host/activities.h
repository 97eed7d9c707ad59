// SPDX-License-Identifier: Apache-2.0
//
// What the launching thread did in those parts of idle time for which the host
// is to blame.
#pragma once

#include <span>
#include <vector>

#include "analysis/host/idle.h"

namespace lamina::analysis::host {

// Cuts the parts that are host_bound where the activity of the launching
// thread changes, and fills their `activity` and `activities`. `pieces` are the
// parts of all gaps, in order, cut between gaps and between devices. The
// innermost frame, range, op or call whose name a rule knows decides for all
// that runs inside; without one the innermost op, else the call outside ops,
// the innermost Python frame, or the range. O(n log n) in the events that
// overlap such parts.
//
// A frame that waits (rules of strength `wait`) counts where nothing else is
// recorded inside it: an event loop waits in its select, not in what it runs.
// In an act that a rule knows it is that act, or what the act becomes while it
// waits (`also` of the rule). Frames of strength `plumbing` say nothing of
// their own.
//
// Calls of the operating system come last: what a rule knows of what runs
// around them, an API call or a frame says more than "read"; but one that a
// rule knows says more than an op or a frame without a rule. Where the
// scheduler is recorded, a thread that was put aside is `preempted` whatever
// it did. One that waited is `blocked`, if no rule knows in what. Running
// without any record is `running`.
void LabelHostParts(const HostModel& model, const rules::PatternTable& rules,
                    std::span<const Gap> gaps,
                    std::vector<std::vector<Part>>& pieces,
                    std::vector<Activity>& activities);

// What the main thread of a recording without device work does: the thread of
// the steps, else the one with most recorded time. The same labels as above.
struct MainThread {
  static constexpr std::string_view kFact = "main thread";
  static Result<MainThread> Of(const Context& context);

  struct Stretch {
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    uint32_t activity = 0;  // of `activities`
    uint32_t step = kNone;
  };
  Interval window;  // empty: there is device work, or no host events
  uint32_t track = kNone;
  std::vector<Stretch> stretches;  // by start; without what nothing is known of
  std::vector<Activity> activities;
};

}  // namespace lamina::analysis::host
