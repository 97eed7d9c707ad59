// SPDX-License-Identifier: Apache-2.0
//
// An SSA program as a graph: nodes in order, what each consumes, who uses it.
//
// A node is a value. Its kinds are placeholder, op and output, which are lines
// of a dump, and weight: a name that is used and never defined in its graph (a
// parameter or buffer). Weights stand in no line and in no order. An op with
// several results is still one value; `getitem` nodes take it apart.
//
// Text is referenced, not copied: names, targets and operands are views into
// the dump or into the arena of the graph. A node that nobody changed prints
// as it was read; a changed one prints from its parts.
//
// Users of a value form a list through the operands, so replacing a value and
// walking its users cost what they touch.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "base/string_pool.h"
#include "graph/line_parser.h"

namespace lamina::graph {

struct NodeTag;
using NodeId = Id<NodeTag>;
struct OperandTag;
using OperandId = Id<OperandTag>;

// One operand. The operands of a node are a run of entries: a container or a
// text that may hold names is followed by the `extent()` entries inside it.
class Operand {
 public:
  OperandKind kind = OperandKind::kLiteral;
  // Inside brackets: a bare name without annotation.
  bool nested = false;
  // The value was replaced: the text is stale, the name is that of value().
  bool replaced = false;

  // As written.
  std::string_view text() const { return {data_, size_}; }
  bool IsValue() const { return kind == OperandKind::kValue; }
  // The value referred to; invalid for other kinds.
  NodeId value() const { return IsValue() ? NodeId(link_) : NodeId(); }
  // Entries below this one.
  uint32_t extent() const { return IsValue() ? 0 : link_; }
  NodeId owner() const { return NodeId(owner_); }

 private:
  friend class Graph;
  uint32_t size_ = 0;
  const char* data_ = nullptr;
  uint32_t link_ = 0;
  uint32_t owner_ = 0;
  uint32_t next_use_ = NodeId::kNone;
  uint32_t previous_use_ = NodeId::kNone;
};

class Node {
 public:
  NodeKind kind = NodeKind::kOp;
  // An unquoted string made the operand list a guess.
  bool ambiguous = false;
  // `output(...)` instead of `output ...`.
  bool call_form = false;
  // No longer in the graph.
  bool erased = false;
  // Prints from its parts.
  bool changed = false;
  // Bytes of the line end behind the line in the file: 0, 1 or 2.
  uint8_t line_end = 0;
  uint32_t line = 0;  // 1-based; 0 for weights and new nodes

  std::string_view name;    // without %; empty for the output
  std::string_view target;  // as written; ops only
  // "shape : dtype" or "(shapes) : (dtypes)". For a weight that of its first
  // annotated use.
  std::string_view result;
  StringId op;  // normalised target; Graph::op() has the text

 private:
  friend class Graph;
  const char* text_ = nullptr;  // the line, without its end
  uint32_t text_size_ = 0;
  // Bytes in front of the line that belong to no node: blank and bad lines.
  uint32_t gap_ = 0;
  uint32_t first_operand_ = 0;
  uint32_t operand_count_ = 0;
  uint32_t first_use_ = NodeId::kNone;
  uint32_t last_use_ = NodeId::kNone;
  uint32_t use_count_ = 0;
  NodeId previous_;
  NodeId next_;
  uint64_t rank_ = 0;  // grows along the list; 0 for weights
};

// Where a node comes from; what a dialect does not print is empty.
struct Origin {
  std::string_view source;  // "model.py:12 in forward, code: h = self.fc(x)"
  std::string_view scope;   // path of the module, dots as underscores
};

// The parts of a result or annotation text.
struct ResultText {
  bool tuple = false;      // "(a, b) : (c, d)"
  std::string_view shape;  // with parentheses when tuple
  std::string_view dtype;
};
ResultText SplitResult(std::string_view result);
// "(a, b)" to {a, b}: split at ", " outside of brackets.
std::vector<std::string_view> SplitTuple(std::string_view text);

class Graph {
 public:
  // `ops` is shared by the graphs of one dump (and by dumps that are to be
  // compared), so that equal ops have equal ids. `text` keeps what the nodes
  // refer to alive.
  Graph(std::string name, std::shared_ptr<StringPool> ops,
        std::shared_ptr<const std::string> text);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;

