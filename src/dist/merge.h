// SPDX-License-Identifier: Apache-2.0
//
// Many ranks in one Chrome trace, for Perfetto and for lamina itself.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "dist/job.h"
#include "lamina/result.h"

namespace lamina::dist {

struct MergeOptions {
  JobOptions job;
  bool align_clocks = false;
  bool python = false;  // keep Python frames
};

// Reads every trace twice: once for its numbers and clock, once to write it.
// Holds one trace per thread in the first pass and some chunks in the second.
// Returns the table `merged`, with notes. Errors: no input can be used,
// writing fails. Inputs that are no Chrome JSON are left out and listed.
Result<ResultSet> MergeTraces(const std::vector<std::string>& files,
                              const std::string& output,
                              const MergeOptions& options);

}  // namespace lamina::dist
