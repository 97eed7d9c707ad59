// SPDX-License-Identifier: Apache-2.0
//
// Times that cannot be true, found and mended where all readers meet.
//
// A profiler writes now and then a record whose time stamp is zero or hours
// away, a duration that runs over hundreds of later kernels of its stream, or
// device times on a clock that is not the host's. One such record would make
// the window, the headline and every gain. What is done about it is counted
// in the diagnostics, with the value as it was recorded; see
// docs/formats.md, "When the trace is wrong".
#pragma once

#include <string_view>

#include "trace/trace.h"

namespace lamina::trace {

// Names of the counters in Trace::diagnostics.
inline constexpr std::string_view kTimeOutlier = "time_outlier";
inline constexpr std::string_view kClocksDisagree = "clocks_disagree";
inline constexpr std::string_view kClocksDrift = "clocks_drift";
inline constexpr std::string_view kImpossibleDuration = "impossible_duration";
// What follows in the text of a counter is the wrong value: trace_health has
// it, sentences do not repeat it.
inline constexpr std::string_view kAsRecorded = " As recorded: ";

// Leaves out slices far from all others in time, so that the window is that of
// the rest, and moves device times that lie before their launches by the least
// that causality asks for. Before MakeStreams().
void RepairStarts(Trace& trace);

// Ends events that run over many later ones of their stream where the next one
// begins: work of a stream runs in order. After MakeStreams(), whose order
// stays.
void RepairDurations(Trace& trace);

}  // namespace lamina::trace
