// SPDX-License-Identifier: Apache-2.0

#include "graph/fusion/mining.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>
#include <span>

#include "base/stop.h"
#include "base/text.h"
#include "graph/fusion/form_kind.h"
#include "graph/fusion/op_table.h"
#include "graph/types.h"

namespace lamina::fusion {

namespace {

using graph::Graph;
using graph::NodeId;

// Lists of a hundred experts need not be read to the end.
constexpr size_t kShownItems = 8;

class Writer {
 public:
  Writer(const Graph& graph, bool readable)
      : graph_(graph), readable_(readable) {}

  std::string Run(const std::vector<NodeId>& nodes) {
    for (const NodeId id : nodes)
      names_.try_emplace(id, "%n" + std::to_string(names_.size()));
    for (const NodeId id : nodes) AddNode(id);
    return std::move(out_);
  }

 private:
  void AddNode(NodeId id) {
    if (!out_.empty()) out_ += '\n';
    out_ += names_[id] + " = ";
    out_ += graph_.op(id);
    out_ += '(';
    bool first = true;
    for (const graph::OperandId operand : graph_.TopOperands(id)) {
      if (!first) out_ += ", ";
      first = false;
      AddOperand(operand);
    }
    out_ += ')';
    if (!readable_) AddResult(id);
  }

  void AddOperand(graph::OperandId id) {
    const graph::Operand& operand = graph_.operand(id);
    if (operand.IsValue()) {
      out_ += NameOf(operand.value());
      return;
    }
    if (operand.extent() == 0) {
      out_ += operand.text();
      return;
    }
    out_ += '[';
    size_t items = 0;
    const uint32_t end = id.value + operand.extent();
    for (uint32_t i = id.value + 1; i <= end;
         i += 1 + graph_.operand(graph::OperandId(i)).extent()) {
      if (items > 0) out_ += ", ";
      if (readable_ && items == kShownItems) {
        out_ += "...";
        break;
      }
      ++items;
      AddOperand(graph::OperandId(i));
    }
    out_ += ']';
  }

  // Values from outside by first use; weights and sizes apart.
  const std::string& NameOf(NodeId id) {
    const auto [found, fresh] = names_.try_emplace(id);
    if (fresh) {
      const graph::Node& node = graph_[id];
      const bool weight = node.kind == graph::NodeKind::kWeight;
      found->second = (weight ? "!w" : "%x") +
                      std::to_string(weight ? weights_++ : values_++);
    }
    return found->second;
  }

  // Ranks and dtypes, not sizes: heads of Q and of K are alike.
  void AddResult(NodeId id) {
    const graph::ResultText result = graph::SplitResult(graph_[id].result);
    out_ += " : ";
    const auto dims = graph::SplitShape(result.shape);
    out_ += dims ? std::to_string(dims->size()) : "?";
    out_ += ' ';
    out_ += result.dtype;
  }

  const Graph& graph_;
  const bool readable_;
  std::string out_;
  absl::flat_hash_map<NodeId, std::string> names_;
  size_t values_ = 0;
  size_t weights_ = 0;
};

}  // namespace

std::string CanonicalForm(const Graph& graph,
                          const std::vector<NodeId>& nodes) {
  return Writer(graph, false).Run(nodes);
}

std::string FormText(const Graph& graph, const std::vector<NodeId>& nodes) {
  return Writer(graph, true).Run(nodes);
}

namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

constexpr uint32_t kNoCone = 0xffffffff;
// Values that nearly every node reads (cos and sin) join nothing by
// themselves.
constexpr size_t kMaxSiblings = 8;

class ConeFinder {
 public:
  ConeFinder(const Graph& graph, const ClassedOps& ops)
      : graph_(graph), ops_(ops), cone_of_(graph.size(), kNoCone) {}

  Cones Run() {
    Part();
    Link();
    return std::move(out_);
  }

