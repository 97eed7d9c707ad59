// SPDX-License-Identifier: Apache-2.0
//
// The three forms that a graph prints in: as it was read, with one name per op
// for comparing, and in the grammar of AutoDeploy. One file, because all of
// them put names into the operands of a text that is not theirs.
#include "graph/print.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "graph/line_parser.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// The annotation of a use: several results show as a tuple.
std::string_view AnnotationOf(const Node& node) {
  if (node.result.empty()) return "? : unknown";
  return SplitResult(node.result).tuple ? "? : tuple" : node.result;
}

// An operand and what is in it. Names that were replaced are put in the place
// of the old ones; everything between stays.
void AppendOperand(std::string& out, const Graph& graph, const Operand* entry) {
  if (entry->IsValue()) {
    if (!entry->replaced) {
      out += entry->text();
      return;
    }
    const Node& value = graph[entry->value()];
    if (entry->nested) {
      if (entry->text().starts_with('%')) out += '%';
      out += value.name;
      return;
    }
    out += '%';
    out += value.name;
    // The output line names values without annotation.
    if (entry->text().find(kColon) == std::string_view::npos) return;
    out += kColon;
    out += AnnotationOf(value);
    return;
  }
  const std::string_view text = entry->text();
  size_t done = 0;
  for (uint32_t i = 1; i <= entry->extent(); ++i) {
    const Operand& inner = entry[i];
    if (!inner.replaced) continue;
    const auto at = static_cast<size_t>(inner.text().data() - text.data());
    out += text.substr(done, at - done);
    AppendOperand(out, graph, &inner);
    done = at + inner.text().size();
  }
  out += text.substr(done);
}

void AppendOperands(std::string& out, const Graph& graph, NodeId id) {
  const std::span<const Operand> operands = graph.Operands(id);
  for (size_t i = 0; i < operands.size(); i += 1 + operands[i].extent()) {
    if (i > 0) out += ", ";
    AppendOperand(out, graph, &operands[i]);
  }
}

}  // namespace

void AppendNode(std::string& out, const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (!node.changed) {
    out += graph.Line(id);
    return;
  }
  if (node.kind == NodeKind::kOutput) {
    out += node.call_form ? "output(" : "output ";
    AppendOperands(out, graph, id);
    if (node.call_form) out += ')';
    return;
  }
  out += '%';
  out += node.name;
  if (node.kind == NodeKind::kOp) {
    out += " = ";
    out += node.target;
    out += '(';
    AppendOperands(out, graph, id);
    out += ')';
  }
  out += kColon;
  out += node.result;
}

void AppendGraph(std::string& out, const Graph& graph) {
  out += graph.head;
  for (const NodeId id : graph.nodes()) {
    // A line that ended with the file may have got a successor.
    if (graph.dialect.empty() && !out.empty() && out.back() != '\n' &&
        id != graph.first())
      out += graph.new_line;
    if (graph[id].line > 0) out += graph.Gap(id);
    AppendNode(out, graph, id);
    out += graph.LineEnd(id);
  }
  out += graph.tail;
}

std::string Print(const Dump& dump) {
  std::string out;
  out.reserve(dump.text ? dump.text->size() : 0);
  out += dump.preamble;
  for (const Graph& graph : dump.graphs) AppendGraph(out, graph);
  return out;
}

std::string HeaderText(const Header& header, std::string_view new_line) {
  std::string out;
  for (const auto& [key, value] :
       {std::pair<std::string_view, std::string>{"# Transform: ",
                                                 header.transform},
        {"# Stage: ", header.stage},
        {"# GraphModules found: ", std::to_string(header.modules.value_or(1))},
        {"", ""},
        {"", ""}}) {
    out += key;
    out += value;
    out += new_line;
  }
  return out;
}

std::string SectionHead(std::string_view name, std::string_view new_line) {
  const std::string ruler(80, '=');
  std::string out = ruler;
  out += new_line;
  out += "# GraphModule: ";
  out += name;
  out += new_line;
  out += ruler;
  out += new_line;
  out += new_line;
  return out;
}

namespace {

// "s70*s72x4096" for "s72*s70x4096", in tuples too.
std::string NormalizedResult(std::string_view result) {
  const ResultText parts = SplitResult(result);
  std::string out;
  if (parts.tuple) {
    for (const std::string_view shape : SplitTuple(parts.shape)) {
      out += out.empty() ? "(" : ", ";
      out += CanonicalShape(shape);
    }
    out += out.empty() ? "()" : ")";
  } else {
    out = CanonicalShape(parts.shape);
  }
  if (result.find(kColon) == std::string_view::npos) return out;
  out += kColon;
  out += parts.dtype;
  return out;
}

class Normalizer {
 public:
  Normalizer(std::string& out, const Graph& graph)
      : out_(out), graph_(graph), positions_(graph.Positions()) {}

  void Run() {
    out_ += "# GraphModule: ";
    out_ += graph_.name();
    out_ += '\n';
    for (const NodeId id : graph_.nodes()) Line(id);
  }

