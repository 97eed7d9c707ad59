// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lamina/result.h"

namespace lamina::report::table {

// The first face of a report: verdict, timeline as bars, top categories and
// ops, steps, what is wrong with the trace, and where the rest is.
std::string FormatSummary(const ResultSet& result, int width, bool color,
                          size_t top);

}  // namespace lamina::report::table