  const std::string& name() const { return name_; }
  // Empty for AutoDeploy, else the dialect that the graph was read from: its
  // nodes print as they stand in the file, and it cannot be rewritten.
  std::string_view dialect;
  // A line could not be read; nodes and edges may be missing.
  bool incomplete() const { return incomplete_; }

  // --- nodes ---

  // Ids are below size(), erased nodes and weights included.
  size_t size() const { return nodes_.size(); }
  // Nodes that were erased, in the order of that.
  const std::vector<NodeId>& erased() const { return erased_; }
  const Node& operator[](NodeId id) const { return nodes_[id.value]; }
  // The newest node of this name, weights included; invalid if none.
  NodeId Find(std::string_view name) const;
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  NodeId Next(NodeId id) const { return nodes_[id.value].next_; }
  NodeId Previous(NodeId id) const { return nodes_[id.value].previous_; }
  // The last output node; invalid if the graph has none.
  NodeId output() const { return output_; }

  class NodeIterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = NodeId;
    using difference_type = std::ptrdiff_t;
    using pointer = const NodeId*;
    using reference = NodeId;
    NodeIterator() = default;
    NodeIterator(const Graph* graph, NodeId id) : graph_(graph), id_(id) {}
    NodeId operator*() const { return id_; }
    NodeIterator& operator++() {
      id_ = graph_->Next(id_);
      return *this;
    }
    NodeIterator operator++(int) {
      NodeIterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const NodeIterator& other) const {
      return id_ == other.id_;
    }

   private:
    const Graph* graph_ = nullptr;
    NodeId id_;
  };
  struct NodeRange {
    NodeIterator from;
    NodeIterator begin() const { return from; }
    NodeIterator end() const { return {}; }
  };
  // Placeholders, ops and outputs in order. The range stays good while the
  // node at hand is not erased.
  NodeRange nodes() const { return {{this, first_}}; }
  // Names without a definition that something uses, in order of first use.
  std::vector<NodeId> Weights() const;
  // Place of each node in the order, by id; kNone for weights and erased
  // nodes.
  std::vector<uint32_t> Positions() const;
  // The same order for two nodes that stand in it, at any time, at no cost.
  bool ComesBefore(NodeId a, NodeId b) const {
    return nodes_[a.value].rank_ < nodes_[b.value].rank_;
  }

  // Normalised target: "aten.add.Tensor", "builtin.getitem", "fn.name".
  std::string_view op(NodeId id) const { return (*ops_)[nodes_[id.value].op]; }
  const std::shared_ptr<StringPool>& ops() const { return ops_; }
  // Empty texts for nodes without.
  Origin OriginOf(NodeId id) const {
    const auto found = origins_.find(id);
    return found == origins_.end() ? Origin() : found->second;
  }
  // The line as it stands in the file; empty for weights and changed nodes.
  std::string_view Line(NodeId id) const;

  // --- operands ---

  // All entries of a node, containers followed by what is in them.
  std::span<const Operand> Operands(NodeId id) const;
  const Operand& operand(OperandId id) const { return operands_[id.value]; }
  // Ids of the operands at the top level.
  std::vector<OperandId> TopOperands(NodeId id) const;
  // Values consumed in order, each once, those inside brackets too; weights
  // included.
  std::vector<NodeId> Inputs(NodeId id) const;
  // The same without an allocation per node: clears and fills `out`.
  void Inputs(NodeId id, std::vector<NodeId>& out) const;

  // For `getitem(%value, k)` with a literal k of an op with several results:
  // the value and k. Else an invalid id.
  struct Element {
    NodeId value;
    int64_t index = 0;
  };
  Element ElementOf(NodeId id) const;

  // --- users ---

