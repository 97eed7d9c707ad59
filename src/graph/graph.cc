// SPDX-License-Identifier: Apache-2.0

#include "graph/graph.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace lamina::graph {

namespace {

// Between the ranks of neighbours, so that ranks fit in between.
constexpr uint64_t kRankGap = uint64_t{1} << 32;

}  // namespace

ResultText SplitResult(std::string_view result) {
  const size_t colon = result.find(" : ");
  if (colon == std::string_view::npos) return {false, result, {}};
  ResultText out;
  out.shape = result.substr(0, colon);
  out.dtype = result.substr(colon + 3);
  out.tuple = out.dtype.starts_with('(');
  return out;
}

std::vector<std::string_view> SplitTuple(std::string_view text) {
  std::vector<std::string_view> out;
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return out;
  text = text.substr(1, text.size() - 2);
  if (text.empty()) return out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && text[i + 1] == ' ' && depth == 0) {
      out.push_back(text.substr(start, i - start));
      start = i + 2;
    }
  }
  out.push_back(text.substr(start));
  return out;
}

Graph::Graph(std::string name, std::shared_ptr<StringPool> ops,
             std::shared_ptr<const std::string> text)
    : name_(std::move(name)),
      ops_(std::move(ops)),
      text_(std::move(text)),
      arena_(std::make_unique<Arena>()) {}

NodeId Graph::Find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? NodeId() : found->second;
}

std::vector<NodeId> Graph::Weights() const {
  std::vector<NodeId> out;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind == NodeKind::kWeight && nodes_[i].use_count_ > 0)
      out.emplace_back(i);
  }
  return out;
}

std::vector<uint32_t> Graph::Positions() const {
  std::vector<uint32_t> out(nodes_.size(), NodeId::kNone);
  uint32_t position = 0;
  for (const NodeId id : nodes()) out[id.value] = position++;
  return out;
}

std::string_view Graph::Line(NodeId id) const {
  const Node& node = nodes_[id.value];
  if (node.changed) return {};
  return {node.text_, node.text_size_};
}

std::string_view Graph::Gap(NodeId id) const {
  const Node& node = nodes_[id.value];
  return {node.text_ - node.gap_, node.gap_};
}

std::string_view Graph::LineEnd(NodeId id) const {
  const Node& node = nodes_[id.value];
  if (node.line == 0) return new_line;
  return {node.text_ + node.text_size_, node.line_end};
}

std::span<const Operand> Graph::Operands(NodeId id) const {
  const Node& node = nodes_[id.value];
  return {operands_.data() + node.first_operand_, node.operand_count_};
}

std::vector<OperandId> Graph::TopOperands(NodeId id) const {
  std::vector<OperandId> out;
  const Node& node = nodes_[id.value];
  for (uint32_t i = 0; i < node.operand_count_; ++i) {
    out.emplace_back(node.first_operand_ + i);
    i += operands_[node.first_operand_ + i].extent();
  }
  return out;
}

void Graph::Inputs(NodeId id, std::vector<NodeId>& out) const {
  out.clear();
  const std::span<const Operand> operands = Operands(id);
  for (const Operand& operand : operands) {
    if (operand.IsValue()) out.push_back(operand.value());
  }
  if (out.size() < 2) return;
  // Short lists are searched, long ones (an MoE of many experts) are not.
  if (out.size() <= 16) {
    size_t kept = 0;
    for (const NodeId value : out) {
      const auto end = out.begin() + static_cast<ptrdiff_t>(kept);
      if (std::find(out.begin(), end, value) == end) out[kept++] = value;
    }
    out.resize(kept);
    return;
  }
  absl::flat_hash_set<NodeId> seen;
  std::erase_if(out, [&](NodeId value) { return !seen.insert(value).second; });
}

std::vector<NodeId> Graph::Inputs(NodeId id) const {
  std::vector<NodeId> out;
  Inputs(id, out);
  return out;
}

Graph::Element Graph::ElementOf(NodeId id) const {
  if (op(id) != "builtin.getitem") return {};
  const std::span<const Operand> operands = Operands(id);
  if (operands.size() != 2 || !operands[0].IsValue() ||
      operands[1].kind != OperandKind::kLiteral)
    return {};
  const NodeId value = operands[0].value();
  const auto index = ParseInt(operands[1].text());
  if (!index || nodes_[value.value].kind != NodeKind::kOp ||
      !SplitResult(nodes_[value.value].result).tuple)
    return {};
  return {value, *index};
}

