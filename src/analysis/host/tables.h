// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina host`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/host/idle.h"
#include "analysis/host/work_facts.h"
#include "lamina/result.h"

namespace lamina::analysis::host {

struct TableOptions {
  // Rows of idle_causes beside those of the devices: stream, step, layer,
  // annotation, op; "device" adds none.
  std::string by = "device";
  // Only gaps that work of this step ended: its position in Steps.
  std::optional<uint32_t> step;
  // Layer of a device event for by = layer; empty text: none.
  std::function<std::string(SliceId)> layer_of;
  // Tables with a row per part, launch or change of a queue, too.
  bool events = true;
  size_t top = 0;  // rows of tables of the longest; 0: as many as are useful
};

// Idle time of all devices by cause and activity, the largest first.
struct IdleShare {
  Cause cause = Cause::kUnlinked;
  std::string activity;  // of host_bound
  std::string detail;    // the largest
  int64_t time_ns = 0;
};
std::vector<IdleShare> IdleShares(const HostModel& model, const Idle& idle);
// "the host ran ops (aten::copy_)".
std::string ShareText(const IdleShare& share);
// "72 % the host ran ops (aten::empty); 8 % optimizer": the largest causes of
// idle time; empty where there is none.
std::string LargestCauses(const HostModel& model, const Idle& idle);
// Where calls that wait for the device return before its work has ended.
std::optional<Note> ClockNote(const HostModel& model);
// The verdict on idle time, and what makes its numbers doubtful.
std::vector<Note> IdleNotes(const HostModel& model, const Idle& idle);

// Names of the tables that TableOptions::events asks for.
std::span<const std::string_view> EventTables();

std::vector<Schema> IdleSchemas();
std::vector<Schema> LaunchSchemas();
// Those of them that name layers.
std::vector<Schema> LaunchLayerSchemas();
std::vector<Schema> TransferSchemas();
std::vector<Schema> RangeSchemas();

// idle_causes, idle_gaps, idle_parts and the sentences about them.
ResultSet IdleTables(const HostModel& model, const Idle& idle,
                     const TableOptions& options);
// idle_gaps alone.
Table IdleGapsTable(const HostModel& model, const Idle& idle,
                    const TableOptions& options);
// idle_parts alone.
Table IdlePartsTable(const HostModel& model, const Idle& idle);
std::vector<Schema> IdlePartsSchemas();
// launch_apis, queue_depth, launch_runs, launch_verdicts; with events
// launch_events and queue_depth_series.
ResultSet LaunchTables(const HostModel& model, const TableOptions& options,
                       const WorkFacts& facts);
// What the links of a device carry at most in one direction, in bytes per
// second; 0: not known.
struct LinkPeaks {
  double host = 0;    // PCIe
  double device = 0;  // to one of its kind: NVLink, xGMI
  double memory = 0;  // its own memory, reads and writes together
};
// comm_exposure and copies; with `events` comm_events.
ResultSet TransferTables(const HostModel& model, const LinkPeaks& peaks,
                         const WorkFacts& facts, bool events);
// annotation_time and op_launch_delay.
ResultSet RangeTables(const HostModel& model);
// Time of steps by name: what a step has more of than the others. Names must
// outlive it.
class Growth {
 public:
  // Steps before `warm` are left out.
  Growth(size_t warm, size_t steps) : warm_(warm), steps_(steps) {}
  void Add(std::string_view name, uint32_t step, int64_t ns);

  struct Grown {
    std::string_view name;  // empty: nothing grew
    int64_t delta_ns = 0;
  };
  // Against the median over the steps; of equal ones the first by name.
  Grown Most(uint32_t step) const;

 private:
  size_t warm_, steps_;
  std::map<std::string_view, std::map<uint32_t, int64_t>> times_;
  mutable std::map<std::string_view, int64_t>
      usual_;  // medians, once asked for
};
// Classes of the chain of each step, without those before `warm`; asked only
// where a step is slow.
using ClassesOfSteps = std::function<Growth(size_t warm)>;
// step_drift and slow_steps. `classes_of` may be empty.
ResultSet StepTables(const HostModel& model, const Idle& idle,
                     const ClassesOfSteps& classes_of);

}  // namespace lamina::analysis::host