  size_t UseCount(NodeId id) const { return nodes_[id.value].use_count_; }
  // Calls `visit(operand id, operand)` for each use, in order of the uses.
  template <class Visit>
  void ForEachUse(NodeId id, Visit visit) const {
    for (uint32_t u = nodes_[id.value].first_use_; u != NodeId::kNone;) {
      const uint32_t next = operands_[u].next_use_;
      visit(OperandId(u), operands_[u]);
      u = next;
    }
  }
  // Nodes that use a value, each once, in order of first use.
  std::vector<NodeId> Users(NodeId id) const;

  // --- changes ---

  // Reads one line of the grammar and puts the node in front of `before` (at
  // the end when invalid). Names that the line uses and nothing defines become
  // weights. Errors: a line that does not parse, a name that is taken.
  Result<NodeId> Insert(NodeId before, std::string_view line);
  // Every use of `from` becomes one of `to`, except those in `to` itself.
  void ReplaceUses(NodeId from, NodeId to);
  void ReplaceUse(OperandId use, NodeId to);
  // Takes a node without users out of the graph.
  void Erase(NodeId id);
  void MoveBefore(NodeId id, NodeId before);
  // New shape and dtype: "4x8 : torch.float32".
  void SetResult(NodeId id, std::string_view result);
  // A name that nothing has: `base`, or base_1, base_2 ...
  std::string FreshName(std::string_view base);

  // --- for the reader and the printer ---

  // Where a line stands in the text.
  struct LinePlace {
    uint32_t line = 0;
    uint32_t gap = 0;      // bytes in front that belong to no node
    uint8_t line_end = 0;  // bytes of its line end
  };
  // What Append() met besides the line itself.
  enum class Added : uint8_t { kFine, kUsedBefore, kDuplicate };
  // A new last node. It becomes the definition of its name; a weight of that
  // name becomes this node.
  NodeId Append(const ParsedLine& line, const LinePlace& place, Added* added);
  void set_incomplete() { incomplete_ = true; }
  void SetOrigin(NodeId id, Origin origin) { origins_[id] = origin; }
  // The result as read; the node still prints as it stands in the file.
  void FillResult(NodeId id, std::string_view result) {
    nodes_[id.value].result = result;
  }
  // Text of the reader's that lives as long as the graph.
  std::string_view Keep(std::string_view text) { return arena_->Copy(text); }
  void KeepAlive(std::shared_ptr<const std::string> text) {
    kept_.push_back(std::move(text));
  }
  // Text in front of the first line (section head) and behind the last.
  std::string_view head;
  std::string_view tail;
  std::string_view Gap(NodeId id) const;
  // The whole text that the graph was read from; empty: it was read from none.
  std::string_view file() const {
    return text_ ? std::string_view(*text_) : std::string_view();
  }
  std::string_view LineEnd(NodeId id) const;
  // For lines that have none: "\n" or "\r\n".
  std::string_view new_line = "\n";
  // Bytes held besides the text.
  size_t MemoryBytes() const;

 private:
  void Link(NodeId id, NodeId before);
  void Unlink(NodeId id);
  void RankAll();
  void AppendUse(uint32_t operand, NodeId value);
  void RemoveUse(uint32_t operand);
  NodeId NewNode();
  void Fill(NodeId id, const ParsedLine& line);

  std::string name_;
  std::shared_ptr<StringPool> ops_;
  std::shared_ptr<const std::string> text_;
  std::unique_ptr<Arena> arena_;
  std::vector<std::shared_ptr<const std::string>> kept_;
  absl::flat_hash_map<NodeId, Origin> origins_;
  std::vector<Node> nodes_;
  std::vector<NodeId> erased_;
  std::vector<Operand> operands_;
  absl::flat_hash_map<std::string_view, NodeId, TextHash, std::equal_to<>>
      names_;
  TextMap<uint32_t> fresh_;  // next number to try, by base
  NodeId first_;
  NodeId last_;
  NodeId output_;
  bool incomplete_ = false;
};

}  // namespace lamina::graph
