// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/markers.h"
#include "trace/trace.h"

namespace lamina::engine {

// Adds the calls of modules that the ranges of a trace name, by the rules.
void AddMarkedModules(trace::Trace& trace, const rules::MarkerTable& rules);

}  // namespace lamina::engine
