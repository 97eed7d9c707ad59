// SPDX-License-Identifier: Apache-2.0
#include "analysis/host_tables/fusion_names.h"

#include <algorithm>
#include <utility>

#include "graph/passes/rule_file.h"

namespace lamina::analysis::host_tables {
namespace {

using tree::NodeId;

// Rules are small; no part of a stream is longer than the longest form.
constexpr size_t kMostOps = 32;
// One op is no fusion.
constexpr size_t kLeastOps = 2;

// "aten::mul_" as graphs have it: "aten.mul".
std::string GraphName(std::string_view op) {
  std::string name(op);
  if (const size_t at = name.find("::"); at != std::string::npos)
    name.replace(at, 2, ".");
  // Of two ops that differ in where they write; "aten::_softmax" is what
  // "aten::softmax" calls.
  while (name.size() > 1 && name.ends_with('_')) name.pop_back();
  return name;
}

// The innermost op around a kernel whose name holds.
template <class Holds>
NodeId Around(const tree::Tree& tree, NodeId node, Holds holds) {
  for (; node.valid(); node = tree.parent(node)) {
    if (tree.kind(node) == trace::Kind::kOp &&
        holds(GraphName(tree.name(node))))
      return node;
  }
  return NodeId();
}

}  // namespace

Result<FusionNames> FusionNames::Load(const rules::DataSet& data) {
  FusionNames names;
  LAMINA_ASSIGN(names.launches_, graph::LaunchTable::Load(data));
  LAMINA_ASSIGN(const graph::RuleSet set, graph::LoadRuleSet(data));
  for (const graph::Rule& rule : set.rules) {
    for (const graph::Alternative& alternative : rule.alternatives) {
      Form form{rule.name, {}};
      for (const graph::PatternLine& line : alternative.pattern.lines) {
        Op op{line.targets};
        std::erase_if(op.names, [&](const std::string& name) {
          return names.launches_->NeverLaunches(name);
        });
        if (op.names.empty()) continue;
        op.may_miss =
            std::any_of(op.names.begin(), op.names.end(),
                        [&](const std::string& n) { return names.MayMiss(n); });
        form.ops.push_back(std::move(op));
      }
      const auto sure = static_cast<size_t>(
          std::count_if(form.ops.begin(), form.ops.end(),
                        [](const Op& op) { return !op.may_miss; }));
      if (sure >= kLeastOps && form.ops.size() <= kMostOps)
        names.forms_.push_back(std::move(form));
    }
  }
  return names;
}

bool FusionNames::MayMiss(std::string_view op) const {
  // What copies in a trace counts, too.
  return op == "aten.clone" || op == "aten.copy" || op == "aten._to_copy" ||
         launches_->MayLaunchNothing(op);
}

size_t FusionNames::Fits(const Form& form, const tree::Tree& tree,
                         std::span<const NodeId> launchers) const {
  const auto inside = [&](NodeId node, NodeId around) {
    while (node.valid() && node != around) node = tree.parent(node);
    return node.valid();
  };
  size_t at = 0;
  for (const Op& op : form.ops) {
    NodeId node;
    while (at < launchers.size()) {
      node = Around(tree, launchers[at], [&](const std::string& name) {
        return std::find(op.names.begin(), op.names.end(), name) !=
               op.names.end();
      });
      // A copy that the form does not speak of.
      if (node.valid() || at == 0 || op.may_miss ||
          !Around(tree, launchers[at], [&](const std::string& name) {
             return MayMiss(name);
           }).valid())
        break;
      ++at;
    }
    if (!node.valid()) {
      if (op.may_miss) continue;
      return 0;
    }
    while (at < launchers.size() && inside(launchers[at], node)) ++at;
  }
  return at;
}

std::string_view FusionNames::Find(const tree::Tree& tree,
                                   std::span<const NodeId> launchers) const {
  std::string_view best;
  size_t most = kLeastOps - 1;
  for (const Form& form : forms_) {
    for (size_t from = 0; from + most < launchers.size(); ++from) {
      const size_t taken = Fits(form, tree, launchers.subspan(from));
      if (taken <= most) continue;
      most = taken;
      best = form.rule;
    }
  }
  return best;
}

}  // namespace lamina::analysis::host_tables
