// SPDX-License-Identifier: Apache-2.0
//
// How to record what a trace lacks, with the tool that wrote it.
#pragma once

#include <string>

#include "trace/trace.h"

namespace lamina::analysis {

// For a trace without device events: "record device activity
// (ProfilerActivity.CUDA)", without a stop.
std::string DeviceActivityAdvice(const trace::Trace& trace);

}  // namespace lamina::analysis
