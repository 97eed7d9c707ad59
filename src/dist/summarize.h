// SPDX-License-Identifier: Apache-2.0
//
// One trace to the summary of its rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "dist/rank_summary.h"

namespace lamina::dist {

// The work of one device of one process: rows of Trace::streams.
using Lanes = std::vector<bool>;

// A trace may hold several ranks (one process with many devices, or all
// processes of a node): the lanes of each that communicates, by process and
// device. One with all lanes if at most one does.
std::vector<Lanes> FindRanks(const analysis::Context& context);

// The base of the times of a trace, 0 where it has none or it is unusable.
int64_t BaseOf(const trace::Trace& trace);

// The step of a device slice in RankSummary::steps, whose last entry is what
// lies outside of all steps.
uint32_t StepIndex(const analysis::Context& context, trace::SliceId slice);

// The collectives of a rank by start, as RankSummary::calls.
std::vector<analysis::Collective> CollectivesOf(
    const analysis::Context& context, const Lanes& lanes);

// Near-linear in the number of slices. Sets everything but the file and its
// number. `rank` decides which end of a transfer this is.
RankSummary Summarize(const analysis::Context& context, const Lanes& lanes,
                      int64_t rank);

// The rank that a file name speaks of: the number after "rank" ("rank-12",
// "Rank_3"), else the only number in the name when it is all of it or stands
// behind a word that ranks go by ("trace7", "worker-2"). Nothing for any other
// name.
std::optional<int64_t> RankOfName(const std::string& path);

}  // namespace lamina::dist
