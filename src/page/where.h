// SPDX-License-Identifier: Apache-2.0
//
// Conditions on device work, as the filter of a report page has them. Both ask
// DeviceRows what an event belongs to, so a slice by conditions holds exactly
// the events that the page adds up.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "engine/session.h"
#include "lamina/result.h"
#include "page/live.h"

namespace lamina::page {

struct WhereField {
  std::string_view name;
  std::string_view doc;
};
std::span<const WhereField> WhereFields();

// "10ms..20ms", "10ms.." or "..20ms": nanoseconds, end excluded. Units are ns,
// us (the default), ms and s. Nothing for any other text.
std::optional<Interval> ParseSpan(std::string_view text);

// Conditions are FIELD=VALUE or FIELD!=VALUE. Device work meets them when it
// has, of every field, one of the values and none of those with "!=". By slice
// of the trace; false for host events. Errors: kUsage for a condition that
// cannot be read.
Result<std::vector<bool>> FindWhere(engine::Session& session,
                                    std::span<const std::string> conditions,
                                    int threads);

// Whether an event meets conditions, and the spans that its time counts in:
// those of time=, empty without one. `document` has the tables that DeviceRows
// was given. The context must outlive the test. Errors as above, and those of
// the watch.
struct Where {
  RowTest test;  // null without conditions
  IntervalSet clip;
};
Result<Where> MakeWhere(const analysis::Context& context,
                        const Document& document,
                        std::span<const std::string> conditions,
                        const LiveWatch& watch = {});

}  // namespace lamina::page
