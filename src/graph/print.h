// SPDX-License-Identifier: Apache-2.0
//
// Graphs as the text they came from. What nobody changed prints byte for byte
// as it was read; changed nodes print with fresh annotations.
#pragma once

#include <string>

#include "graph/dump.h"

namespace lamina::graph {

std::string Print(const Dump& dump);
void AppendGraph(std::string& out, const Graph& graph);
// One line without its end.
void AppendNode(std::string& out, const Graph& graph, NodeId id);

// One name per op, values named by their position (v0, v1 ...), canonical
// shapes, no annotations of operands: equal text for graphs that differ only in
// names, addresses and counters. Not the format of a dump.
void AppendNormalized(std::string& out, const Graph& graph);

// The graph in the grammar of AutoDeploy, whatever it was read from: ops by
// their common names, so that rules and rewriting take it. Keywords, strides
// and lines of the source are lost, and bytes that a name may not have are '_'.
void AppendAutodeploy(std::string& out, const Graph& graph);

// The lines in front of the first graph.
std::string HeaderText(const Header& header, std::string_view new_line = "\n");
// The head of a graph: ruler, name, ruler, empty line.
std::string SectionHead(std::string_view name,
                        std::string_view new_line = "\n");

}  // namespace lamina::graph
