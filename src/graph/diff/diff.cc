// SPDX-License-Identifier: Apache-2.0
#include "graph/diff/diff.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/escape.h"
#include "base/sequence_match.h"
#include "base/text.h"
#include "graph/types.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

uint64_t Mix(uint64_t h, uint64_t value) {
  h ^= value + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);
}

uint64_t HashText(std::string_view text) {
  return Mix(Fnv1a(text), text.size());
}

// Hashes of the nodes of a graph.
class Hashes {
 public:
  explicit Hashes(const Graph& graph) {
    deep_.assign(graph.size(), 0);
    shallow_.assign(graph.size(), 0);
    for (const NodeId id : graph.nodes()) {
      order_.push_back(id);
      uint64_t shallow =
          Mix(static_cast<uint64_t>(graph[id].kind), HashText(graph.op(id)));
      if (graph[id].kind == NodeKind::kPlaceholder)
        shallow = Mix(shallow, HashText(graph[id].name));
      uint64_t deep = shallow;
      for (const Operand& operand : graph.Operands(id)) {
        if (operand.IsValue()) {
          const Node& value = graph[operand.value()];
          const bool weight = value.kind == NodeKind::kWeight;
          const uint64_t named = HashText(value.name);
          // How many values it takes tells a residual from an offset.
          shallow = Mix(shallow, weight ? named : 1);
          deep = Mix(deep, weight ? named : deep_[operand.value().value]);
        } else if (operand.extent() == 0) {
          const uint64_t text = HashText(operand.text());
          deep = Mix(deep, text);
        } else {
          deep = Mix(deep, operand.extent());
        }
      }
      shallow_[id.value] = shallow;
      deep_[id.value] = deep;
    }
  }
  // With all that the node depends on.
  uint64_t Deep(NodeId id) const { return deep_[id.value]; }
  // Op, weights and the number of values alone.
  uint64_t Shallow(NodeId id) const { return shallow_[id.value]; }
  const std::vector<NodeId>& order() const { return order_; }

 private:
  std::vector<uint64_t> deep_;
  std::vector<uint64_t> shallow_;
  std::vector<NodeId> order_;
};

// Symbols of the first graph by what they are in the second.
class Symbols {
 public:
  // Whether two shapes are the same under some renaming or value of symbols
  // that does not contradict the others.
  bool Same(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto x = SplitShape(a);
    const auto y = SplitShape(b);
    if (!x || !y || x->size() != y->size()) return false;
    for (size_t i = 0; i < x->size(); ++i) {
      if (!SameDim((*x)[i], (*y)[i])) return false;
    }
    return true;
  }

 private:
  static bool IsName(std::string_view text) {
    return !text.empty() && !IsDigit(text[0]) &&
           std::all_of(text.begin(), text.end(), IsWordCharacter);
  }
  bool SameDim(std::string_view a, std::string_view b) {
    if (IsName(a)) {
      const auto [found, fresh] =
          known_.try_emplace(std::string(a), std::string(b));
      return fresh || found->second == b;
    }
    const std::string x = CanonicalDim(a);
    const std::string y = CanonicalDim(b);
    if (x == y) return true;
    if (lamina::graph::Symbols(a).empty()) return false;
    // An expression: with the symbols that are known put in.
    std::string put;
    for (size_t i = 0; i < a.size();) {
      size_t end = i;
      while (end < a.size() && IsWordCharacter(a[end])) ++end;
      if (end == i) {
        put += a[i++];
        continue;
      }
      const std::string word(a.substr(i, end - i));
      const auto found = known_.find(word);
      if (IsName(word) && found == known_.end() && word != "Max" &&
          word != "Min")
        return true;  // nothing is known that could contradict
      put += found == known_.end() ? word : found->second;
      i = end;
    }
    if (CanonicalDim(put) == y) return true;
    const auto left = EvaluateDim(put, {});
    return left && left == EvaluateDim(b, {});
  }

  std::map<std::string, std::string> known_;
};

class Comparer {
 public:
  Comparer(const Graph& a, const Graph& b)
      : a_(a), b_(b), hash_a_(a), hash_b_(b) {}

  std::vector<Difference> Run() {
    PairEqual();
    PairRest();
    for (const NodeId id : hash_b_.order()) {
      const NodeId other = in_a_[id.value];
      if (!other.valid()) {
        out_.push_back({Change::kAdded, {}, id, {}});
        continue;
      }
      Operands(other, id);
      Result(other, id);
    }
    for (const NodeId id : hash_a_.order()) {
      if (!in_b_[id.value].valid())
        out_.push_back({Change::kRemoved, id, {}, {}});
    }
    return std::move(out_);
  }

