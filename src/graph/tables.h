// SPDX-License-Identifier: Apache-2.0
//
// Graphs as tables: one row per section, op, node, weight and edge.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/types.h"
#include "lamina/table.h"

namespace lamina::graph {

using Graphs = std::span<const Graph* const>;

Table SectionTable(Graphs graphs);
Table OpCountTable(Graphs graphs);
// `bindings` give sizes to symbolic shapes; without them those have no bytes.
Table NodeTable(Graphs graphs, const Bindings& bindings);
Table WeightTable(Graphs graphs, const Bindings& bindings);
// One row per pair of a value or weight and a node that uses it.
Table EdgeTable(Graphs graphs);

// Bytes of a result or annotation; several results are summed. Nothing when a
// symbol is unbound or the dtype has no known size.
std::optional<int64_t> ResultBytes(std::string_view result,
                                   const Bindings& bindings);

}  // namespace lamina::graph
