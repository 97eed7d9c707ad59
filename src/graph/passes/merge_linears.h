// SPDX-License-Identifier: Apache-2.0
//
// The native pass behind the rules for linears that share an input: one linear
// over the joined weight, and one piece of its result per old linear. How many
// there are is not fixed, so lines of a rule cannot say it.
#pragma once

#include <string_view>

#include "graph/passes/pattern_pass.h"

namespace lamina::graph {

inline constexpr std::string_view kMergeLinears = "merge_linears";

// Pieces are taken with narrow when other users of the input are allowed (no
// guard asks for all_users), else with one split.
Applied MergeLinears(Graph& graph, const Rule& rule,
                     const ApplyOptions& options);

}  // namespace lamina::graph
