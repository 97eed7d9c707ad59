// SPDX-License-Identifier: Apache-2.0
//
// Stretches of a stream in which launching, not computing, takes the time, and
// sequences of kernels that come back in them: what one kernel or a device
// graph in their place would save. Only the kernels on the stream count, not
// the op that launched them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/host/idle.h"
#include "lamina/table.h"

namespace lamina::analysis::host {

// At least 4 events of a stream that each waited for their launch; one of
// eight may not have.
struct LaunchRun {
  uint32_t stream = 0;        // of Trace::streams
  uint32_t number = 0;        // of the stream, by start
  size_t begin = 0, end = 0;  // of the stream's slices
  int64_t start_ns = 0, end_ns = 0, busy_ns = 0, work_ns = 0;
  int64_t events = 0, launches = 0, shorter = 0;
  int64_t host_ns = 0;  // first call to last call
  // What the run would take at the spacing of kernels that are in the queue.
  int64_t graph_span_ns = 0;
  SliceId first;

  int64_t span_ns() const { return end_ns - start_ns; }
  int64_t HostPerLaunch() const {
    return launches > 1 ? host_ns / (launches - 1) : 0;
  }
  int64_t KernelPerLaunch() const {
    return launches > 0 ? work_ns / launches : 0;
  }
  bool launch_bound() const { return HostPerLaunch() > KernelPerLaunch(); }
};
std::vector<LaunchRun> FindLaunchRuns(const HostModel& model, uint32_t stream);

// Whether work is shorter than its launch call usually is.
bool IsShort(const HostModel& model, SliceId s);

// Kernels that follow each other in the same order again and again, in
// launch-bound runs and in graph replays of which the spacing between kernels
// takes above a tenth. Copies, waits of the launching thread, steps and other
// graphs end a sequence.
struct KernelSequence {
  uint32_t stream = 0;
  // Positions of the first kernels in the stream's slices; occurrences do not
  // overlap.
  std::vector<uint32_t> starts;
  uint32_t length = 0;
  int64_t kernel_ns = 0;
  // Time within occurrences in which the stream has nothing, whatever the
  // cause.
  int64_t gap_ns = 0;
  // Idle time of the device within occurrences that one kernel would not have:
  // host_bound, launch_overhead, kernel_wait and graph.
  int64_t recoverable_ns = 0;
  // Of it, what no sequence before this one in the list has; of the first 200
  // alone, which are shown.
  int64_t exclusive_ns = 0;
  int64_t shortest_ns = 0;
};

// The most worth first; only those with something to recover. O(8 n).
std::vector<KernelSequence> FindSequences(const HostModel& model,
                                          const Idle& idle);

// What a table of sequences says of them beside their times.
struct SequenceFacts {
  // Work of each layer of the trace; empty where it has none.
  std::vector<std::span<const SliceId>> layers;
  // The fusion rule that kernels with these launchers look like; empty: none.
  std::function<std::string_view(std::span<const NodeId> launchers)> rule;
  // Bytes that ops with these launchers pass from one to the next.
  std::function<std::optional<int64_t>(std::span<const NodeId> launchers)>
      passed;
  // As WorkFacts::path_ns.
  std::vector<int64_t> path_ns;
};

std::vector<Schema> SequenceSchemas();
// kernel_sequences: one row for each.
Table SequenceTable(const HostModel& model,
                    const std::vector<KernelSequence>& sequences,
                    const SequenceFacts& facts);

}  // namespace lamina::analysis::host
