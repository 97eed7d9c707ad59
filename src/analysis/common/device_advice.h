// SPDX-License-Identifier: Apache-2.0
//
// How a recording gets device work, by the program that made it.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::analysis {

// Whether a category of the trace begins so: "npu_", "mtia_".
bool HasCategory(const trace::Trace& trace, std::string_view prefix);

// One sentence for a trace without device events.
std::string DeviceAdvice(const trace::Trace& trace);

}  // namespace lamina::analysis
