// SPDX-License-Identifier: Apache-2.0
#include "analysis/analyses.h"

#include "analysis/host_tables/tables.h"
#include "graph/compiled/compiled_tables.h"

#define LAMINA_ANALYSIS(name)        \
  namespace lamina::analysis::name { \
  AnalysisInfo Info();               \
  }
#include "analyses.inc"
#undef LAMINA_ANALYSIS

namespace lamina::analysis {

std::span<const AnalysisInfo> Analyses() {
  static const std::vector<AnalysisInfo> analyses = [] {
    std::vector<AnalysisInfo> all = {
#define LAMINA_ANALYSIS(name) name::Info(),
#include "analyses.inc"
#undef LAMINA_ANALYSIS
    };
    for (AnalysisInfo& info : host_tables::Infos()) all.push_back(info);
    all.push_back(graph::CompiledInfo());
    return all;
  }();
  return analyses;
}

const AnalysisInfo* FindAnalysis(std::string_view name) {
  for (const AnalysisInfo& analysis : Analyses()) {
    if (analysis.name == name) return &analysis;
  }
  return nullptr;
}

}  // namespace lamina::analysis