 private:
  void Pair(NodeId a, NodeId b) {
    in_b_[a.value] = b;
    in_a_[b.value] = a;
  }

  // Equal with all they depend on: the first with the first, and so on.
  void PairEqual() {
    in_a_.assign(b_.size(), NodeId());
    in_b_.assign(a_.size(), NodeId());
    absl::flat_hash_map<uint64_t, std::vector<NodeId>> waiting;
    for (const NodeId id : hash_a_.order())
      waiting[hash_a_.Deep(id)].push_back(id);
    absl::flat_hash_map<uint64_t, size_t> taken;
    for (const NodeId id : hash_b_.order()) {
      const auto found = waiting.find(hash_b_.Deep(id));
      if (found == waiting.end()) continue;
      size_t& next = taken[found->first];
      if (next < found->second.size()) Pair(found->second[next++], id);
    }
  }

  // What is left, by op and weights in order.
  void PairRest() {
    std::vector<NodeId> left_a;
    std::vector<NodeId> left_b;
    std::vector<uint64_t> tokens_a;
    std::vector<uint64_t> tokens_b;
    for (const NodeId id : hash_a_.order()) {
      if (in_b_[id.value].valid()) continue;
      left_a.push_back(id);
      tokens_a.push_back(hash_a_.Shallow(id));
    }
    for (const NodeId id : hash_b_.order()) {
      if (in_a_[id.value].valid()) continue;
      left_b.push_back(id);
      tokens_b.push_back(hash_b_.Shallow(id));
    }
    for (const SequencePair pair : MatchSequences(tokens_a, tokens_b))
      Pair(left_a[pair.a], left_b[pair.b]);
  }

  static std::string Named(const Graph& graph, NodeId id) {
    return std::string(graph[id].name);
  }

  // Some dialects print strings without quotes; within one a text with quotes
  // is another than one without.
  std::string_view Plain(std::string_view text) const {
    return a_.dialect != b_.dialect && text.size() >= 2 &&
                   (text.front() == '\'' || text.front() == '"') &&
                   text.back() == text.front()
               ? text.substr(1, text.size() - 2)
               : text;
  }

  void Operands(NodeId a, NodeId b) {
    const std::span<const Operand> x = a_.Operands(a);
    const std::span<const Operand> y = b_.Operands(b);
    if (x.size() != y.size()) {
      out_.push_back({Change::kRewired, a, b,
                      std::to_string(y.size()) + " operands instead of " +
                          std::to_string(x.size())});
      return;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].IsValue() != y[i].IsValue()) {
        out_.push_back({Change::kRewired, a, b,
                        std::string(y[i].text()) + " instead of " +
                            std::string(x[i].text())});
        return;
      }
      if (x[i].IsValue()) {
        if (Same(x[i].value(), y[i].value())) continue;
        out_.push_back({Change::kRewired, a, b,
                        "operand " + Named(b_, y[i].value()) + " instead of " +
                            Named(a_, x[i].value())});
        return;
      }
      if (x[i].extent() == 0 && y[i].extent() == 0 &&
          Plain(x[i].text()) != Plain(y[i].text())) {
        out_.push_back({Change::kLiteral, a, b,
                        std::string(y[i].text()) + " instead of " +
                            std::string(x[i].text())});
        return;
      }
    }
  }

  bool Same(NodeId a, NodeId b) const {
    const bool weight = a_[a].kind == NodeKind::kWeight;
    if (weight != (b_[b].kind == NodeKind::kWeight)) return false;
    return weight ? a_[a].name == b_[b].name : in_b_[a.value] == b;
  }

  static bool Unknown(std::string_view text) {
    return text.empty() || text == "?" || text == "N/A" || text == "unknown";
  }

  void Result(NodeId a, NodeId b) {
    const std::string_view before = a_[a].result;
    const std::string_view after = b_[b].result;
    if (before == after || a_[a].kind == NodeKind::kOutput) return;
    const ResultText x = SplitResult(before);
    const ResultText y = SplitResult(after);
    const auto say = [&](Change change) {
      out_.push_back(
          {change, a, b,
           std::string(after) + " instead of " + std::string(before)});
    };
    if (x.tuple != y.tuple) {
      const bool lost = Unknown(y.shape);
      return say(lost               ? Change::kMetadataLost
                 : Unknown(x.shape) ? Change::kMetadataGained
                                    : Change::kShape);
    }
    std::vector<std::string_view> shapes_a = {x.shape};
    std::vector<std::string_view> shapes_b = {y.shape};
    std::vector<std::string_view> types_a = {x.dtype};
    std::vector<std::string_view> types_b = {y.dtype};
    if (x.tuple) {
      shapes_a = SplitTuple(x.shape);
      shapes_b = SplitTuple(y.shape);
      types_a = SplitTuple(x.dtype);
      types_b = SplitTuple(y.dtype);
    }
    if (shapes_a.size() != shapes_b.size() ||
        types_a.size() != types_b.size() || shapes_a.size() != types_a.size())
      return say(Change::kShape);
    for (size_t i = 0; i < shapes_a.size(); ++i) {
      for (const auto& [p, q, shape] :
           {std::tuple{shapes_a[i], shapes_b[i], true},
            std::tuple{types_a[i], types_b[i], false}}) {
        if (p == q || (Unknown(p) && Unknown(q))) continue;
        if (Unknown(q)) return say(Change::kMetadataLost);
        if (Unknown(p)) return say(Change::kMetadataGained);
        if (!shape || !symbols_.Same(p, q)) return say(Change::kShape);
      }
    }
  }

  const Graph& a_;
  const Graph& b_;
  Hashes hash_a_;
  Hashes hash_b_;
  std::vector<NodeId> in_a_;  // partner, by node of b
  std::vector<NodeId> in_b_;
  Symbols symbols_;
  std::vector<Difference> out_;
};

