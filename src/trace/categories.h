// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/kinds.h"
#include "trace/trace.h"

namespace lamina::trace {

// What a category of PyTorch's profiler ("cpu_op", "kernel" ...) means;
// kOther for others.
Kind KindOfCategory(std::string_view category);

// Why slices of a category of kOther are in no table, for categories whose work
// other events show as well; empty for those that lamina does not know.
std::string_view WhyUnused(std::string_view category);

// Ranges of CUPTI's range profiler: their arguments are hardware counters.
inline constexpr std::string_view kCounterRangeCategory = "cuda_profiler_range";

// Whether an API call launches a whole graph: cudaGraphLaunch, hipGraphLaunch,
// cuGraphLaunch, those of a stream of its own (_ptsz) and of a version.
bool IsGraphLaunch(std::string_view call);
// What an event of a kind is by its name: steps, optimizer steps and the ranges
// of data loaders are annotations, also where old profilers wrote them as ops.
Kind KindOfEvent(Kind of_category, std::string_view name);

// kDriver or kRuntime, by the name of a call of the host: "cuLaunchKernel" and
// "hsa_..." are of the driver.
Kind ApiKindOf(std::string_view call);

// The category of a kind; empty for kOther.
std::string_view CategoryOf(Kind kind);

// Perfetto traces that lamina writes hold one instant of this name, whose
// arguments are facts about the recording.
inline constexpr std::string_view kRecordingName = "lamina recording";
inline constexpr std::string_view kDevicePropertiesArg = "deviceProperties";
inline constexpr std::string_view kDistributedArg = "distributedInfo";
inline constexpr std::string_view kBaseTimeArg = "baseTimeNanoseconds";

// Device work in the order of time and on the streams of each device.

// Fills trace.device_order, trace.streams and the lane of every device row.
// Where a row does not name its device or stream, the ids of its track in the
// viewer do.
void MakeStreams(Trace& trace, int threads);

}  // namespace lamina::trace