 private:
  // From the last node to the first: a node whose users all lie in one cone
  // belongs to it; another light node is a root.
  void Part() {
    for (auto it = ops_.order().rbegin(); it != ops_.order().rend(); ++it) {
      const NodeId id = *it;
      if (!ops_.IsLight(id) && !ops_.IsView(id)) continue;
      uint32_t cone = kNoCone;
      bool one = graph_.UseCount(id) > 0;
      graph_.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
        const uint32_t user = cone_of_[use.owner().value];
        one &= user != kNoCone && (cone == kNoCone || cone == user);
        cone = user;
      });
      if (!one) {
        if (!ops_.IsLight(id)) continue;
        cone = static_cast<uint32_t>(out_.list.size());
        out_.list.emplace_back();
        out_.list.back().root = id;
      }
      cone_of_[id.value] = cone;
      out_.list[cone].nodes.push_back(id);
      out_.list[cone].light += ops_.IsLight(id);
    }
    for (Cone& cone : out_.list)
      std::reverse(cone.nodes.begin(), cone.nodes.end());
  }

  // Cones that feed each other, or read one value that few read.
  void Link() {
    out_.links.resize(out_.list.size());
    const auto link = [&](uint32_t a, uint32_t b) {
      if (a == b) return;
      out_.links[a].insert(b);
      out_.links[b].insert(a);
    };
    std::vector<NodeId> inputs;
    for (const NodeId id : ops_.order()) {
      const uint32_t to = cone_of_[id.value];
      if (to == kNoCone) continue;
      graph_.Inputs(id, inputs);
      for (NodeId input : inputs) {
        // Through views that belong to no cone.
        for (int hops = 0;
             hops < 8 && graph_[input].kind == NodeKind::kOp &&
             ops_.IsView(input) && cone_of_[input.value] == kNoCone;
             ++hops) {
          std::set<uint32_t> siblings;
          for (const NodeId user : graph_.Users(input)) {
            if (cone_of_[user.value] != kNoCone)
              siblings.insert(cone_of_[user.value]);
          }
          if (siblings.size() <= kMaxSiblings) {
            for (const uint32_t sibling : siblings) link(to, sibling);
          }
          const std::vector<NodeId> above = graph_.Inputs(input);
          if (above.empty()) break;
          input = above[0];
        }
        if (cone_of_[input.value] != kNoCone) link(to, cone_of_[input.value]);
      }
    }
  }

  const Graph& graph_;
  const ClassedOps& ops_;
  std::vector<uint32_t> cone_of_;
  Cones out_;
};

}  // namespace

ClassedOps::ClassedOps(const Graph& graph, const OpTable& ops)
    : class_(graph.size(), OpClass::kOther) {
  // Few distinct ops: each is looked up once.
  absl::flat_hash_map<uint32_t, OpClass> known;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind != NodeKind::kOp) continue;
    order_.push_back(id);
    const auto [found, fresh] = known.try_emplace(graph[id].op.value);
    if (fresh) found->second = ops.ClassOf(graph.op(id));
    class_[id.value] = found->second;
  }
}

Cones FindCones(const Graph& graph, const ClassedOps& ops) {
  return ConeFinder(graph, ops).Run();
}

namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

class Miner {
 public:
  Miner(const Graph& graph, const OpTable& ops, const MiningOptions& options)
      : graph_(graph),
        options_(options),
        positions_(graph.Positions()),
        ops_(graph, ops),
        cones_(FindCones(graph, ops_)) {}

  Mined Run() {
    AddCones();
    AddUnions();
    AddParts();
    AddSiblings();
    return Finish();
  }

 private:
  void Add(std::vector<NodeId>&& nodes, size_t light) {
    std::string key = CanonicalForm(graph_, nodes);
    auto found = forms_.find(key);
    if (found == forms_.end()) {
      if (forms_.size() >= options_.max_forms) {
        bounded_ = true;
        return;
      }
      found = forms_.emplace(std::move(key), Form()).first;
      found->second.light_nodes = light;
    }
    found->second.occurrences.push_back(std::move(nodes));
  }

  void AddCones() {
    for (const Cone& cone : cones_.list) {
      if (cone.light <= options_.max_nodes)
        Add(std::vector<NodeId>(cone.nodes), cone.light);
    }
  }

  // Connected unions, each from its lowest cone.
  void AddUnions() {
    std::vector<uint32_t> members;
    for (uint32_t first = 0; first < cones_.list.size() && !bounded_; ++first) {
      if (cones_.list[first].light > options_.max_nodes) continue;
      members = {first};
      std::vector<uint32_t> next;
      for (const uint32_t other : cones_.links[first]) {
        if (other > first) next.push_back(other);
      }
      Grow(first, members, next, cones_.list[first].light);
    }
  }

  // Adds each of `next` in turn; those in front of it are left out then, so
  // that every union is met once.
  void Grow(uint32_t first, std::vector<uint32_t>& members,
            std::vector<uint32_t> next, size_t light) {
    if (members.size() >= options_.max_cones) return;
    while (!next.empty() && !bounded_) {
      LookForStop();
      const uint32_t cone = next.back();
      next.pop_back();
      if (light + cones_.list[cone].light > options_.max_nodes) continue;
      if (++unions_ > options_.max_sets) {
        bounded_ = true;
        return;
      }
      members.push_back(cone);
      std::vector<NodeId> nodes = Union(members);
      if (IsConvex(nodes))
        Add(std::move(nodes), light + cones_.list[cone].light);
      std::vector<uint32_t> further = next;
      for (const uint32_t other : cones_.links[cone]) {
        if (other <= first || Near(members, other, cone)) continue;
        if (std::find(further.begin(), further.end(), other) == further.end())
          further.push_back(other);
      }
      Grow(first, members, std::move(further), light + cones_.list[cone].light);
      members.pop_back();
    }
  }