struct CountRow {
  std::string_view change, op;
  size_t count;
};

struct ChangeRow {
  std::string_view change, op, node, detail;
  std::optional<uint32_t> line_a, line_b;
};

}  // namespace

std::string_view ChangeName(Change change) {
  static constexpr std::string_view kNames[] = {
      "added", "removed",       "rewired",        "literal",
      "shape", "metadata_lost", "metadata_gained"};
  return kNames[static_cast<size_t>(change)];
}

std::vector<Difference> Compare(const Graph& a, const Graph& b) {
  return Comparer(a, b).Run();
}

ResultSet DiffTables(const Graph& a, const Graph& b,
                     const std::vector<Difference>& differences) {
  const RowColumns<CountRow> count_columns{
      "graph_change_counts",
      "Changes by op.",
      {{"change", ColumnType::kText, "Kind of change.", &CountRow::change},
       {"op", ColumnType::kText, "Normalised target.", &CountRow::op},
       {"count", ColumnType::kInt, "Nodes.", &CountRow::count}}};
  Table counts(count_columns.schema());
  const RowColumns<ChangeRow> change_columns{
      "graph_changes",
      "Every change, in order of the second graph.",
      {{"change", ColumnType::kText, "Kind of change.", &ChangeRow::change},
       {"op", ColumnType::kText, "Normalised target.", &ChangeRow::op},
       {"node", ColumnType::kText,
        "Name in the second graph; in the first when removed.",
        &ChangeRow::node},
       {"detail", ColumnType::kText, "What is new and what was.",
        &ChangeRow::detail},
       {"line_a", ColumnType::kInt, "Line in the first file.",
        &ChangeRow::line_a},
       {"line_b", ColumnType::kInt, "Line in the second file.",
        &ChangeRow::line_b}}};
  Table changes(change_columns.schema());
  std::map<std::pair<Change, std::string_view>, size_t> count;
  for (const Difference& one : differences) {
    const bool removed = one.change == Change::kRemoved;
    const NodeId id = removed ? one.a : one.b;
    const Graph& graph = removed ? a : b;
    const std::string_view op =
        graph[id].kind == NodeKind::kPlaceholder ? "(placeholder)"
        : graph[id].kind == NodeKind::kOutput    ? "(output)"
                                                 : graph.op(id);
    ++count[{one.change, op}];
    change_columns.Add(
        changes,
        {.change = ChangeName(one.change),
         .op = op,
         .node = graph[id].name,
         .detail = one.detail,
         .line_a = one.a.valid() ? std::optional(a[one.a].line) : std::nullopt,
         .line_b =
             one.b.valid() ? std::optional(b[one.b].line) : std::nullopt});
  }
  for (const auto& [key, number] : count)
    count_columns.Add(
        counts,
        {.change = ChangeName(key.first), .op = key.second, .count = number});
  ResultSet out;
  out.notes.push_back(MakeNote(
      Severity::kVerdict, "graph_diff",
      differences.empty() ? "The graphs compute the same."
                          : Counted(differences.size(), "change") + "."));
  out.tables.push_back(std::move(counts));
  out.tables.push_back(std::move(changes));
  return out;
}

}  // namespace lamina::graph
