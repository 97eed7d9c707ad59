// SPDX-License-Identifier: Apache-2.0

#include "graph/layers/layers.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/cpp_name.h"
#include "base/escape.h"
#include "graph/layers/names.h"
#include "graph/layers/repeats.h"
#include "graph/layers/rules.h"
#include "graph/types.h"

namespace lamina::graph {

namespace {

// Shorter units are runs of one op and its neighbour, not layers.
constexpr size_t kMinUnit = 5;
// So many ops in a row make the begin of a unit known.
constexpr size_t kSignature = 24;

struct Covered {
  size_t ops = 0;
  size_t longest_begin = 0;
  size_t longest = 0;
};

// What stretches of at least two whole units of length `unit` cover; others
// hold an odd layer.
Covered Cover(std::span<const uint32_t> ops, size_t unit) {
  Covered out;
  size_t run = 0;
  size_t covered_to = 0;
  const size_t last = ops.size() - unit;
  for (size_t i = 0; i <= last; ++i) {
    if (i < last && ops[i] == ops[i + unit]) {
      ++run;
      continue;
    }
    if (run >= unit) {
      const size_t begin = std::max(i - run, covered_to);
      const size_t end = i + unit;
      out.ops += end - begin;
      covered_to = end;
      if (run > out.longest) {
        out.longest = run;
        out.longest_begin = i - run;
      }
    }
    run = 0;
  }
  return out;
}

// Ops that both stretches have, each as often as the rarer.
size_t Common(std::span<const uint32_t> ops, Repeat a, Repeat b) {
  std::vector<uint32_t> first(ops.begin() + a.begin, ops.begin() + a.end);
  std::vector<uint32_t> second(ops.begin() + b.begin, ops.begin() + b.end);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  std::vector<uint32_t> both;
  std::set_intersection(first.begin(), first.end(), second.begin(),
                        second.end(), std::back_inserter(both));
  return both.size();
}

}  // namespace

std::vector<Repeat> FindRepeats(std::span<const uint32_t> ops) {
  const size_t n = ops.size();
  if (n < 3 * kMinUnit || n > kMaxRepeatOps) return {};
  for (size_t unit = kMinUnit; unit <= n / 3; ++unit) {
    const Covered covered = Cover(ops, unit);
    if (covered.ops < 2 * unit) continue;
    // The first place where the unit runs, whatever it begins with there: so a
    // layer begins behind what stands in front of all layers.
    const auto two = ops.subspan(covered.longest_begin, 2 * unit);
    const size_t width = std::clamp(unit / 3, kMinUnit - 1, kSignature);
    size_t first = 0;
    while (first + width <= n &&
           std::search(two.begin(), two.end(), ops.begin() + first,
                       ops.begin() + first + width) == two.end())
      ++first;
    if (first + width > n) continue;
    const auto signature = ops.subspan(first, width);
    std::vector<Repeat> out;
    for (size_t at = first; at + width <= n;) {
      if (!std::equal(signature.begin(), signature.end(), ops.begin() + at)) {
        ++at;
        continue;
      }
      if (!out.empty()) out.back().end = at;
      out.push_back({at, std::min(at + unit, n)});
      at += std::max<size_t>(1, unit * 8 / 10);
    }
    // What follows the layers may begin as they do: a norm.
    if (!out.empty() && Common(ops, out.back(), out.front()) * 10 < unit * 8)
      out.pop_back();
    if (out.size() < 3 || (out.back().end - first) * 10 < n * 6) continue;
    // Most repeats are the unit, and no one is two of them.
    size_t same = 0;
    bool fits = true;
    for (const Repeat& one : out) {
      const size_t size = one.end - one.begin;
      same += size == unit ? 1 : 0;
      fits = fits && size * 10 <= unit * 15;
    }
    if (fits && same * 2 > out.size()) return out;
  }
  return {};
}

namespace {

constexpr uint32_t kNoPosition = NodeId::kNone;

class Finder {
 public:
  Finder(const Graph& graph, const GroupRules& rules)
      : graph_(graph), rules_(rules) {}

