// SPDX-License-Identifier: Apache-2.0
//
// Whole repetitions of the work of a trace: steps of a training, forward passes
// of a server. Each has a phase, the load that it had to do and its times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/layers/stages.h"
#include "base/interval_set.h"

namespace lamina::runs {

using analysis::Context;
using trace::SliceId;

enum class Phase : uint8_t { kTrain, kEval, kPrefill, kDecode, kMixed, kPass };
std::string_view PhaseName(Phase phase);

// What is compared of a unit: the unit itself (of a step begin to begin of the
// next on the host, of a pass first to last of its device work), the sum of its
// device work, or the time in which the device was busy with it.
enum class Measure : uint8_t { kUnit, kKernelTime, kBusy };

struct Unit {
  const Context* context = nullptr;  // of its work; null: a store kept it
  size_t number = 0;                 // of the side, in order of time, from 0
  size_t recording = 0;              // of the side, where it has several
  Phase phase = Phase::kPass;
  // What the engine says that a pass had to do.
  analysis::layers::EngineRange load;
  std::optional<int64_t> tokens;  // of the whole unit
  bool optimizer = false;
  bool communication = false;
  bool replayed = false;  // by a graph launch
  int64_t start_ns = 0;   // of the host range, else of its first work
  // In which the host does the unit; empty where that is not known.
  Interval host{};
  int64_t unit_ns = 0;
  int64_t kernel_ns = 0;      // sum
  int64_t busy_ns = 0;        // union
  size_t events = 0;          // of the device
  std::vector<SliceId> work;  // by start; not of a unit that a store kept
  // Equal for units that may be compared: "batch 16", or their kernels where
  // the load is not known.
  std::string load_name;
  // Of a unit that a store kept: why it is not compared; empty: it is.
  std::string left_out;

  int64_t Time(Measure measure) const {
    return measure == Measure::kUnit         ? unit_ns
           : measure == Measure::kKernelTime ? kernel_ns
                                             : busy_ns;
  }
};

// Units::basis of what is no step.
inline constexpr const char* kPassBasis = "passes of the layers";
inline constexpr const char* kWindowBasis = "window";

struct Units {
  std::vector<Unit> units;
  std::string basis;     // "ProfilerStep", kPassBasis ...
  size_t unclaimed = 0;  // device events of no unit
  // Whether left_out says what is not compared, because not all units are here.
  bool settled = false;
};

// The steps of a job of several ranks: those that all ranks have, each by the
// rank that takes longest. `ranks`: of one job, not empty.
Units SlowestRanks(std::vector<Units> ranks);

// Recordings of one program, one after the other.
Units OneAfterTheOther(std::vector<Units> recordings);

// From the steps of the trace, else from the passes that its layers form; none
// where there is neither. Device work belongs to the unit whose host range
// holds its launch. `steps`, `passes`: which of the two may serve.
// Errors: data files that cannot be used.
Result<Units> FindUnits(const Context& context, bool steps, bool passes);

// All device work of a trace as one unit, for what has no repetition; nothing
// where there is none.
Units WindowOf(const Context& context);

}  // namespace lamina::runs
