// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the readers of other compilers' dumps: what is read
// prints back byte for byte, and users agree with operands. The begin of the
// text chooses the dialect, as for any file.
#include "graph/dialects/read.h"
#include "graph/layers/layers.h"
#include "graph/print.h"
#include "graph/tables.h"
#include "graph/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto dump = graph::ParseAnyDump("fuzz", text);
  if (!dump) return 0;
  LAMINA_CHECK(graph::Print(*dump) == text);
  graph::Format(dump->diagnostics, dump->name);
  static const auto rules = graph::GroupRules::Load(rules::DataSet());
  LAMINA_CHECK(rules.has_value());
  for (const graph::Graph& one : dump->graphs) {
    for (const graph::Violation& violation : graph::Verify(one))
      LAMINA_CHECK(violation.what.find("list of users") == std::string::npos);
    const graph::Graph* const graphs[] = {&one};
    graph::NodeTable(graphs, {});
    const graph::Layers layers = graph::FindLayers(one, **rules);
    size_t ops = layers.shared.size() + layers.epilogue.size();
    for (const graph::Layer& layer : layers.layers) ops += layer.nodes.size();
    size_t all = 0;
    for (const graph::NodeId id : one.nodes())
      all += one[id].kind == graph::NodeKind::kOp ? 1 : 0;
    LAMINA_CHECK(ops == all);
  }
  return 0;
}