  Layers Run() {
    order_.assign(graph_.nodes().begin(), graph_.nodes().end());
    positions_ = graph_.Positions();
    out_.place.assign(graph_.size(), kShared);
    ReadNames();
    if (out_.layers.empty() && !graph_.dialect.empty() && ReadRepeats()) {
      FindSharedBuffers();
      Collect();
      return std::move(out_);
    }
    FindClosing();
    Forward();
    Absorb();
    MoveNorms();
    FindSharedBuffers();
    Collect();
    return std::move(out_);
  }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // stack, index

  Place& place(NodeId id) { return out_.place[id.value]; }
  bool IsOp(NodeId id) const { return graph_[id].kind == NodeKind::kOp; }
  bool HasWeight(NodeId id) const {
    for (const Operand& operand : graph_.Operands(id)) {
      if (operand.IsValue() &&
          graph_[operand.value()].kind == NodeKind::kWeight)
        return true;
    }
    return false;
  }

  // The layers that names of weights know, and which weight is of which.
  void ReadNames() {
    absl::flat_hash_map<std::string_view, uint32_t> stacks;
    std::vector<std::pair<NodeId, Key>> named;
    absl::flat_hash_set<NodeId> seen;
    const auto add = [&](NodeId id, std::string_view name) {
      const auto layer = ParseLayerName(name);
      if (!layer) return;
      const auto [found, fresh] = stacks.try_emplace(
          layer->stack, static_cast<uint32_t>(stacks.size()));
      if (fresh) out_.stacks.push_back({std::string(layer->stack), 0, 0});
      named.push_back({id, {found->second, layer->index}});
    };
    own_.assign(graph_.size(), kShared);
    for (const NodeId id : order_) {
      // A call of a module names its layer by the path of the module.
      const std::string_view scope = graph_.OriginOf(id).scope;
      if (!scope.empty()) {
        add(id, scope);
      } else if (IsOp(id) && !graph_[id].target.starts_with('<')) {
        add(id, graph_[id].target);
      }
      for (const Operand& operand : graph_.Operands(id)) {
        if (!operand.IsValue()) continue;
        const NodeId weight = operand.value();
        if (graph_[weight].kind == NodeKind::kWeight &&
            seen.insert(weight).second)
          add(weight, graph_[weight].name);
      }
    }
    JoinStacks(named);
    std::vector<Key> keys;
    for (const auto& [id, key] : named) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (const Key& key : keys) {
      Stack& stack = out_.stacks[key.first];
      if (stack.count++ == 0)
        stack.first = static_cast<Place>(out_.layers.size());
      out_.layers.push_back({key.first, key.second, {}});
    }
    for (const auto& [id, key] : named) {
      own_[id.value] = static_cast<Place>(
          std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
    }
    for (size_t i = 0; i < out_.stacks.size(); ++i) {
      if (out_.main_stack < 0 ||
          out_.stacks[i].count >
              out_.stacks[static_cast<size_t>(out_.main_stack)].count)
        out_.main_stack = static_cast<int>(i);
    }
    // A node owns the greatest of its weights.
    for (const NodeId id : order_) {
      Place& own = own_[id.value];
      for (const Operand& operand : graph_.Operands(id)) {
        if (operand.IsValue() &&
            graph_[operand.value()].kind == NodeKind::kWeight)
          own = std::max(own, own_[operand.value().value]);
      }
    }
  }

  // Scopes of ops and names of weights may name one stack twice
  // ("jit(f)_Model" and "params"): where ops of a layer by scope have weights
  // of the layer of that number, of one stack that no other scope uses, they
  // are one.
  void JoinStacks(std::vector<std::pair<NodeId, Key>>& named) {
    absl::flat_hash_map<NodeId, Key> key_of;
    for (const auto& [id, key] : named) key_of.try_emplace(id, key);
    constexpr uint32_t kNotOne = UINT32_MAX;
    std::map<uint32_t, uint32_t> weights_of;  // stack of scopes -> of weights
    std::map<uint32_t, std::set<uint32_t>> scopes_of;
    for (const auto& [id, key] : named) {
      if (!IsOp(id)) continue;
      for (const Operand& operand : graph_.Operands(id)) {
        if (!operand.IsValue() ||
            graph_[operand.value()].kind != NodeKind::kWeight)
          continue;
        const auto weight = key_of.find(operand.value());
        if (weight == key_of.end()) continue;
        const auto [stack, index] = weight->second;
        scopes_of[stack].insert(key.first);
        const auto [found, fresh] = weights_of.try_emplace(key.first, stack);
        if (found->second != stack || index != key.second)
          found->second = kNotOne;
      }
    }
    std::vector<uint32_t> now(out_.stacks.size());
    std::vector<Stack> kept;
    std::map<uint32_t, uint32_t> joined;
    for (const auto& [scope, stack] : weights_of) {
      if (stack != kNotOne && stack != scope && scopes_of[stack].size() == 1 &&
          !weights_of.contains(stack))
        joined[scope] = stack;
    }
    if (joined.empty()) return;
    for (uint32_t s = 0; s < now.size(); ++s) {
      if (joined.contains(s)) continue;
      now[s] = static_cast<uint32_t>(kept.size());
      kept.push_back(std::move(out_.stacks[s]));
    }
    for (const auto& [scope, stack] : joined) now[scope] = now[stack];
    out_.stacks = std::move(kept);
    for (auto& [id, key] : named) key.first = now[key.first];
  }

  // Weights without names: the op sequence repeats.
  bool ReadRepeats() {
    std::vector<NodeId> nodes;
    std::vector<uint32_t> ops;
    for (const NodeId id : order_) {
      if (!IsOp(id)) continue;
      nodes.push_back(id);
      ops.push_back(graph_[id].op.value);
    }
    const std::vector<Repeat> repeats = FindRepeats(ops);
    if (repeats.empty()) return false;
    out_.stacks.push_back({{}, 0, static_cast<uint32_t>(repeats.size())});
    out_.main_stack = 0;
    for (size_t i = 0; i < repeats.size(); ++i) {
      out_.layers.push_back({0, static_cast<uint32_t>(i), {}});
      for (size_t at = repeats[i].begin; at < repeats[i].end; ++at)
        place(nodes[at]) = static_cast<Place>(i);
    }
    for (size_t at = repeats.back().end; at < nodes.size(); ++at)
      place(nodes[at]) = kEpilogue;
    return true;
  }

  // Weights that only the part behind the layers uses.
  void FindClosing() {
    if (out_.layers.empty()) return;
    // Does a weight of a layer follow?
    std::vector<bool> more(graph_.size(), false);
    for (size_t i = order_.size(); i-- > 0;) {
      const NodeId id = order_[i];
      const bool leads = more[id.value] || own_[id.value] >= 0;
      if (!leads) continue;
      for (const Operand& operand : graph_.Operands(id)) {
        if (operand.IsValue()) more[operand.value().value] = true;
      }
    }
    const auto closes = [&](NodeId user) {
      return IsOp(user) && own_[user.value] < 0 && !more[user.value];
    };
    bool found = false;
    for (const NodeId weight : graph_.Weights()) {
      if (own_[weight.value] >= 0 ||
          !Matches(rules_.closing_weights, graph_[weight].name))
        continue;
      found = true;
      for (const NodeId user : graph_.Users(weight)) {
        if (closes(user)) closing_.insert(user);
      }
    }
    if (found) return;
    // No known name: weights of no layer behind the start of the last one.
    absl::flat_hash_map<std::string, size_t> families;
    for (const NodeId weight : graph_.Weights())
      ++families[WithoutNumbers(graph_[weight].name)];
    uint32_t start = kNoPosition;
    const auto last = static_cast<Place>(out_.layers.size() - 1);
    for (const NodeId id : order_) {
      if (own_[id.value] == last) {
        start = positions_[id.value];
        break;
      }
    }
    for (const NodeId weight : graph_.Weights()) {
      if (own_[weight.value] >= 0 ||
          families[WithoutNumbers(graph_[weight].name)] > 1)
        continue;
      for (const NodeId user : graph_.Users(weight)) {
        if (closes(user) && positions_[user.value] >= start)
          closing_.insert(user);
      }
    }
  }

  // A node belongs to the last layer whose values it consumes.
  void Forward() {
    for (const NodeId id : order_) {
      if (graph_[id].kind == NodeKind::kPlaceholder) continue;
      Place label = closing_.contains(id) ? kEpilogue : own_[id.value];
      for (const Operand& operand : graph_.Operands(id)) {
        if (operand.IsValue() &&
            graph_[operand.value()].kind != NodeKind::kWeight)
          label = std::max(label, place(operand.value()));
      }
      place(id) = label;
    }
  }

  // What a single layer uses, without weights of its own, belongs to it.
  void Absorb() {
    for (size_t i = order_.size(); i-- > 0;) {
      const NodeId id = order_[i];
      if (!IsOp(id) || place(id) != kShared || HasWeight(id)) continue;
      Place only = kShared;
      bool one = graph_.UseCount(id) > 0;
      graph_.ForEachUse(id, [&](OperandId, const Operand& operand) {
        const NodeId user = operand.owner();
        const Place label = IsOp(user) ? place(user) : kShared;
        one = one && label != kShared && (only == kShared || only == label);
        only = label;
      });
      if (!one) continue;
      place(id) = only;
      ++out_.absorbed;
    }
  }

  bool IsResidual(NodeId id) {
    if (!IsAddition(graph_.op(id))) return false;
    graph_.Inputs(id, inputs_);
    size_t values = 0;
    for (const NodeId input : inputs_)
      values += IsOp(input) && place(input) >= 0 ? 1 : 0;
    return values >= 2;
  }

  bool FeedsLater(NodeId id) {
    bool later = false;
    graph_.ForEachUse(id, [&](OperandId, const Operand& operand) {
      later = later ||
              (IsOp(operand.owner()) && place(operand.owner()) > place(id));
    });
    return later;
  }

  // The flow of data gives the inside of an unfused norm to the layer before
  // its weight. From each node that ends a layer, what hangs on it alone and
  // feeds only later layers goes to those.
  void MoveNorms() {
    area_.assign(graph_.size(), NodeId());
    met_.assign(graph_.size(), {});
    std::vector<NodeId> inside;
    std::vector<NodeId> to_move;
    for (const NodeId c : order_) {
      // Areas are nested or apart, and the outer one begins first.
      if (!IsOp(c) || place(c) < 0 || place(c) == kEpilogue ||
          area_[c.value].valid() || (!IsResidual(c) && !FeedsLater(c)))
        continue;
      Grow(c, inside);
      Shrink(c, inside);
      for (const NodeId id : inside) {
        if (alive_.contains(id)) to_move.push_back(id);
      }
    }
    std::sort(to_move.begin(), to_move.end(), [&](NodeId a, NodeId b) {
      return positions_[a.value] > positions_[b.value];
    });
    for (const NodeId id : to_move) {
      Place least = kEpilogue;
      graph_.ForEachUse(id, [&](OperandId, const Operand& operand) {
        least = std::min(least, place(operand.owner()));
      });
      place(id) = least;
      ++out_.norm_nodes_moved;
    }
  }

  // Operands that are values of a layer.
  uint32_t Labelled(NodeId id) {
    uint32_t count = 0;
    for (const Operand& operand : graph_.Operands(id)) {
      count += operand.IsValue() && IsOp(operand.value()) &&
                       place(operand.value()) >= 0
                   ? 1
                   : 0;
    }
    return count;
  }

  // Nodes of the layer without weights all of whose labelled operands are `c`
  // or such nodes; a collective ends them.
  void Grow(NodeId c, std::vector<NodeId>& inside) {
    inside.clear();
    const auto visit = [&](NodeId from) {
      graph_.ForEachUse(from, [&](OperandId, const Operand& operand) {
        const NodeId id = operand.owner();
        Met& met = met_[id.value];
        if (met.labelled == 0) met.labelled = Labelled(id);
        if (met.area != c) met.operands = 0;
        met.area = c;
        // It joins when the last of its operands is in.
        if (++met.operands != met.labelled || !IsOp(id) ||
            place(id) != place(c) || HasWeight(id) ||
            (Matches(rules_.closing_ops, graph_.op(id)) &&
             !Matches(rules_.residual_norms, graph_.op(id))))
          return;
        area_[id.value] = c;
        inside.push_back(id);
      });
    };
    visit(c);
    for (size_t i = 0; i < inside.size(); ++i) visit(inside[i]);
  }

  // Takes away, until nothing changes, what has no user or a user that is
  // neither inside nor in a later layer.
  void Shrink(NodeId c, const std::vector<NodeId>& inside) {
    alive_.clear();
    alive_.insert(inside.begin(), inside.end());
    const auto fails = [&](NodeId id) {
      bool fine = graph_.UseCount(id) > 0;
      graph_.ForEachUse(id, [&](OperandId, const Operand& operand) {
        const NodeId user = operand.owner();
        fine = fine && IsOp(user) &&
               (alive_.contains(user) || place(user) > place(c));
      });
      return !fine;
    };
    std::vector<NodeId> doubtful = inside;
    while (!doubtful.empty()) {
      const NodeId id = doubtful.back();
      doubtful.pop_back();
      if (!alive_.contains(id) || !fails(id)) continue;
      alive_.erase(id);
      for (const Operand& operand : graph_.Operands(id)) {
        if (operand.IsValue() && area_[operand.value().value] == c)
          doubtful.push_back(operand.value());
      }
    }
  }

  void FindSharedBuffers() {
    out_.shared_buffer.assign(graph_.size(), false);
    for (const NodeId weight : graph_.Weights()) {
      if (own_[weight.value] >= 0) continue;
      Place first = kShared;
      graph_.ForEachUse(weight, [&](OperandId, const Operand& operand) {
        const Place at = place(operand.owner());
        if (at < 0 || at == kEpilogue) return;
        if (first != kShared && first != at)
          out_.shared_buffer[weight.value] = true;
        first = at;
      });
    }
  }

  void Collect() {
    for (const NodeId id : order_) {
      if (!IsOp(id)) continue;
      const Place at = place(id);
      if (at == kShared) {
        out_.shared.push_back(id);
      } else if (at == kEpilogue) {
        out_.epilogue.push_back(id);
      } else {
        out_.layers[static_cast<size_t>(at)].nodes.push_back(id);
      }
      if (at == kShared || !Matches(rules_.residual_norms, graph_.op(id)))
        continue;
      Place from = kShared;
      graph_.Inputs(id, inputs_);
      for (const NodeId input : inputs_) {
        if (graph_[input].kind != NodeKind::kWeight && place(input) < at)
          from = std::max(from, place(input));
      }
      if (from >= 0) out_.boundaries.push_back({id, from, at});
    }
  }

  const Graph& graph_;
  const GroupRules& rules_;
  Layers out_;
  std::vector<NodeId> order_;
  std::vector<uint32_t> positions_;
  std::vector<Place> own_;
  absl::flat_hash_set<NodeId> closing_;
  // For the areas behind nodes that end a layer.
  struct Met {
    NodeId area;            // counted for this one
    uint32_t operands = 0;  // of them inside
    uint32_t labelled = 0;  // of all
  };
  std::vector<Met> met_;
  std::vector<NodeId> area_;  // the node that an area begins at
  absl::flat_hash_set<NodeId> alive_;
  std::vector<NodeId> inputs_;
};

}  // namespace

bool IsAddition(std::string_view op) {
  return MatchesTarget(op, "aten.add") || MatchesTarget(op, "aten.add_") ||
         op == "builtin.add" || op == "builtin.iadd";
}

Place Layers::Find(uint32_t stack, uint32_t index) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].stack == stack && layers[i].index == index)
      return static_cast<Place>(i);
  }
  return kShared;
}

std::string Layers::NameOf(Place at) const {
  if (at == kShared) return "shared";
  if (at == kEpilogue) return "epilogue";
  const Layer& layer = layers[static_cast<size_t>(at)];
  std::string index = std::to_string(layer.index);
  if (static_cast<int>(layer.stack) == main_stack) return index;
  return stacks[layer.stack].name + ":" + index;
}

Layers FindLayers(const Graph& graph, const GroupRules& rules) {
  return Finder(graph, rules).Run();
}

}  // namespace lamina::graph
