// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "analysis/common/context.h"

namespace lamina::analysis {

// All analyses: of folders sorted by name, then those of lamina host and path,
// and of compiled code.
std::span<const AnalysisInfo> Analyses();
const AnalysisInfo* FindAnalysis(std::string_view name);

}  // namespace lamina::analysis
