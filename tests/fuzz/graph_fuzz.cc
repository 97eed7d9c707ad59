// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the reader of graph dumps and what works on graphs:
// what is read prints back byte for byte, and users agree with operands.
#include "graph/diff/diff.h"
#include "graph/dump.h"
#include "graph/layers/kinds.h"
#include "graph/layers/layer_graph.h"
#include "graph/print.h"
#include "graph/tables.h"
#include "graph/verify.h"

namespace lamina::graph {
namespace {

const GroupRules& Rules() {
  static const auto rules = GroupRules::Load(rules::DataSet());
  LAMINA_CHECK(rules.has_value());
  return **rules;
}

void CheckGraph(const Graph& graph) {
  for (const Violation& violation : Verify(graph))
    LAMINA_CHECK(violation.what.find("list of users") == std::string::npos);
  VerifyAnnotations(graph);
  std::string text;
  AppendNormalized(text, graph);
  const Graph* const graphs[] = {&graph};
  NodeTable(graphs, {});
  const Layers layers = FindLayers(graph, Rules());
  size_t ops = layers.shared.size() + layers.epilogue.size();
  for (const Layer& layer : layers.layers) ops += layer.nodes.size();
  size_t all = 0;
  for (const NodeId id : graph.nodes())
    all += graph[id].kind == NodeKind::kOp ? 1 : 0;
  LAMINA_CHECK(ops == all);
  const std::vector<Group> groups = GroupNodes(graph, layers, Rules());
  FindKinds(graph, layers, groups);
  for (size_t i = 0; i < layers.layers.size() && i < 4; ++i) {
    LayerJson(
        CutLayer(graph, layers, static_cast<Place>(i), groups, Rules(), true),
        true);
  }
}

}  // namespace
}  // namespace lamina::graph

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto dump = graph::ParseDump("fuzz", text);
  if (!dump) return 0;
  LAMINA_CHECK(graph::Print(*dump) == text);
  graph::Format(dump->diagnostics, dump->name);
  for (const graph::Graph& one : dump->graphs) graph::CheckGraph(one);
  const graph::Graph& first = dump->graphs.front();
  LAMINA_CHECK(graph::Compare(first, first).empty() ||
               dump->diagnostics.Count(graph::Level::kWarning) > 0);
  return 0;
}
