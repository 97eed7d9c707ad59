// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/catalog.h"
#include "rules/markers.h"
#include "trace/trace.h"

namespace lamina::engine {

// Ranges directly within the run of an engine (`marks: engine` in data/steps)
// are the engine's nodes and become ops: a TensorRT layer is an op with its
// kernels. n log n in the ranges of threads that run an engine.
void AddEngineOps(trace::Trace& trace, const rules::Catalog& catalog);

// Adds the calls of modules that the ranges of a trace name, by the rules.
void AddMarkedModules(trace::Trace& trace, const rules::MarkerTable& rules);

}  // namespace lamina::engine
