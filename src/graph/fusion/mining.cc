// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/mining.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>
#include <span>

#include "base/stop.h"
#include "base/text.h"
#include "graph/fusion/canonical.h"
#include "graph/fusion/cones.h"
#include "graph/fusion/form_kind.h"

namespace lamina::fusion {
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