  // Whether a cone is a member or next to a member other than `except`.
  bool Near(const std::vector<uint32_t>& members, uint32_t cone,
            uint32_t except) const {
    for (const uint32_t member : members) {
      if (member == cone) return true;
      if (member != except && cones_.links[member].contains(cone)) return true;
    }
    return false;
  }

  std::vector<NodeId> Union(const std::vector<uint32_t>& members) const {
    std::vector<NodeId> nodes;
    for (const uint32_t cone : members) {
      nodes.insert(nodes.end(), cones_.list[cone].nodes.begin(),
                   cones_.list[cone].nodes.end());
    }
    absl::flat_hash_set<NodeId> inside(nodes.begin(), nodes.end());
    // Views between: all their users lie inside.
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const NodeId input : graph_.Inputs(nodes[i])) {
        if (graph_[input].kind != NodeKind::kOp || !ops_.IsView(input) ||
            inside.contains(input))
          continue;
        bool all = true;
        graph_.ForEachUse(input,
                          [&](graph::OperandId, const graph::Operand& use) {
                            all &= inside.contains(use.owner());
                          });
        if (!all) continue;
        inside.insert(input);
        nodes.push_back(input);
      }
    }
    Sort(nodes);
    return nodes;
  }

  void Sort(std::vector<NodeId>& nodes) const {
    std::sort(nodes.begin(), nodes.end(), [this](NodeId a, NodeId b) {
      return positions_[a.value] < positions_[b.value];
    });
  }

  // No path leaves the set and comes back.
  bool IsConvex(const std::vector<NodeId>& nodes) const {
    const uint32_t last = positions_[nodes.back().value];
    const absl::flat_hash_set<NodeId> inside(nodes.begin(), nodes.end());
    absl::flat_hash_set<NodeId> seen;
    std::vector<NodeId> open;
    const auto visit = [&](NodeId from, bool member) {
      bool back = false;
      graph_.ForEachUse(from, [&](graph::OperandId, const graph::Operand& use) {
        const NodeId user = use.owner();
        if (inside.contains(user)) {
          back |= !member;
        } else if (positions_[user.value] < last && seen.insert(user).second) {
          open.push_back(user);
        }
      });
      return back;
    };
    for (const NodeId id : nodes) visit(id, true);
    // A walk that gets long says no: such a form is no candidate anyway.
    constexpr size_t kFar = 512;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (seen.size() > kFar || visit(id, false)) return false;
    }
    return true;
  }

  // Parts of cones that occur more often than the whole: what only one node of
  // the cone needs, with or without the nodes in front.
  void AddParts() {
    std::map<std::string, std::vector<const Cone*>> same;
    for (const Cone& cone : cones_.list) {
      if (cone.light >= 3 && cone.light <= options_.max_nodes)
        same[CanonicalForm(graph_, cone.nodes)].push_back(&cone);
    }
    if (same.size() < 2) return;
    for (const auto& [key, cones] : same) {
      const Cone& sample = *cones.front();
      for (size_t end = 1; end < sample.nodes.size(); ++end) {
        const std::vector<size_t> part = ConeWithin(sample, end);
        // Without the first nodes what is left still meets at the end.
        const bool whole = part.size() == sample.nodes.size();
        for (size_t skip = whole ? 1 : 0; skip + 2 <= part.size(); ++skip)
          AddPart(cones, std::span(part).subspan(skip));
      }
    }
  }

  // The same positions of every cone of a form.
  void AddPart(const std::vector<const Cone*>& cones,
               std::span<const size_t> part) {
    for (const Cone* const cone : cones) {
      std::vector<NodeId> nodes;
      size_t light = 0;
      for (const size_t at : part) {
        nodes.push_back(cone->nodes[at]);
        light += ops_.IsLight(cone->nodes[at]);
      }
      if (light < 2) return;
      Add(std::move(nodes), light);
    }
  }

  // Positions of the nodes of a cone that only node `end` of it needs.
  std::vector<size_t> ConeWithin(const Cone& cone, size_t end) const {
    absl::flat_hash_set<NodeId> inside = {cone.nodes[end]};
    std::vector<size_t> part = {end};
    for (size_t i = end; i-- > 0;) {
      bool all = true;
      graph_.ForEachUse(cone.nodes[i],
                        [&](graph::OperandId, const graph::Operand& use) {
                          all &= inside.contains(use.owner());
                        });
      if (!all) continue;
      inside.insert(cone.nodes[i]);
      part.push_back(i);
    }
    std::reverse(part.begin(), part.end());
    return part;
  }

  // Linears that read one value.
  void AddSiblings() {
    absl::flat_hash_map<NodeId, std::vector<NodeId>> by_input;
    std::vector<NodeId> inputs;
    for (const NodeId id : ops_.order()) {
      if (ops_.of(id) != OpClass::kHeavy || !Contains(graph_.op(id), "linear"))
        continue;
      graph_.Inputs(id, inputs);
      if (!inputs.empty()) inputs.resize(1);
      for (const NodeId input : inputs) by_input[input].push_back(id);
    }
    std::vector<std::vector<NodeId>> groups;
    for (auto& [input, nodes] : by_input) {
      if (nodes.size() >= 2) groups.push_back(std::move(nodes));
    }
    std::sort(groups.begin(), groups.end());
    std::map<std::string, Form> forms;
    for (std::vector<NodeId>& nodes : groups) {
      Form& form = forms[CanonicalForm(graph_, nodes)];
      form.kind = FormKind::kSiblings;
      form.occurrences.push_back(std::move(nodes));
    }
    for (auto& [key, form] : forms) {
      if (form.occurrences.size() >= options_.min_occurrences)
        siblings_.push_back(std::move(form));
    }
  }

  Mined Finish() {
    // Occurrences of a form may overlap: the first of them counts.
    std::vector<Form> kept;
    for (auto& [key, form] : forms_) {
      if (form.light_nodes < 2) continue;
      absl::flat_hash_set<NodeId> taken;
      std::sort(form.occurrences.begin(), form.occurrences.end(),
                [this](const auto& a, const auto& b) {
                  return positions_[a[0].value] < positions_[b[0].value];
                });
      std::erase_if(form.occurrences, [&](const std::vector<NodeId>& nodes) {
        for (const NodeId id : nodes) {
          if (taken.contains(id)) return true;
        }
        taken.insert(nodes.begin(), nodes.end());
        return false;
      });
      if (form.occurrences.size() < options_.min_occurrences) continue;
      kept.push_back(std::move(form));
    }
    // Larger first, so that a form can be held against those that hold it.
    std::stable_sort(kept.begin(), kept.end(),
                     [](const Form& a, const Form& b) {
                       return a.light_nodes > b.light_nodes;
                     });
    Mined out;
    out.bounded = bounded_;
    absl::flat_hash_map<NodeId, std::vector<uint32_t>> holders;
    for (Form& form : kept) {
      if (IsCovered(form, out.forms, holders)) continue;
      form.kind = KindOfForm(graph_, ops_, form.occurrences[0]);
      const auto index = static_cast<uint32_t>(out.forms.size());
      for (const auto& nodes : form.occurrences) {
        for (const NodeId id : nodes) holders[id].push_back(index);
      }
      out.forms.push_back(std::move(form));
    }
    for (Form& form : siblings_) out.forms.push_back(std::move(form));
    return out;
  }

  // Whether a larger form has as many occurrences and holds this one in each.
  bool IsCovered(
      const Form& form, const std::vector<Form>& larger,
      const absl::flat_hash_map<NodeId, std::vector<uint32_t>>& holders) const {
    const auto found = holders.find(form.occurrences[0][0]);
    if (found == holders.end()) return false;
    for (const uint32_t index : found->second) {
      if (larger[index].occurrences.size() < form.occurrences.size()) continue;
      const auto holds = [&](NodeId id) {
        const auto at = holders.find(id);
        return at != holders.end() &&
               std::find(at->second.begin(), at->second.end(), index) !=
                   at->second.end();
      };
      const bool all =
          std::all_of(form.occurrences.begin(), form.occurrences.end(),
                      [&](const std::vector<NodeId>& nodes) {
                        return std::all_of(nodes.begin(), nodes.end(), holds);
                      });
      if (all) return true;
    }
    return false;
  }

  const Graph& graph_;
  const MiningOptions& options_;
  std::vector<uint32_t> positions_;
  ClassedOps ops_;
  Cones cones_;
  std::map<std::string, Form> forms_;
  std::vector<Form> siblings_;
  size_t unions_ = 0;
  bool bounded_ = false;
};

}  // namespace

Mined MineForms(const Graph& graph, const OpTable& ops,
                const MiningOptions& options) {
  return Miner(graph, ops, options).Run();
}

}  // namespace lamina::fusion
