// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/unified_items.h"

#include <algorithm>
#include <utility>

namespace lamina::compat::tracelens {
namespace {

class Walk {
 public:
  Walk(const Model& model, Pricer& pricer,
       const std::vector<PseudoOp>& pseudo_ops)
      : model_(model),
        tree_(model.tree()),
        pricer_(pricer),
        pseudo_ops_(pseudo_ops) {}

  std::vector<Item> Run() {
    covered_.resize(model_.trace().slices.size(), false);
    const size_t size = tree_.size();
    FindModels();
    for (uint32_t n = 0; n < size;) {
      const NodeId node(n);
      if (!tree_.HasDeviceWork(node)) {
        n = tree_.end(node).value;
        continue;
      }
      n = Visit(node) ? tree_.end(node).value : n + 1;
    }
    Pseudo();
    Synthetic();
    return std::move(items_);
  }

 private:
  bool Communication(SliceId s) const {
    return analysis::PeerBucket(model_.trace().KindOf(s),
                                model_.trace().Name(s)) ==
           analysis::Bucket::kCommunication;
  }

  // Prefix counts of ops with device work and a model, to ask subtrees.
  void FindModels() {
    models_before_.resize(tree_.size() + 1, 0);
    std::vector<bool> pseudo(tree_.size());
    for (const PseudoOp& op : pseudo_ops_) {
      if (pricer_.Price(op) == nullptr) continue;
      for (const SliceId s : op.work) pseudo[tree_.launch(s).value] = true;
    }
    for (uint32_t n = 0; n < tree_.size(); ++n) {
      const NodeId node(n);
      const bool has =
          pseudo[n] || (tree_.IsOp(node) && tree_.HasDeviceWork(node) &&
                        pricer_.Find(node) != nullptr);
      models_before_[n + 1] = models_before_[n] + (has ? 1 : 0);
    }
  }
  bool ModelBelow(NodeId node) const {
    return models_before_[tree_.end(node).value] !=
           models_before_[node.value + 1];
  }

  void Take(NodeId node, const Priced* priced) {
    Item item;
    item.node = node;
    item.name = model_.Name(node);
    item.priced = priced;
    for (const SliceId s : tree_.DeviceWork(node)) {
      covered_[s.value] = true;
      item.work.push_back(s);
    }
    items_.push_back(std::move(item));
  }

  // True when the subtree of the node is done.
  bool Visit(NodeId node) {
    if (!tree_.IsOp(node)) return false;
    if (const cost::OpModel* found = pricer_.Find(node)) {
      const Priced& priced = pricer_.Price(node, node, false);
      // TraceLens has no model of a compiled kernel whose sizes are missing.
      const bool known = priced.cost || !Pricer::IsCompiled(*found);
      Take(node, known ? &priced : nullptr);
      return true;
    }
    if (!ModelBelow(node)) {
      const NodeId forward = ForwardOf(node);
      if (forward.valid()) {
        Take(node, &pricer_.Price(node, forward, true));
        return true;
      }
    } else {
      return false;
    }
    if (!LaunchesItself(node)) return false;
    const auto work = tree_.DeviceWork(node);
    if (std::any_of(work.begin(), work.end(),
                    [&](SliceId s) { return Communication(s); }))
      return false;
    Take(node, nullptr);
    return true;
  }

  // The forward op whose model prices this only main op of its wrapper.
  NodeId ForwardOf(NodeId node) {
    NodeId up = node;
    for (int level = 0; level <= 5 && up.valid();
         ++level, up = tree_.parent(up)) {
      const NodeId forward = tree_.forward(up);
      if (!forward.valid()) continue;
      if (up == node) return {};  // the wrapper itself
      std::string_view wanted = tree_.name(up);
      const size_t colon = wanted.find(": ");
      wanted = colon == std::string_view::npos ? std::string_view()
                                               : wanted.substr(colon + 2);
      size_t mains = 0;
      bool self = false;
      for (uint32_t n = up.value + 1; n < tree_.end(up).value; ++n) {
        const NodeId below(n);
        if (!tree_.IsOp(below) || !tree_.HasDeviceWork(below)) continue;
        if (!wanted.empty() && tree_.name(below) != wanted) continue;
        ++mains;
        self = self || below == node;
      }
      const cost::OpModel* model = pricer_.Find(forward);
      return mains == 1 && self && model != nullptr &&
                     pricer_.models().HasBackward(*model)
                 ? forward
                 : NodeId();
    }
    return {};
  }

  // Through calls and Python frames only.
  bool LaunchesItself(NodeId node) const {
    for (uint32_t n = node.value + 1; n < tree_.end(node).value;) {
      const NodeId below(n);
      if (tree_.IsOp(below)) {
        n = tree_.end(below).value;
        continue;
      }
      if (!tree_.OwnDeviceWork(below).empty()) return true;
      ++n;
    }
    return !tree_.OwnDeviceWork(node).empty();
  }

  // Those whose work no op with a model has taken.
  void Pseudo() {
    for (const PseudoOp& pseudo : pseudo_ops_) {
      if (std::any_of(pseudo.work.begin(), pseudo.work.end(),
                      [&](SliceId s) { return covered_[s.value]; }))
        continue;
      Item item;
      item.node = pseudo.donor;
      item.name = pseudo.name;
      item.work = pseudo.work;
      item.priced = pricer_.Price(pseudo);
      item.pseudo = &pseudo;
      for (const SliceId s : pseudo.work) covered_[s.value] = true;
      items_.push_back(std::move(item));
    }
  }

  void Synthetic() {
    for (const SliceId s : tree_.launched()) {
      if (covered_[s.value] || Communication(s)) continue;
      const NodeId launch = tree_.launch(s);
      const NodeId op = tree_.EnclosingOp(launch);
      Item item;
      item.node = op.valid() ? op : launch;
      item.name = model_.Name(item.node) + "->" +
                  std::string(model_.trace().Name(s)) + " (Synthetic Op)";
      item.work = {s};
      item.synthetic = true;
      items_.push_back(std::move(item));
    }
  }

  const Model& model_;
  const tree::Tree& tree_;
  Pricer& pricer_;
  const std::vector<PseudoOp>& pseudo_ops_;
  std::vector<bool> covered_;
  std::vector<uint32_t> models_before_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<Item> UnifiedItems(const Model& model, Pricer& pricer,
                               const std::vector<PseudoOp>& pseudo_ops) {
  return Walk(model, pricer, pseudo_ops).Run();
}

}  // namespace lamina::compat::tracelens
