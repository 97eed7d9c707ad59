// SPDX-License-Identifier: Apache-2.0
//
// How a recording gets device work, by the program that made it.
#pragma once

#include <string>

#include "trace/trace.h"

namespace lamina::analysis {

// One sentence for a trace without device events.
std::string DeviceAdvice(const trace::Trace& trace);

}  // namespace lamina::analysis
