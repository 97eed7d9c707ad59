// SPDX-License-Identifier: Apache-2.0
//
// Hardware counters that a profiler read over the range of each kernel, put on
// the kernels of the recording or, where it has none, on the calls that
// launched them. The profiler runs kernels one by one for that, so times of
// ranges say nothing; their order is that of the launches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/host/model.h"
#include "lamina/result.h"

namespace lamina::analysis::host {

Schema KernelCounterSchema();
// counter_kernels, and what of it has no kernel.
ResultSet KernelCounterTables(const HostModel& model);

// For each of `a` its partner in `b`, kNone for those without one: a longest
// common subsequence, by the greedy algorithm of E. W. Myers (1986), whose work
// grows with the length times the number of those that are left over. Where
// more than 2,000 are, only what both begin and end with is paired.
std::vector<uint32_t> CommonSubsequence(std::span<const uint32_t> a,
                                        std::span<const uint32_t> b);

}  // namespace lamina::analysis::host
