// SPDX-License-Identifier: Apache-2.0
//
// The file of a layer. Other programs read it, so its keys and their order are
// fixed; anything more goes below "lamina".
#include "base/decimal.h"
#include "base/escape.h"
#include "graph/layers/layer_graph.h"

namespace lamina::graph {
namespace {

// JSON with one space per level.
class Writer {
 public:
  void Open(char bracket) {
    Begin();
    out_ += bracket;
    first_ = true;
    ++depth_;
  }
  void Close(char bracket) {
    --depth_;
    if (!first_) NewLine();
    out_ += bracket;
    first_ = false;
  }
  void Key(std::string_view key) {
    Begin();
    AppendJsonQuoted(out_, key);
    out_ += ": ";
    after_key_ = true;
  }
  void Text(std::string_view text) {
    Begin();
    AppendJsonQuoted(out_, text);
  }
  void Number(int64_t value) {
    Begin();
    AppendInt(out_, value);
  }
  void Microseconds(double ns) {
    Begin();
    AppendNumber(out_, ns / 1000);
  }
  void Bool(bool value) {
    Begin();
    out_ += value ? "true" : "false";
  }
  void Member(std::string_view key, std::string_view text) {
    Key(key);
    Text(text);
  }
  std::string Finish() {
    out_ += '\n';
    return std::move(out_);
  }

 private:
  void Begin() {
    if (!after_key_ && depth_ > 0) {
      if (!first_) out_ += ',';
      NewLine();
    }
    after_key_ = false;
    first_ = false;
  }
  void NewLine() {
    out_ += '\n';
    out_.append(depth_, ' ');
  }

  std::string out_;
  size_t depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

void WriteNode(Writer& w, const LayerNode& node) {
  w.Open('{');
  w.Member("id", node.id);
  w.Member("op", node.target);
  w.Member("shape", node.shape);
  w.Member("dtype", node.dtype);
  w.Member("group", node.group);
  if (!node.sub_group.empty()) w.Member("sub_group", node.sub_group);
  w.Key("inputs");
  w.Open('[');
  for (const std::string& input : node.inputs) w.Text(input);
  w.Close(']');
  w.Key("weight_inputs");
  w.Open('[');
  for (const LayerWeight& weight : node.weights) {
    w.Open('{');
    w.Member("name", weight.name);
    w.Member("shape", weight.shape);
    w.Member("dtype", weight.dtype);
    w.Close('}');
  }
  w.Close(']');
  if (!node.kernels.empty()) {
    w.Key("trace_kernels");
    w.Open('[');
    for (const LayerKernel& kernel : node.kernels) {
      w.Open('{');
      w.Member("kernel", kernel.name);
      w.Key("duration_us");
      w.Microseconds(kernel.duration_ns);
      w.Close('}');
    }
    w.Close(']');
  }
  w.Close('}');
}

void WriteEdges(Writer& w, const LayerGraph& layer) {
  w.Key("edges");
  w.Open('[');
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) continue;
    for (const std::string& input : node.inputs) {
      w.Open('{');
      w.Member("from", input);
      w.Member("to", node.id);
      w.Close('}');
    }
  }
  w.Close(']');
}

// What the published form has no place for.
void WriteExtension(Writer& w, const LayerGraph& layer) {
  w.Key("lamina");
  w.Open('{');
  if (!layer.stack.empty()) w.Member("stack", layer.stack);
  w.Key("normalized_ops");
  w.Open('{');
  for (const LayerNode& node : layer.nodes) w.Member(node.id, node.op);
  w.Close('}');
  w.Key("boundary_nodes");
  w.Open('[');
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) WriteNode(w, node);
  }
  w.Close(']');
  w.Key("kernels");
  w.Open('[');
  for (const LayerNode& node : layer.nodes) {
    for (const LayerKernel& kernel : node.kernels) {
      w.Open('{');
      w.Member("node", node.id);
      w.Member("full_name", kernel.full_name);
      w.Key("p95_us");
      w.Microseconds(kernel.p95_ns ? static_cast<double>(*kernel.p95_ns)
                                   : kernel.duration_ns);
      w.Member("confidence", kernel.confidence);
      w.Close('}');
    }
  }
  w.Close(']');
  w.Close('}');
}

}  // namespace

std::string LayerJson(const LayerGraph& layer, bool extended) {
  Writer w;
  w.Open('{');
  w.Key("layer");
  w.Number(layer.index);
  w.Member("source_file", layer.source_file);
  w.Key("nodes");
  w.Open('[');
  for (const LayerNode& node : layer.nodes) {
    if (!node.boundary) WriteNode(w, node);
  }
  w.Close(']');
  WriteEdges(w, layer);
  w.Key("external_inputs");
  w.Open('[');
  for (const ExternalInput& input : layer.externals) {
    w.Open('{');
    w.Member("id", input.id);
    w.Member("label", input.label);
    w.Member("shape", input.shape);
    w.Close('}');
  }
  w.Close(']');
  if (layer.trace) {
    w.Key("trace_summary");
    w.Open('{');
    w.Key("total_duration_us");
    w.Microseconds(layer.trace->total_ns);
    w.Key("kernel_count");
    w.Number(static_cast<int64_t>(layer.trace->kernels));
    w.Key("num_streams");
    w.Number(static_cast<int64_t>(layer.trace->streams));
    w.Close('}');
  }
  if (extended) WriteExtension(w, layer);
  w.Close('}');
  return w.Finish();
}

}  // namespace lamina::graph
