// SPDX-License-Identifier: Apache-2.0
//
// lamina list rules: the name patterns, those that a trace does not need, and
// those whose examples do not hold.
#pragma once

#include <string>

#include "cli/command.h"
#include "lamina/table.h"

namespace lamina::cli {

Result<Table> AllRules(const Common& common);
// Rules that decide about no kernel or op of a trace.
Result<Table> UnusedRules(Common& common, const std::string& trace);
// Examples and counter-examples that do not hold; no row when all do.
Result<Table> RuleProblems(const Common& common);

}  // namespace lamina::cli