std::vector<NodeId> Graph::Users(NodeId id) const {
  // Uses of one node stand side by side unless they were replaced.
  std::vector<NodeId> out;
  ForEachUse(id, [&](OperandId, const Operand& operand) {
    if (out.empty() || out.back() != operand.owner())
      out.push_back(operand.owner());
  });
  if (out.size() > 1) {
    absl::flat_hash_set<NodeId> seen;
    std::erase_if(out, [&](NodeId user) { return !seen.insert(user).second; });
  }
  return out;
}

NodeId Graph::NewNode() {
  nodes_.emplace_back();
  return NodeId(static_cast<uint32_t>(nodes_.size() - 1));
}

void Graph::Link(NodeId id, NodeId before) {
  Node& node = nodes_[id.value];
  node.next_ = before;
  node.previous_ = before.valid() ? nodes_[before.value].previous_ : last_;
  (node.previous_.valid() ? nodes_[node.previous_.value].next_ : first_) = id;
  (before.valid() ? nodes_[before.value].previous_ : last_) = id;
  const uint64_t low =
      node.previous_.valid() ? nodes_[node.previous_.value].rank_ : 0;
  const uint64_t high =
      before.valid() ? nodes_[before.value].rank_ : low + 2 * kRankGap;
  node.rank_ = low + (high - low) / 2;
  if (node.rank_ == low) RankAll();
}

// Only after some thirty insertions at one place.
void Graph::RankAll() {
  uint64_t rank = 0;
  for (NodeId id = first_; id.valid(); id = nodes_[id.value].next_)
    nodes_[id.value].rank_ = rank += kRankGap;
}

void Graph::Unlink(NodeId id) {
  Node& node = nodes_[id.value];
  (node.previous_.valid() ? nodes_[node.previous_.value].next_ : first_) =
      node.next_;
  (node.next_.valid() ? nodes_[node.next_.value].previous_ : last_) =
      node.previous_;
  node.next_ = node.previous_ = NodeId();
}

void Graph::AppendUse(uint32_t operand, NodeId value) {
  Operand& use = operands_[operand];
  Node& node = nodes_[value.value];
  use.link_ = value.value;
  use.next_use_ = NodeId::kNone;
  use.previous_use_ = node.last_use_;
  (node.last_use_ == NodeId::kNone ? node.first_use_
                                   : operands_[node.last_use_].next_use_) =
      operand;
  node.last_use_ = operand;
  ++node.use_count_;
}

void Graph::RemoveUse(uint32_t operand) {
  const Operand& use = operands_[operand];
  Node& node = nodes_[use.link_];
  (use.previous_use_ == NodeId::kNone
       ? node.first_use_
       : operands_[use.previous_use_].next_use_) = use.next_use_;
  (use.next_use_ == NodeId::kNone ? node.last_use_
                                  : operands_[use.next_use_].previous_use_) =
      use.previous_use_;
  --node.use_count_;
}

void Graph::Fill(NodeId id, const ParsedLine& line) {
  {
    Node& node = nodes_[id.value];
    node.kind = line.kind;
    node.ambiguous = line.ambiguous;
    node.call_form = line.call_form;
    node.name = line.name;
    node.target = line.target;
    node.result = line.result;
    node.text_ = line.text.data();
    node.text_size_ = static_cast<uint32_t>(line.text.size());
    if (line.kind == NodeKind::kOp) {
      node.op = !line.op.empty() ? ops_->Intern(line.op)
                : line.target.starts_with('<')
                    ? ops_->Intern(NormalizeTarget(line.target))
                    : ops_->Intern(line.target);
    }
    node.first_operand_ = static_cast<uint32_t>(operands_.size());
    node.operand_count_ = static_cast<uint32_t>(line.operands.size());
  }
  for (const ParsedOperand& parsed : line.operands) {
    const auto at = static_cast<uint32_t>(operands_.size());
    Operand& operand = operands_.emplace_back();
    operand.kind = parsed.kind;
    operand.nested = parsed.nested;
    operand.data_ = parsed.text.data();
    operand.size_ = static_cast<uint32_t>(parsed.text.size());
    operand.owner_ = id.value;
    operand.link_ = parsed.extent;
    if (parsed.kind != OperandKind::kValue) continue;
    const auto [found, fresh] = names_.try_emplace(parsed.name);
    if (fresh) {
      const NodeId weight = NewNode();
      found->second = weight;
      nodes_[weight.value].kind = NodeKind::kWeight;
      nodes_[weight.value].name = parsed.name;
    }
    AppendUse(at, found->second);
    Node& value = nodes_[found->second.value];
    if (value.kind == NodeKind::kWeight && value.result.empty())
      value.result = parsed.annotation;
  }
}

