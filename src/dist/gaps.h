// SPDX-License-Identifier: Apache-2.0
//
// What a rank did in the time before each of its collectives.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/context.h"
#include "base/interval_set.h"
#include "dist/rank_summary.h"

namespace lamina::dist {

using NamedTimes = std::vector<std::pair<std::string_view, int64_t>>;

struct Gap {
  uint32_t previous = kNoIndex;  // the call that ended last before
  int64_t start_ns = 0;          // its end, or the start of the recording
  int64_t idle_ns = 0;
  NamedTimes device;  // by op, longest first
  // Of the launching thread while the device was idle, since the launch before.
  NamedTimes host;
};

class GapFinder {
 public:
  // `lanes`: rows of Trace::streams that are this rank's. `calls` by start;
  // context and calls must outlive the finder.
  GapFinder(const analysis::Context& context, const std::vector<bool>& lanes,
            const std::vector<analysis::Collective>& calls);

  Gap Before(uint32_t call) const;

 private:
  NamedTimes HostTimes(uint32_t call, const std::vector<Interval>& idle) const;

  const analysis::Context& context_;
  const std::vector<analysis::Collective>& calls_;
  std::vector<uint32_t> previous_;
  std::vector<tree::NodeId> launch_before_;  // of another call, same thread
  std::vector<trace::SliceId> work_;  // device work without communication
  std::vector<int64_t> latest_end_;   // of work_ up to here
};

}  // namespace lamina::dist
