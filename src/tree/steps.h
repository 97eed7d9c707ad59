// SPDX-License-Identifier: Apache-2.0
//
// Steps (iterations) of a recording, from the ranges that frameworks write
// (ProfilerStep#N of torch.profiler, the step ranges of serving engines), else
// from those of the user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interval_set.h"
#include "tree/tree.h"

namespace lamina::tree {

struct Step {
  SliceId slice;       // the host range
  Interval host;       // of the range
  int64_t number = 0;  // N of ProfilerStep#N, else the position
};

// Ranges that are steps by their names (data/steps), by what the user says, or
// because they come again: for traces whose profiler marks none.
struct StepRanges {
  std::vector<std::pair<SliceId, int64_t>> ranges;  // with their numbers
  // The user named them: they come before what the profiler marks.
  bool asked = false;
  std::string basis;  // "ranges named 'iteration #'"
};

class Steps {
 public:
  static constexpr uint32_t kOutside = 0xFFFFFFFF;

  static Steps Build(const Tree& tree, const StepRanges& named = {});

  const std::vector<Step>& steps() const { return steps_; }
  // What says that they are steps.
  const std::string& basis() const { return basis_; }
  // Index of the step that launched a device slice: the one whose host range
  // holds the start of the launch; work without a launch belongs to the range
  // of the same name on the device. kOutside if none.
  uint32_t StepOf(SliceId device) const {
    return of_device_[tree_->trace().slices.detail[device.value]];
  }
  // The step whose host range holds a time; kOutside if none.
  uint32_t StepAt(int64_t host_time_ns) const;
  // The number of a step that StepOf or StepAt found; empty: kOutside.
  std::optional<int64_t> NumberOf(uint32_t step) const {
    if (step == kOutside) return std::nullopt;
    return steps_[step].number;
  }
  // Name of the step that counts the tokens of its requests ("execute_...") and
  // in which a node of the host tree begins; invalid if none. It need not be
  // one of steps(): a trace may mark steps in several ways.
  StringId RequestsAt(NodeId node) const;

 private:
  const Tree* tree_ = nullptr;
  std::vector<Step> steps_;
  std::vector<SliceId> requests_;  // by start; none begins within another
  std::vector<uint32_t> of_device_;
  std::string basis_;
};

// True for the names of step ranges of serving engines: vLLM "execute_...",
// SGLang "step[...]", TensorRT-LLM "[Executor] _forward_step ...", ATOM
// "prefill[...]" and "decode[...]".
bool IsEngineStep(std::string_view name);

}  // namespace lamina::tree
