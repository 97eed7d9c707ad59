// SPDX-License-Identifier: Apache-2.0
//
// One trace to the summary of its rank.
#pragma once

#include <optional>
#include <string>

#include "analysis/common/context.h"
#include "dist/rank_summary.h"

namespace lamina::dist {

// Near-linear in the number of slices. Sets everything but the file and its
// number.
RankSummary Summarize(const analysis::Context& context, int64_t rank);

// The rank that a file name speaks of: the number after "rank" ("rank-12",
// "Rank_3"), else the only number in the name. Nothing for any other name.
std::optional<int64_t> RankOfName(const std::string& path);

}  // namespace lamina::dist
