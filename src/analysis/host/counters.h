// SPDX-License-Identifier: Apache-2.0
//
// Counters that were sampled beside the events: what they count by the rules of
// data/counters, energy from power, and clocks that fell while the device
// worked. A value holds until the next sample; before the first sample and
// behind the last one nothing is known.
#pragma once

#include <memory>
#include <vector>

#include "analysis/host/model.h"
#include "lamina/result.h"
#include "rules/document.h"
#include "rules/pattern_table.h"

namespace lamina::analysis::host {

// The rules of data/counters. Errors: unusable files.
Result<std::shared_ptr<const rules::PatternTable>> LoadMetrics(
    const rules::DataSet& data);

std::vector<Schema> CounterSchemas();
// counters, energy, clock_drop; with `events` counter_kernels.
ResultSet CounterTables(const HostModel& model,
                        const rules::PatternTable& metrics, bool events);

}  // namespace lamina::analysis::host
