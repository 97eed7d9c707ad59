// SPDX-License-Identifier: Apache-2.0
//
// Who owns which nanosecond. Rules claim idle spans of a device and parts of
// device events; a claim gets what no claim before it got, so that sums over
// findings never exceed the window.
//
// Busy time is counted by event: a moment with several events belongs to the
// one that began first (column own_ns of device_events), and an event gives at
// most its own part away.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <map>
#include <vector>

#include "base/interval_set.h"

namespace lamina::findings {

struct Claim {
  uint32_t device = 0;
  int64_t start_ns = 0;  // of a span; of an event its start
  int64_t dur_ns = 0;    // claimed
  int64_t uid = -1;      // of an event; -1: a span of idle time
  int64_t owned_ns = 0;  // granted
  bool whole = false;    // of an event: all of its time is claimed
};

// Time that a rule claimed and another one had.
struct Refusal {
  uint32_t winner = 0, loser = 0;  // numbers of rules
  int64_t ns = 0;
};

class Ledger {
 public:
  // `idle`: the gaps of each device. `own_ns`: what there is to give of each
  // event.
  using EventTimes = absl::flat_hash_map<int64_t, int64_t>;
  Ledger(std::vector<IntervalSet> idle, EventTimes own_ns);

  // Fills `owned_ns` of the claims of a rule with what they would get. Their
  // order does not matter: they are served by device, start and event.
  // O(n log n).
  void Offer(std::vector<Claim>& claims) const;
  // The same, and they have it from now on.
  void Grant(uint32_t rule, std::vector<Claim>& claims);

  int64_t idle_ns() const;
  int64_t owned_idle_ns() const { return owned_idle_ns_; }
  std::vector<Refusal> refusals() const;

 private:
  struct Owned {
    Interval span;
    uint32_t rule = 0;
  };
  // What claims get, and which owner stood in the way.
  struct Served {
    std::vector<std::vector<Owned>> spans;  // per device, with rule 0
    absl::flat_hash_map<int64_t, int64_t> events;
    std::map<uint32_t, int64_t> refused;  // by owner
  };
  Served Serve(std::vector<Claim>& claims) const;
  void ServeSpans(std::vector<Claim*>& claims, uint32_t device,
                  Served& served) const;

  std::vector<IntervalSet> idle_;
  std::vector<std::vector<Owned>> owned_;  // per device by start, disjoint
  EventTimes left_ns_;                     // of events
  absl::flat_hash_map<int64_t, uint32_t> event_owner_;  // the first
  std::map<std::pair<uint32_t, uint32_t>, int64_t> refused_;
  int64_t owned_idle_ns_ = 0;
};

}  // namespace lamina::findings
