// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyses.h"

#define LAMINA_ANALYSIS(name)        \
  namespace lamina::analysis::name { \
  AnalysisInfo Info();               \
  }
#include "analyses.inc"
#undef LAMINA_ANALYSIS

namespace lamina::analysis {

std::span<const AnalysisInfo> Analyses() {
  static const std::vector<AnalysisInfo> analyses = {
#define LAMINA_ANALYSIS(name) name::Info(),
#include "analyses.inc"
#undef LAMINA_ANALYSIS
  };
  return analyses;
}

const AnalysisInfo* FindAnalysis(std::string_view name) {
  for (const AnalysisInfo& analysis : Analyses()) {
    if (analysis.name == name) return &analysis;
  }
  return nullptr;
}

}  // namespace lamina::analysis
