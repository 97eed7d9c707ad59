// SPDX-License-Identifier: Apache-2.0
//
// One function per dialect. Each reads the graphs of one text into the
// builder; what cannot be read is told there with its place. `name` is what
// the surroundings call the graph (payload, log message); empty: what the text
// says itself.
#pragma once

#include "graph/dialects/builder.h"

namespace lamina::graph {

// print_readable and gm.code: torch.export, dynamo, AOT and Inductor graphs.
void ReadFxText(const SourceText& source, std::string_view name, Builder& out);
// Graph.__str__: lines `%x : [num_users=1] = call_function[...](...)`.
void ReadFxGraph(const SourceText& source, std::string_view name, Builder& out);
// print_tabular.
void ReadFxTable(const SourceText& source, std::string_view name, Builder& out);
// Output code of Inductor: the fragments above its kernels are one graph.
void ReadInductor(const SourceText& source, std::string_view name,
                  Builder& out);
// StableHLO, MHLO and other MLIR: a graph per function.
void ReadMlir(const SourceText& source, std::string_view name, Builder& out);
// HLO text: a graph per computation.
void ReadHlo(const SourceText& source, std::string_view name, Builder& out,
             std::string& main);

// One statement of Graph.__str__ behind its %; false when it is none.
bool ReadFxStatement(Span line, Builder& out);

}  // namespace lamina::graph
