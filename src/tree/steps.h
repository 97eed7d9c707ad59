// SPDX-License-Identifier: Apache-2.0
//
// Steps (iterations) of a recording, from the ranges that frameworks write:
// ProfilerStep#N of torch.profiler, the step ranges of serving engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "tree/tree.h"

namespace lamina::tree {

struct Step {
  SliceId slice;       // the host range
  Interval host;       // of the range
  int64_t number = 0;  // N of ProfilerStep#N, else the position
};

class Steps {
 public:
  static constexpr uint32_t kOutside = 0xFFFFFFFF;

  static Steps Build(const Tree& tree);

  const std::vector<Step>& steps() const { return steps_; }
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
};

// True for the names of step ranges of serving engines: vLLM "execute_...",
// SGLang "step[...]", TensorRT-LLM "[Executor] _forward_step ...", ATOM
// "prefill[...]" and "decode[...]".
bool IsEngineStep(std::string_view name);

}  // namespace lamina::tree