 private:
  void Name(NodeId id) {
    if (graph_[id].kind == NodeKind::kWeight) {
      out_ += graph_[id].name;
    } else {
      out_ += 'v';
      out_ += std::to_string(positions_[id.value]);
    }
  }

  void Line(NodeId id) {
    const Node& node = graph_[id];
    if (node.kind == NodeKind::kOutput) {
      out_ += "output";
    } else {
      out_ += '%';
      Name(id);
    }
    if (node.kind == NodeKind::kOp) {
      out_ += " = ";
      out_ += graph_.op(id);
    }
    if (node.kind != NodeKind::kPlaceholder) Operands(id);
    if (node.kind != NodeKind::kOutput)
      out_ += std::string(kColon) + NormalizedResult(node.result);
    out_ += '\n';
  }

  void Operands(NodeId id) {
    out_ += '(';
    const std::span<const Operand> operands = graph_.Operands(id);
    for (size_t i = 0; i < operands.size(); i += 1 + operands[i].extent()) {
      if (i > 0) out_ += ", ";
      One(&operands[i]);
    }
    out_ += ')';
  }

  // What is in brackets refers without %, as in the dump.
  void One(const Operand* entry) {
    if (entry->IsValue()) {
      if (!entry->nested) out_ += '%';
      Name(entry->value());
      return;
    }
    const std::string_view text = entry->text();
    size_t done = 0;
    for (uint32_t i = 1; i <= entry->extent(); ++i) {
      if (!entry[i].IsValue()) continue;
      const auto at = static_cast<size_t>(entry[i].text().data() - text.data());
      out_ += text.substr(done, at - done);
      One(&entry[i]);
      done = at + entry[i].text().size();
    }
    out_ += text.substr(done);
  }

  std::string& out_;
  const Graph& graph_;
  std::vector<uint32_t> positions_;
};

}  // namespace

void AppendNormalized(std::string& out, const Graph& graph) {
  Normalizer(out, graph).Run();
}

namespace {

class AutodeployWriter {
 public:
  AutodeployWriter(std::string& out, const Graph& graph)
      : out_(out), graph_(graph) {}

  void Run() {
    out_ += SectionHead(Plain(graph_.name()));
    for (const NodeId id : graph_.nodes()) Line(id);
  }

 private:
  // Without what would end a line or begin a name.
  static std::string Plain(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '%') continue;
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
  }

  const std::string& NameOf(NodeId id) {
    const auto [found, fresh] = names_.try_emplace(id);
    if (!fresh) return found->second;
    std::string name;
    for (const char c : graph_[id].name) name += IsNameByte(c) ? c : '_';
    if (name.empty() || !IsNameStart(name[0])) name.insert(0, "_");
    const std::string base = name;
    // Names that are alike without other bytes go on where the last one ended.
    while (!taken_.insert(name).second)
      name = base + "_" + std::to_string(++numbers_[base]);
    return found->second = std::move(name);
  }

  void Line(NodeId id) {
    const Node& node = graph_[id];
    if (node.kind == NodeKind::kOutput) {
      out_ += "output ";
      Operands(id);
      out_ += '\n';
      return;
    }
    out_ += '%' + NameOf(id);
    if (node.kind == NodeKind::kOp) {
      out_ += " = " + Plain(graph_.op(id)) + "(";
      Operands(id);
      out_ += ')';
    }
    out_ += kColon;
    out_ += node.kind == NodeKind::kPlaceholder ? AnnotationOf(node)
                                                : Plain(node.result);
    out_ += '\n';
  }

  void Operands(NodeId id) {
    const bool output = graph_[id].kind == NodeKind::kOutput;
    const std::span<const Operand> operands = graph_.Operands(id);
    bool first = true;
    for (size_t i = 0; i < operands.size(); i += 1 + operands[i].extent()) {
      const Operand& one = operands[i];
      if (one.kind == OperandKind::kKeyword) continue;
      if (!first) out_ += ", ";
      first = false;
      if (!one.IsValue()) {
        out_ += Inside(&one);
        continue;
      }
      out_ += '%' + NameOf(one.value());
      // The output line names values without annotation.
      if (output) continue;
      out_ += kColon;
      out_ += AnnotationOf(graph_[one.value()]);
    }
    if (first && output) out_ += "None";
  }

  // What is in brackets refers without %.
  std::string Inside(const Operand* entry) {
    if (entry->IsValue()) return NameOf(entry->value());
    const std::string_view text = entry->text();
    std::string out;
    size_t done = 0;
    for (uint32_t i = 1; i <= entry->extent(); ++i) {
      if (!entry[i].IsValue()) continue;
      const auto at = static_cast<size_t>(entry[i].text().data() - text.data());
      out += Plain(text.substr(done, at - done)) + Inside(&entry[i]);
      done = at + entry[i].text().size();
    }
    return out + Plain(text.substr(done));
  }

  std::string& out_;
  const Graph& graph_;
  absl::flat_hash_map<NodeId, std::string> names_;
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, size_t> numbers_;  // by name without number
};

}  // namespace

void AppendAutodeploy(std::string& out, const Graph& graph) {
  AutodeployWriter(out, graph).Run();
}

}  // namespace lamina::graph
