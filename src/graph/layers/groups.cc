// SPDX-License-Identifier: Apache-2.0

#include "graph/layers/groups.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <iterator>

#include "base/decimal.h"
#include "base/text.h"
#include "graph/layers/names.h"

namespace lamina::graph {

namespace {

bool IsSeparator(char c) { return c == '_' || c == '.'; }

}  // namespace

std::optional<LayerName> ParseLayerName(std::string_view name) {
  size_t begin = 0;
  while (begin < name.size()) {
    const size_t end = name.find_first_of("_.", begin);
    if (end == std::string_view::npos) break;
    const std::string_view word = name.substr(begin, end - begin);
    size_t digits = end + 1;
    while (digits < name.size() && IsDigit(name[digits])) ++digits;
    const bool layer = word == "layers" || word == "layer" ||
                       word == "blocks" || word == "block" || word == "h";
    if (layer && digits > end + 1 && digits < name.size() && digits - end < 9 &&
        IsSeparator(name[digits])) {
      LayerName out;
      out.stack = begin == 0 ? std::string_view() : name.substr(0, begin - 1);
      out.index = static_cast<uint32_t>(
          ParseInt(name.substr(end + 1, digits - end - 1)).value_or(0));
      out.rest = name.substr(digits + 1);
      return out;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

namespace {

constexpr std::string_view kNorm = "norm";
constexpr std::string_view kAttention = "attention";

// A table that looks at each text once: names of layers differ in the number
// only.
class Memo {
 public:
  explicit Memo(const rules::PatternTable& table) : table_(table) {}
  int Find(std::string_view text) {
    const auto [found, fresh] = known_.try_emplace(text);
    if (fresh) found->second = table_.Find(text);
    return found->second;
  }

 private:
  const rules::PatternTable& table_;
  absl::flat_hash_map<std::string_view, int, TextHash, std::equal_to<>> known_;
};

struct Tables {
  explicit Tables(const GroupRules& rules_in)
      : rules(rules_in),
        ops(rules.op_groups),
        weights(rules.weight_groups),
        norms(rules.norm_ops),
        residual_norms(rules.residual_norms),
        mla(rules.mla_ops) {}
  const GroupRules& rules;
  Memo ops;
  Memo weights;
  Memo norms;
  Memo residual_norms;
  Memo mla;
};

bool Meets(Memo& memo, std::string_view text) {
  return memo.Find(text) != rules::PatternTable::kNone;
}

class Grouper {
 public:
  Grouper(const Graph& graph, const Layer& layer, Tables& tables)
      : graph_(graph),
        nodes_(layer.nodes),
        tables_(tables),
        rules_(tables.rules) {}

  std::vector<Group> Run() {
    groups_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      at_[nodes_[i]] = static_cast<uint32_t>(i);
    for (size_t i = 0; i < nodes_.size(); ++i) groups_[i] = ByName(nodes_[i]);
    OneMixer();
    InsideOfNorms();
    Neighbours();
    ResidualsHaveNoPart();
    NameAttention();
    return std::move(groups_);
  }

 private:
  // A layer has one mixer. Convolution, gated norm and some names of weights
  // are alike in gated delta nets and in Mamba: they go with the op that only
  // one of them has (its sub-group is named after the group), else with what
  // most weights say.
  void OneMixer() {
    constexpr std::string_view kMixers[] = {"gdn", "mamba"};
    constexpr std::string_view kShared[] = {"gdn_conv1d", "mamba_gated_norm"};
    constexpr size_t kOwnOp = 1000000;
    size_t votes[std::size(kMixers)] = {};
    for (const Group& group : groups_) {
      for (size_t m = 0; m < std::size(kMixers); ++m) {
        if (group.name != kMixers[m]) continue;
        const bool shared = std::find(std::begin(kShared), std::end(kShared),
                                      group.sub) != std::end(kShared);
        votes[m] += group.sub.empty() ? 1 : shared ? 0 : kOwnOp;
      }
    }
    if (votes[0] == votes[1]) return;
    const size_t own = votes[0] > votes[1] ? 0 : 1;
    for (Group& group : groups_) {
      if (group.name != kMixers[1 - own]) continue;
      group.name = kMixers[own];
      if (group.sub.starts_with(kMixers[1 - own])) group.sub = {};
    }
  }

  bool IsElement(NodeId id) const { return graph_.op(id) == "builtin.getitem"; }
  Group* Of(NodeId id) {
    const auto found = at_.find(id);
    return found == at_.end() ? nullptr : &groups_[found->second];
  }

  // The weights of a node by the name behind the layer number. The earliest
  // rule wins over all of them.
  int WeightRule(NodeId id) {
    int best = rules::PatternTable::kNone;
    for (const Operand& operand : graph_.Operands(id)) {
      if (!operand.IsValue()) continue;
      const Node& weight = graph_[operand.value()];
      if (weight.kind != NodeKind::kWeight) continue;
      const auto layer = ParseLayerName(weight.name);
      const int rule = tables_.weights.Find(layer ? layer->rest : weight.name);
      if (rule != rules::PatternTable::kNone &&
          (best == rules::PatternTable::kNone || rule < best))
        best = rule;
    }
    return best;
  }

  static Group Of(const rules::PatternRule& rule) {
    return {rule.value, rule.part};
  }

  Group ByName(NodeId id) {
    const std::string_view op = graph_.op(id);
    const int weight = WeightRule(id);
    const bool known = weight != rules::PatternTable::kNone;
    if (known && rules_.weight_groups.rule(weight).value == kNorm &&
        Meets(tables_.norms, op))
      return {kNorm, {}};
    const int found = tables_.ops.Find(op);
    if (found != rules::PatternTable::kNone)
      return Of(rules_.op_groups.rule(found));
    return known ? Of(rules_.weight_groups.rule(weight)) : Group();
  }

  bool IsResidual(NodeId id) {
    if (!IsAddition(graph_.op(id))) return false;
    graph_.Inputs(id, inputs_);
    return std::count_if(inputs_.begin(), inputs_.end(), [&](NodeId input) {
             return graph_[input].kind == NodeKind::kOp;
           }) >= 2;
  }

  bool HasWeight(NodeId id) const {
    const std::span<const Operand> operands = graph_.Operands(id);
    return std::any_of(
        operands.begin(), operands.end(), [&](const Operand& operand) {
          return operand.IsValue() &&
                 graph_[operand.value()].kind == NodeKind::kWeight;
        });
  }

  // What only norms of this layer use. A norm fused with an addition takes a
  // residual, which is no part of it.
  void InsideOfNorms() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const NodeId id = nodes_[i];
      if (!groups_[i].name.empty() || HasWeight(id) || IsElement(id) ||
          IsResidual(id))
        continue;
      bool inside = graph_.UseCount(id) > 0;
      graph_.ForEachUse(id, [&](OperandId, const Operand& operand) {
        if (!inside) return;
        const Group* user = Of(operand.owner());
        inside = user != nullptr && user->name == kNorm &&
                 !Meets(tables_.residual_norms, graph_.op(operand.owner()));
      });
      if (inside) groups_[i] = {kNorm, {}};
    }
  }

  // The grouped operand that is defined last, norms only if `norms`.
  const Group* LastOperand(NodeId id, bool norms) {
    const Group* last = nullptr;
    uint32_t last_at = 0;
    graph_.Inputs(id, inputs_);
    for (const NodeId input : inputs_) {
      const auto found = at_.find(input);
      if (found == at_.end()) continue;
      const Group& group = groups_[found->second];
      if (group.name.empty() || (group.name == kNorm) != norms ||
          (last != nullptr && found->second < last_at))
        continue;
      last = &group;
      last_at = found->second;
    }
    return last;
  }

  // The group of the value that a getitem takes apart.
  const Group* OfElement(NodeId id) {
    if (!IsElement(id)) return nullptr;
    graph_.Inputs(id, inputs_);
    const Group* group = inputs_.empty() ? nullptr : Of(inputs_[0]);
    return group == nullptr || group->name.empty() ? nullptr : group;
  }

  // The sum of what routed and shared experts give is neither: it, and what
  // only follows it, belongs to the whole.
  bool JoinsParts(NodeId id) {
    if (!IsAddition(graph_.op(id))) return false;
    graph_.Inputs(id, inputs_);
    std::string_view part;
    for (const NodeId input : inputs_) {
      const Group* const group = Of(input);
      if (group == nullptr || group->sub.empty()) continue;
      if (!part.empty() && group->sub != part) return true;
      part = group->sub;
    }
    return false;
  }

  void Neighbours() {
    const auto take = [&](size_t i, const Group* group) {
      if (group != nullptr) groups_[i] = *group;
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!groups_[i].name.empty()) continue;
      take(i, OfElement(nodes_[i]));
      if (groups_[i].name.empty()) take(i, LastOperand(nodes_[i], false));
      if (JoinsParts(nodes_[i])) groups_[i].sub = {};
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      if (!groups_[i].name.empty()) continue;
      const Group* first = nullptr;
      graph_.ForEachUse(nodes_[i], [&](OperandId, const Operand& operand) {
        if (first != nullptr) return;
        const Group* user = Of(operand.owner());
        if (user != nullptr && !user->name.empty()) first = user;
      });
      take(i, first);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (groups_[i].name.empty()) take(i, LastOperand(nodes_[i], true));
      if (groups_[i].name.empty()) groups_[i] = {"other", {}};
    }
  }

  // The addition to the stream of the layers stands behind the experts and is
  // none of them, nor a branch of attention. The stream comes from another
  // layer, or from an addition like this, in the shape of the result.
  void ResidualsHaveNoPart() {
    std::vector<bool> stream(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!IsAddition(graph_.op(nodes_[i]))) continue;
      const std::string_view result = graph_[nodes_[i]].result;
      graph_.Inputs(nodes_[i], inputs_);
      if (inputs_.size() < 2) continue;
      stream[i] =
          std::any_of(inputs_.begin(), inputs_.end(), [&](NodeId input) {
            if (graph_[input].kind == NodeKind::kWeight ||
                graph_[input].result != result)
              return false;
            const auto found = at_.find(input);
            return found == at_.end() || stream[found->second];
          });
      if (stream[i]) groups_[i].sub = {};
    }
  }

  void NameAttention() {
    const bool mla = std::any_of(nodes_.begin(), nodes_.end(), [&](NodeId id) {
      return Meets(tables_.mla, graph_.op(id));
    });
    if (!mla) return;
    for (Group& group : groups_) {
      if (group.name == kAttention) group.name = "mla";
    }
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  Tables& tables_;
  const GroupRules& rules_;
  absl::flat_hash_map<NodeId, uint32_t> at_;
  std::vector<Group> groups_;
  std::vector<NodeId> inputs_;
};

}  // namespace

std::vector<Group> GroupNodes(const Graph& graph, const Layers& layers,
                              const GroupRules& rules) {
  std::vector<Group> out(graph.size());
  Tables tables(rules);
  for (const Layer& layer : layers.layers) {
    const std::vector<Group> groups = Grouper(graph, layer, tables).Run();
    for (size_t i = 0; i < groups.size(); ++i)
      out[layer.nodes[i].value] = groups[i];
  }
  return out;
}

}  // namespace lamina::graph
