// SPDX-License-Identifier: Apache-2.0
//
// Events of a trace as columns of a page: device events with the rule that says
// the family of each, and counters.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/common/context.h"
#include "lamina/table.h"
#include "page/device.h"
#include "page/host.h"
#include "page/thin.h"
#include "render/html/page.h"
#include "trace/trace.h"

namespace lamina::page {

// What a page holds of the host.
struct HostChoice {
  HostDetail detail = HostDetail::kAll;
  HostMask mask{};
  CallStacks stacks{};
  int64_t python_ns = kNoPython;  // least length of a Python function
};

// Adds the blocks "device" and "host" and the facts that describe them; with
// `thin` only its rows, and the blocks "merged" and "buckets".
void AddEvents(const analysis::Context& context,
               const std::vector<DeviceRow>& rows, const ThinRows* thin,
               const HostChoice& host, render::Page& page);

// Which rule says the family of each device event of a page.

struct FamilyRuleRows {
  Table table;  // family_rules
  // By row of device arguments: row + 1 of the table.
  std::vector<uint32_t> row_of;
};
FamilyRuleRows FindFamilyRules(const analysis::Context& context);

// Counters of a trace as columns of a page: what the recording counts, and the
// memory that its allocations and frees say is in use.

// Adds the block "counters" and the fact that names its series; nothing when
// the trace counts nothing.
void AddCounters(const trace::Trace& trace, render::Page& page);

}  // namespace lamina::page
