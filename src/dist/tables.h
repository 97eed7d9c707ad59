// SPDX-License-Identifier: Apache-2.0
//
// A joined job as tables and notes.
#pragma once

#include <optional>

#include "dist/blame.h"
#include "dist/job.h"
#include "dist/measure.h"
#include "lamina/result.h"

namespace lamina::dist {

// A cell; empty where the trace does not say.
inline std::optional<int64_t> Number(int64_t value) {
  if (value == trace::kNoInt) return std::nullopt;
  return value;
}

// Tables of single collectives: collectives, collective_waits,
// collective_sizes, all_to_all, all_to_all_traffic, lost_calls.
void AddCallTables(const Job& job, ResultSet& result);

// Tables of ranks: ranks, clock_offsets, stragglers, straggler_causes,
// rank_steps, pipeline_bubbles.
void AddRankTables(const Job& job, const std::vector<RankBlame>& blame,
                   ResultSet& result);

// What the tables mean, in sentences.
void AddNotes(const Job& job, const std::vector<RankBlame>& blame,
              ResultSet& result);

// How well clocks were aligned, alone.
void AddClockNotes(const Job& job, ResultSet& result);

// How lateness is spread over ranks and time: one rank again and again, another
// one each time, or few bad steps. Nothing where it is even.
std::optional<Note> LatenessNote(const Job& job);

// bandwidth_model: latency and bandwidth by kind of collective and group.
void AddLinkTable(const std::vector<LinkSeries>& links, ResultSet& result);

// The tables of TraceLens's report over ranks, with its names and units (MiB,
// GiB/s, microseconds) and lamina's matching and clocks.
void AddTracelensTables(const Job& job, const std::vector<RankBlame>& blame,
                        ResultSet& result);

// All of lamina's own, and with `pictures` the pictures.
ResultSet MakeResult(const Job& job, bool pictures);

// Calls in the order of the table collectives.
std::vector<const MeasuredCall*> CallsByStart(const Measured& measured);

// The zero of aligned times: the first event of any rank.
int64_t OriginOf(const Job& job);

}  // namespace lamina::dist
