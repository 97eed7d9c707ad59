// SPDX-License-Identifier: Apache-2.0
//
// A trace limited to ranges of the user: what any question is then asked of.
#pragma once

#include <string>

#include "base/status.h"
#include "trace/trace.h"

namespace lamina::engine {

// Keeps what happened on the host within ranges of a name, what was launched
// there, and device work without a launch that began meanwhile. What reaches
// out of a range is cut at its ends. A '*' in the name stands for any text.
// Errors: kUsage when no range has the name.
Status LimitToRange(trace::Trace& trace, const std::string& name, int threads);

}  // namespace lamina::engine
