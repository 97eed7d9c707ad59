// SPDX-License-Identifier: Apache-2.0
//
// Tables that look closer: the kernels of a layer, the votes for its stage,
// the rules behind the most expensive names, and the files of the classic
// analyzer.
#pragma once

#include <vector>

#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {

struct Details {
  const Context& context;
  const Rules& rules;
  const LayerModel& model;
  const Options& options;
};

std::vector<Schema> DetailSchemas();

// Kernels of the layers of `options.list`, of the first pass.
Table LayerKernels(const Details& in);
// Votes by initial stage of the layers of `options.debug`, of the first pass.
Table LayerVotes(const Details& in);
// The longest kernels of the same layers with the rules that decided.
Table LayerDebug(const Details& in);
// The 25 names that took the most time, with the rules that decided.
Table NameRuleTable(const Details& in);
// Tables stats, events and layers with the columns of the classic analyzer.
std::vector<Table> ClassicTables(const Details& in);

}  // namespace lamina::analysis::layers
