// SPDX-License-Identifier: Apache-2.0
//
// Whether faster device work would end the run earlier: findings about kernels
// and collectives are asked of the critical path.
#pragma once

#include <map>
#include <string>

#include "findings/findings.h"

namespace lamina::findings {

// Lowers the gain of findings that own busy time to what the path saves when
// that time is gone; what the formula said stays in gain_high_ns. A kernel
// twice too slow saves nothing while the host holds all up. Raises gain_high_ns
// to what the what-if of a rule saves. Leaves gains as they are where no
// finding asks for at least `min_share`, or the path has no end. Gives what the
// path saves of those that it was asked for, by the id of the finding. O(nodes
// of the path) per finding.
Result<std::map<std::string, int64_t>> AskPath(engine::Session& session,
                                               double min_share,
                                               Diagnosis& diagnosis);

// Fills gain_after_ns: what a finding saves when those before it in the list
// are fixed; once they take most of the idle time, the host holds nothing up
// any more. Findings below `least` by their formula are not asked. `alone`:
// what AskPath() gave.
Status AskPathInOrder(engine::Session& session,
                      const std::map<std::string, int64_t>& alone,
                      int64_t least, Diagnosis& diagnosis);

}  // namespace lamina::findings
