// SPDX-License-Identifier: Apache-2.0
//
// Which ranges of a trace are its steps, where no profiler marks them.
#pragma once

#include <string>

#include "base/status.h"
#include "rules/catalog.h"
#include "rules/markers.h"
#include "tree/steps.h"

namespace lamina::engine {

// By a pattern (RE2) that the user gives, or, when it is empty, by the rules of
// data/steps, else by what comes again on the launching thread. A range that
// names a module is no step. Errors: kUsage for a pattern that does not compile
// or that no range matches.
Result<tree::StepRanges> FindStepRanges(const trace::Trace& trace,
                                        const rules::Catalog& catalog,
                                        const rules::MarkerTable& modules,
                                        const std::string& pattern);

}  // namespace lamina::engine