NodeId Graph::Append(const ParsedLine& line, const LinePlace& place,
                     Added* added) {
  NodeId id;
  *added = Added::kFine;
  if (line.kind == NodeKind::kOutput) {
    id = NewNode();
    output_ = id;
  } else {
    const auto [found, fresh] = names_.try_emplace(line.name);
    if (!fresh && nodes_[found->second.value].kind == NodeKind::kWeight) {
      *added = Added::kUsedBefore;
      id = found->second;
    } else {
      if (!fresh) *added = Added::kDuplicate;
      id = NewNode();
      found->second = id;
    }
  }
  Node& node = nodes_[id.value];
  node.line = place.line;
  node.gap_ = place.gap;
  node.line_end = place.line_end;
  Link(id, NodeId());
  // A line that names itself as an operand finds itself.
  Fill(id, line);
  return id;
}

Result<NodeId> Graph::Insert(NodeId before, std::string_view line) {
  ParsedLine parsed;
  LineError wrong;
  const std::string_view kept = arena_->Copy(line);
  const auto failed = [&](size_t column, std::string what) {
    Error error = InputError("", std::move(what));
    error.line = 1;
    error.column = static_cast<uint32_t>(column + 1);
    error.excerpt = EscapeTerminal(line);
    return Fail(std::move(error));
  };
  if (!ParseLine(kept, parsed, wrong)) return failed(wrong.column, wrong.what);
  const NodeId taken = Find(parsed.name);
  if (parsed.kind != NodeKind::kOutput && taken.valid() &&
      nodes_[taken.value].kind != NodeKind::kWeight) {
    return failed(1, "the name '" + EscapeTerminal(parsed.name) + "' is taken");
  }
  Added added = Added::kFine;
  const NodeId id = Append(parsed, LinePlace(), &added);
  if (before.valid()) MoveBefore(id, before);
  return id;
}

void Graph::ReplaceUse(OperandId use, NodeId to) {
  RemoveUse(use.value);
  AppendUse(use.value, to);
  Operand& operand = operands_[use.value];
  operand.replaced = true;
  nodes_[operand.owner_].changed = true;
}

void Graph::ReplaceUses(NodeId from, NodeId to) {
  LAMINA_CHECK(from != to);
  ForEachUse(from, [&](OperandId id, const Operand& operand) {
    if (operand.owner() != to) ReplaceUse(id, to);
  });
}

void Graph::Erase(NodeId id) {
  Node& node = nodes_[id.value];
  LAMINA_CHECK(node.use_count_ == 0 && !node.erased &&
               node.kind != NodeKind::kWeight);
  for (uint32_t i = 0; i < node.operand_count_; ++i) {
    const uint32_t at = node.first_operand_ + i;
    if (operands_[at].IsValue()) RemoveUse(at);
  }
  node.operand_count_ = 0;
  const auto found = names_.find(node.name);
  if (found != names_.end() && found->second == id) names_.erase(found);
  if (output_ == id) output_ = NodeId();
  Unlink(id);
  node.erased = true;
  erased_.push_back(id);
}

void Graph::MoveBefore(NodeId id, NodeId before) {
  if (id == before) return;
  Unlink(id);
  Link(id, before);
}

void Graph::SetResult(NodeId id, std::string_view result) {
  Node& node = nodes_[id.value];
  node.result = arena_->Copy(result);
  node.changed = true;
}

std::string Graph::FreshName(std::string_view base) {
  if (!Find(base).valid()) return std::string(base);
  uint32_t& number = fresh_[base];
  for (;;) {
    std::string name = std::string(base) + "_" + std::to_string(++number);
    if (!Find(name).valid()) return name;
  }
}

