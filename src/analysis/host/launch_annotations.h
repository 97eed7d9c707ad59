// SPDX-License-Identifier: Apache-2.0
//
// The range of the user in which device work was launched.
#pragma once

#include "analysis/host/model.h"

namespace lamina::analysis::host {

class LaunchAnnotations {
 public:
  LaunchAnnotations() = default;
  // One sweep over ranges and launch calls of each thread.
  explicit LaunchAnnotations(const HostModel& model);

  // The innermost range on the launching thread that holds the start of the
  // launch; invalid if there is none or no launch.
  SliceId Of(SliceId work) const {
    const uint32_t call = model_->call(work);
    return call == kNone ? SliceId() : of_call_[call];
  }
  // The range around the whole of a range of the same thread.
  SliceId Outer(SliceId range) const;
  // All ranges that were open when it was launched, innermost first. Ranges may
  // overlap without nesting: work belongs to each between whose start and end
  // it was launched.
  std::vector<SliceId> AllOf(SliceId work) const;

 private:
  const HostModel* model_ = nullptr;
  std::vector<SliceId> of_call_;
  std::vector<std::pair<SliceId, SliceId>> outer_;  // by the first
  // Open ranges of a call that its innermost one does not lead out to.
  std::vector<std::pair<uint32_t, SliceId>> beside_;  // by the first
};

}  // namespace lamina::analysis::host
