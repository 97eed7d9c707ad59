// SPDX-License-Identifier: Apache-2.0
//
// The file of a layer. Other programs read it, so its keys and their order are
// fixed; anything more goes below "lamina".
#include "base/json/writer.h"
#include "graph/layers/layer_graph.h"

namespace lamina::graph {
namespace {

using json::Writer;
constexpr auto kEach = Writer::Lines::kEach;

// Whether kernels are said to be of their nodes.
bool Claims(const LayerGraph& layer) {
  return !layer.trace || layer.trace->claimed;
}

void WriteNode(Writer& w, const LayerNode& node, bool claimed) {
  w.Object(kEach);
  w.Text("id", node.id);
  w.Text("op", node.target);
  w.Text("shape", node.shape);
  w.Text("dtype", node.dtype);
  w.Text("group", node.group);
  if (!node.sub_group.empty()) w.Text("sub_group", node.sub_group);
  w.Array("inputs", kEach);
  for (const std::string& input : node.inputs) w.Text(input);
  w.Close();
  w.Array("weight_inputs", kEach);
  for (const LayerWeight& weight : node.weights) {
    w.Object(kEach);
    w.Text("name", weight.name);
    w.Text("shape", weight.shape);
    w.Text("dtype", weight.dtype);
    w.Close();
  }
  w.Close();
  if (claimed && !node.kernels.empty()) {
    w.Array("trace_kernels", kEach);
    for (const LayerKernel& kernel : node.kernels) {
      w.Object(kEach);
      w.Text("kernel", kernel.name);
      w.Real("duration_us", kernel.duration_ns / 1000);
      w.Close();
    }
    w.Close();
  }
  w.Close();
}

void WriteEdges(Writer& w, const LayerGraph& layer) {
  w.Array("edges", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) continue;
    for (const std::string& input : node.inputs) {
      w.Object(kEach);
      w.Text("from", input);
      w.Text("to", node.id);
      w.Close();
    }
  }
  w.Close();
}

// What the published form has no place for.
void WriteExtension(Writer& w, const LayerGraph& layer) {
  w.Object("lamina", kEach);
  if (!layer.stack.empty()) w.Text("stack", layer.stack);
  w.Object("normalized_ops", kEach);
  for (const LayerNode& node : layer.nodes) w.Text(node.id, node.op);
  w.Close();
  w.Array("boundary_nodes", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) WriteNode(w, node, Claims(layer));
  }
  w.Close();
  w.Array("kernels", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (!Claims(layer)) break;
    for (const LayerKernel& kernel : node.kernels) {
      w.Object(kEach);
      w.Text("node", node.id);
      w.Text("full_name", kernel.full_name);
      w.Real("p95_us", (kernel.p95_ns ? static_cast<double>(*kernel.p95_ns)
                                      : kernel.duration_ns) /
                           1000);
      w.Text("confidence", FitName(kernel.fit));
      w.Close();
    }
  }
  w.Close();
  w.Close();
}

}  // namespace

std::string LayerJson(const LayerGraph& layer, bool extended) {
  std::string out;
  Writer w(out, Writer::Spaces::kAfter, 1);
  w.Object(kEach);
  if (layer.part.empty())
    w.Int("layer", layer.index);
  else
    w.Text("layer", layer.part);
  w.Text("source_file", layer.source_file);
  w.Array("nodes", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (!node.boundary) WriteNode(w, node, Claims(layer));
  }
  w.Close();
  WriteEdges(w, layer);
  w.Array("external_inputs", kEach);
  for (const ExternalInput& input : layer.externals) {
    w.Object(kEach);
    w.Text("id", input.id);
    w.Text("label", input.label);
    w.Text("shape", input.shape);
    w.Close();
  }
  w.Close();
  if (layer.trace) {
    w.Object("trace_summary", kEach);
    w.Real("total_duration_us", layer.trace->total_ns / 1000);
    w.Int("kernel_count", layer.trace->kernels);
    w.Int("num_streams", layer.trace->streams);
    if (!layer.trace->warning.empty()) w.Text("warning", layer.trace->warning);
    w.Close();
  }
  if (extended) WriteExtension(w, layer);
  w.Close();
  return out + "\n";
}

}  // namespace lamina::graph