size_t Graph::MemoryBytes() const {
  return nodes_.capacity() * sizeof(Node) +
         operands_.capacity() * sizeof(Operand) + arena_->bytes() +
         names_.capacity() * (sizeof(std::string_view) + sizeof(NodeId) + 1);
}

namespace {

std::string Named(const Graph& graph, NodeId id) {
  return "'%" + EscapeTerminal(graph[id].name) + "'";
}

}  // namespace

std::vector<Violation> Verify(const Graph& graph) {
  std::vector<Violation> out;
  const std::vector<uint32_t> position = graph.Positions();
  std::vector<uint32_t> uses(graph.size(), 0);
  absl::flat_hash_set<std::string_view> names;
  NodeId previous;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    if (graph.Previous(id) != previous)
      out.push_back({id, "the order of the nodes is broken"});
    previous = id;
    if (node.erased) out.push_back({id, "an erased node stands in the order"});
    if (node.kind != NodeKind::kOutput && !names.insert(node.name).second)
      out.push_back({id, Named(graph, id) + " is defined a second time"});
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.owner() != id)
        out.push_back({id, "an operand belongs to another node"});
      if (!operand.IsValue()) continue;
      const NodeId value = operand.value();
      ++uses[value.value];
      if (graph[value].erased) {
        out.push_back({id, Named(graph, value) + " is used and was erased"});
      } else if (graph[value].kind != NodeKind::kWeight &&
                 position[value.value] >= position[id.value]) {
        out.push_back(
            {id, Named(graph, value) + " is used before its definition"});
      }
    }
  }
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const NodeId id(i);
    size_t listed = 0;
    graph.ForEachUse(id, [&](OperandId, const Operand& operand) {
      listed += operand.value() == id ? 1 : 0;
    });
    if (listed != uses[i] || graph.UseCount(id) != uses[i])
      out.push_back({id, "the list of users of " + Named(graph, id) +
                             " does not agree with the operands"});
    if (graph[id].kind == NodeKind::kWeight && names.contains(graph[id].name))
      out.push_back({id, Named(graph, id) + " is both a weight and defined"});
  }
  return out;
}

std::vector<Violation> VerifyAnnotations(const Graph& graph) {
  std::vector<Violation> out;
  for (const NodeId id : graph.nodes()) {
    for (const Operand& operand : graph.Operands(id)) {
      if (!operand.IsValue() || operand.replaced) continue;
      const size_t colon = operand.text().find(" : ");
      if (colon == std::string_view::npos) continue;
      const std::string_view used = operand.text().substr(colon + 3);
      const Node& value = graph[operand.value()];
      // Several results and missing metadata show as "?".
      if (used == value.result || used.starts_with("? : ") ||
          value.result.starts_with("? : "))
        continue;
      const ResultText a = SplitResult(used);
      const ResultText b = SplitResult(value.result);
      if (a.dtype == b.dtype &&
          CanonicalShape(a.shape) == CanonicalShape(b.shape))
        continue;
      out.push_back({id, "uses " + Named(graph, operand.value()) + " as '" +
                             EscapeTerminal(used) + "', which is '" +
                             EscapeTerminal(value.result) + "'"});
    }
  }
  return out;
}

Counts CountOf(const Graph& graph) {
  Counts out;
  std::vector<NodeId> inputs;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    switch (node.kind) {
      case NodeKind::kPlaceholder:
        ++out.placeholders;
        break;
      case NodeKind::kOp:
        ++out.ops;
        break;
      case NodeKind::kOutput:
        ++out.outputs;
        break;
      case NodeKind::kWeight:
        break;
    }
    out.ambiguous += node.ambiguous ? 1 : 0;
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.IsValue() && operand.nested &&
          graph[operand.value()].kind != NodeKind::kWeight)
        ++out.in_lists;
    }
    graph.Inputs(id, inputs);
    for (const NodeId input : inputs) {
      if (graph[input].kind == NodeKind::kWeight) continue;
      ++out.edges;
    }
  }
  out.weights = graph.Weights().size();
  return out;
}

std::map<std::string_view, size_t> OpCounts(const Graph& graph) {
  std::map<std::string_view, size_t> out;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind == NodeKind::kOp) ++out[graph.op(id)];
  }
  return out;
}

}  // namespace lamina::graph
