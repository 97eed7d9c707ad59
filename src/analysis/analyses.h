// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "analysis/common/context.h"

namespace lamina::analysis {

// All analyses, sorted by name.
std::span<const AnalysisInfo> Analyses();
const AnalysisInfo* FindAnalysis(std::string_view name);

}  // namespace lamina::analysis
