// SPDX-License-Identifier: Apache-2.0
//
// Whether faster device work would end the run earlier: findings about kernels
// and collectives are asked of the critical path.
#pragma once

#include "findings/findings.h"

namespace lamina::findings {

// Lowers the gain of findings that own busy time to what the path saves when
// that time is gone; what the formula said stays in gain_high_ns. A kernel
// twice too slow saves nothing while the host holds all up. Leaves gains as
// they are where no finding owns busy time of at least `min_share`, or the
// path has no end. O(nodes of the path) per finding.
Status AskPath(sql::Source& source, double min_share, Diagnosis& diagnosis);

// Fills gain_after_ns: what a finding saves when those before it in the list
// are fixed. The list is in its final order.
Status AskPathInOrder(sql::Source& source, Diagnosis& diagnosis);

}  // namespace lamina::findings
