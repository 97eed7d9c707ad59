// SPDX-License-Identifier: Apache-2.0
//
// What is kept of one rank when its trace is closed: its collectives with what
// filled the time before each, and where its time went step by step. Some
// hundred bytes per collective, so that a thousand ranks fit into memory that
// holds no two of their traces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/collective.h"
#include "trace/losses.h"
#include "trace/trace.h"

namespace lamina::dist {

using analysis::CollectiveKind;
using trace::kNoInt;

inline constexpr uint32_t kNoIndex = 0xFFFFFFFF;

// Time of one op in the gap before a collective.
struct WorkItem {
  uint32_t name = 0;  // text
  int64_t ns = 0;
};

// A process group as this rank names it.
struct GroupName {
  uint32_t name = 0;   // text; empty: the profiler recorded none
  uint32_t ranks = 0;  // text of the list of its ranks, empty if not recorded
  uint32_t description = 0;  // text
  int64_t size = kNoInt;
  uint64_t calls = 0;  // of this rank
};

// One communication kernel. Times are nanoseconds of this rank's clock.
struct Call {
  uint32_t number = 0;       // position among the calls of the rank, by start
  uint32_t group = 0;        // of RankSummary::groups
  uint32_t name = 0;         // text
  uint32_t dtype = 0;        // text
  uint32_t in_split = 0;     // text: elements to each peer
  uint32_t out_split = 0;    // text: elements from each peer
  uint32_t step = kNoIndex;  // of RankSummary::steps
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t sequence = kNoInt;
  int64_t in_elements = kNoInt;
  int64_t out_elements = kNoInt;
  int64_t source = kNoInt;       // rank, of send and receive only
  int64_t destination = kNoInt;  // rank
  int64_t stream = kNoInt;
  int64_t start_ns = 0;
  int64_t file_ns = 0;  // start as the file has it, without its base time
  int64_t dur_ns = 0;
  int64_t exposed_ns = 0;  // part in which nothing was computed

  // The gap before it: from the end of the call that ended last before its
  // start (or the start of the recording) to its start.
  uint32_t previous = kNoIndex;  // number of that call
  int64_t gap_start_ns = 0;
  int64_t idle_ns = 0;           // of the gap: no work but communication
  std::vector<WorkItem> device;  // device time in the gap by op, longest first
  std::vector<WorkItem> host;    // host time since the launch before, by op

  int64_t end_ns() const { return start_ns + dur_ns; }
};

// Calls of one rank that are equal in all that was recorded of them; where
// something was not, they are not here.
struct CallStats {
  uint32_t group = 0;  // texts
  uint32_t ranks = 0;
  uint32_t name = 0;
  uint32_t dtype = 0;
  uint32_t in_split = 0;
  uint32_t out_split = 0;
  int64_t size = 0;
  int64_t in_elements = 0;
  int64_t out_elements = 0;
  int64_t stream = 0;
  int64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double mean_ns = 0;
  double deviation_ns = -1;  // standard; -1 for one call
};

// Device time of one step.
struct StepTimes {
  int64_t number = kNoInt;  // of the step; kNoInt: outside of all steps
  int64_t start_ns = 0;     // first start on the device
  int64_t device_ns = 0;    // from first start to last end
  int64_t busy_ns = 0;
  int64_t compute_ns = 0;
  int64_t comm_ns = 0;
  int64_t exposed_comm_ns = 0;
  int64_t peer_ns = 0;          // in sends and receives
  int64_t peer_exposed_ns = 0;  // of it, between first and last computation
  int64_t first_compute_ns = 0;
  int64_t last_compute_ns = 0;
};

// The file that a summary was made of, for partials that lie in a folder.
struct SourceFile {
  std::string path;  // absolute
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  uint64_t rules = 0;  // fingerprint of the rules that were used

  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

// Device events of a rank for a page: its collectives and its longest others.
struct RankEvents {
  struct Event {
    int64_t start_ns = 0;  // of the rank's clock
    int64_t dur_ns = 0;
    uint32_t kernel = 0;  // text, as the next two
    uint32_t op = 0;      // above its launch
    uint32_t family = 0;  // by name: files outlive the order of families
    uint32_t uid = 0;
    uint32_t call = kNoIndex;  // of RankSummary::calls
    uint32_t step = kNoIndex;  // of RankSummary::steps
  };
  struct Lane {
    std::string process;
    int64_t device = kNoInt;
    int64_t stream = kNoInt;
    std::vector<Event> events;  // by start
  };
  std::vector<std::string> texts;
  std::vector<Lane> lanes;
  int64_t end_of_uids = 0;
  uint64_t others = 0;  // device events that are no collective
  uint64_t kept = 0;    // of them
};

struct RankSummary {
  std::string file;
  SourceFile source;
  std::string error;         // not empty: unreadable, and all else is empty
  uint64_t file_number = 0;  // position among the inputs
  uint64_t part = 0;         // of the ranks in the file
  int64_t rank = 0;
  bool is_position = false;  // neither trace nor name say the rank
  int64_t world_size = kNoInt;
  int64_t devices = 0;   // that the recording describes: those of its node
  int64_t first_ns = 0;  // of the rank's clock
  uint64_t events = 0;
  uint64_t input_bytes = 0;
  trace::Losses losses;            // what of the input is in no number
  std::vector<std::string> texts;  // text 0 is empty
  std::vector<GroupName> groups;
  std::vector<StepTimes> steps;
  std::vector<Call> calls;
  std::vector<CallStats> stats;  // by time, largest first
  RankEvents page;               // where LoadOptions ask for them

  std::string_view Text(uint32_t id) const { return texts[id]; }
};

}  // namespace lamina::dist
