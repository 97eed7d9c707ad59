// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/fusion_names.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace lamina::analysis::host {
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

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void ReadNames(const rules::Node* list, std::vector<std::string>& to) {
  if (list == nullptr) return;
  for (const rules::Node& item : list->items) to.push_back(item.text);
}

}  // namespace

Result<FusionNames> FusionNames::Load(const rules::DataSet& data) {
  FusionNames names;
  LAMINA_ASSIGN(const auto launches, data.Load("launches"));
  for (const auto& file : launches) {
    ReadNames(file->root.Find("no_kernel"), names.never_);
    ReadNames(file->root.Find("maybe_no_kernel"), names.maybe_);
  }
  // As ops of a trace that copy.
  for (const char* const op : {"aten.clone", "aten.copy", "aten._to_copy"})
    names.maybe_.emplace_back(op);
  LAMINA_ASSIGN(const auto fusions, data.Load("fusions"));
  for (const auto& file : fusions) {
    const rules::Node* const list = file->root.Find("rules");
    if (list == nullptr) continue;
    for (const rules::Node& rule : list->items) {
      const rules::Node* const name = rule.Find("rule");
      const rules::Node* const before = rule.Find("before");
      if (name == nullptr || before == nullptr) continue;
      if (before->IsScalar()) names.Add(name->text, before->text);
      for (const rules::Node& form : before->items)
        names.Add(name->text, form.text);
    }
  }
  return names;
}

// Lines are "%out = aten.mul|aten.div(%x, %y)", with a "~" where the order of
// the operands does not matter.
void FusionNames::Add(std::string_view rule, std::string_view text) {
  Form form;
  form.rule = rule;
  size_t sure = 0;
  for (const std::string_view line : SplitLines(text)) {
    const size_t equals = line.find('=');
    const size_t open = line.find('(', equals);
    if (equals == line.npos || open == line.npos) continue;
    const std::string_view target = line.substr(equals + 1, open - equals - 1);
    std::vector<std::string> ops;
    std::string op;
    for (const char c : target) {
      if (c == '|') ops.push_back(std::exchange(op, {}));
      if (c != '|' && c != ' ' && c != '~') op += c;
    }
    ops.push_back(std::move(op));
    std::erase_if(ops,
                  [&](const std::string& one) { return Has(never_, one); });
    if (ops.empty()) continue;
    const bool may_miss =
        std::any_of(ops.begin(), ops.end(),
                    [&](const std::string& one) { return Has(maybe_, one); });
    if (!may_miss) ++sure;
    form.ops.push_back(std::move(ops));
  }
  if (sure >= kLeastOps && form.ops.size() <= kMostOps)
    forms_.push_back(std::move(form));
}

size_t FusionNames::Fits(const Form& form, const tree::Tree& tree,
                         std::span<const NodeId> launchers) const {
  // The innermost op around a kernel that is one of `names`.
  const auto find = [&](NodeId node, const std::vector<std::string>& names) {
    for (; node.valid(); node = tree.parent(node)) {
      if (tree.kind(node) != trace::Kind::kOp) continue;
      const std::string own = GraphName(tree.name(node));
      if (Has(names, own)) return node;
    }
    return NodeId();
  };
  const auto inside = [&](NodeId node, NodeId around) {
    while (node.valid() && node != around) node = tree.parent(node);
    return node.valid();
  };
  size_t at = 0;
  for (const std::vector<std::string>& names : form.ops) {
    const bool may_miss =
        std::any_of(names.begin(), names.end(),
                    [&](const std::string& op) { return Has(maybe_, op); });
    NodeId node;
    while (at < launchers.size()) {
      node = find(launchers[at], names);
      // A copy that the form does not speak of.
      if (node.valid() || at == 0 || may_miss ||
          !find(launchers[at], maybe_).valid())
        break;
      ++at;
    }
    if (!node.valid()) {
      if (may_miss) continue;
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

}  // namespace lamina::analysis::host
