// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/kernel_lookup.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/text.h"
#include "graph/target.h"

namespace lamina::fusion {
namespace {

constexpr size_t kMostByWords = 5;

std::string Place(const Mention& mention) {
  return mention.file + ":" + std::to_string(mention.line);
}

// Ops that are references or plumbing, not kernels of their own.
bool IsReference(std::string_view op) {
  return Contains(op, ".torch_") && !Contains(op, "quant");
}

// Steps that every chain may hold.
bool IsPlain(const std::string& step) {
  return step == "mul" || step == "add" || step == "shift" || step == "div" ||
         step == "sum" || step.starts_with("scale") ||
         step.starts_with("shift") || step.starts_with("get") ||
         step.starts_with("to[") || step.starts_with("part");
}

}  // namespace

KernelLookup::KernelLookup(const OpTable& ops, const SourceIndex* tree)
    : ops_(ops), tree_(tree) {}

FoundKernel KernelLookup::ByName(std::string_view op) const {
  FoundKernel out;
  out.op = op;
  if (tree_ != nullptr) {
    // With a tree only the tree answers, and a use is no definition.
    if (op.ends_with(".default")) op.remove_suffix(8);
    const Mention* const found = tree_->Find(op, Mention::Kind::kDefinition);
    if (found == nullptr) {
      const Mention* use = tree_->Find(op, Mention::Kind::kUse);
      if (use == nullptr) use = tree_->Find(op, Mention::Kind::kFake);
      out.evidence = use != nullptr
                         ? "not_found: used_not_defined, " + Place(*use)
                         : "not_found: not in " + tree_->tree;
      if (const KnownOp* const known = ops_.Find(op)) {
        out.evidence += fmt::format(
            "; built-in table: {} ({})",
            known->source.empty() ? "file not known" : known->source,
            known->evidence);
      }
      return out;
    }
    {
      out.score = 1;
      out.evidence = Place(*found);
      const Mention* const test = tree_->Find(op, Mention::Kind::kTest);
      if (test != nullptr) out.tests = Place(*test);
      return out;
    }
  }
  const KnownOp* const known = ops_.Find(op);
  if (known != nullptr) {
    out.score = 1;
    out.evidence =
        fmt::format("{} (built-in table, {})",
                    known->source.empty() ? "file not known" : known->source,
                    known->evidence);
  }
  return out;
}

std::vector<std::string> KernelLookup::WordsOfName(
    std::string_view name) const {
  std::set<std::string> words;
  for (const auto& [part, word] : ops_.tokens()) {
    if (Contains(name, part)) words.insert(word);
  }
  return {words.begin(), words.end()};
}

std::vector<std::string> KernelLookup::WordsOf(
    const graph::Graph& graph, const std::vector<graph::NodeId>& nodes) const {
  std::set<std::string> words;
  for (const graph::NodeId id : nodes) {
    const std::string_view op = graph.op(id);
    if (ops_.ClassOf(op) == OpClass::kView) continue;
    // Adding a constant is no addition of two tensors.
    const bool scalar = graph.Inputs(id).size() < 2;
    const std::string_view name = op.substr(op.find('.') + 1);
    const std::vector<std::string> own = WordsOfName(name);
    for (const std::string& word : own) {
      // A constant scales or shifts: a step of its own.
      words.insert(scalar && word == "mul"   ? "scale"
                   : scalar && word == "add" ? "shift"
                                             : word);
    }
    // A step that no word names is one all the same: without it clamp would
    // vanish between silu and mul.
    if (own.empty() && !ops_.MayBeFree(op) &&
        ops_.ClassOf(op) != OpClass::kHost)
      words.emplace(name.substr(0, name.find('.')));
  }
  // A chain is named for what it computes, not for its steps.
  const bool rope = words.contains("neg") && words.contains("cat");
  if (rope) {
    words = {"rope"};
  } else if (words.contains("norm")) {
    // The inside of a norm: x * rsqrt(mean(x^2) + eps) * w.
    for (const char* const inside : {"mul", "pow", "mean", "shift"})
      words.erase(inside);
  }
  return {words.begin(), words.end()};
}

std::vector<FoundKernel> KernelLookup::ByMeaning(
    const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
    const std::vector<std::string>& words) const {
  std::vector<FoundKernel> out;
  // What a matrix product computes its name does not tell.
  if (words.empty() || words == std::vector<std::string>{"linear"}) return out;
  const Meaning chain(graph, nodes, ops_);
  if (chain.results().empty()) return out;
  std::set<std::string> telling;
  for (const std::string& step : chain.Steps(chain.results())) {
    if (!IsPlain(step)) telling.insert(step);
  }
  std::set<std::string> names;
  for (const KnownOp& op : ops_.ops()) names.insert(op.op);
  if (tree_ != nullptr) {
    for (const Mention& mention : tree_->mentions) {
      if (mention.kind == Mention::Kind::kDefinition)
        names.insert(mention.name);
    }
  }
  for (const std::string& name : names) {
    if (IsReference(name)) continue;
    const KnownOp* const known = ops_.Find(name);
    if (known == nullptr || known->means.empty()) {
      std::vector<std::string> has = WordsOfName(name);
      if (has.empty() || has != words) continue;
      FoundKernel found = ByName(name);
      if (found.score == 0) continue;
      found.score = 0;
      found.fit = Fit::kUnknown;
      found.why_not = "unknown meaning";
      out.push_back(std::move(found));
      continue;
    }
    const Judged judged = Compare(chain, *known);
    // Of ops that do something else only those that share a step which tells
    // what they are for.
    if (judged.fit == Fit::kConflict) {
      Meaning own;
      own.Parse(known->means[0]);
      const auto steps = own.Steps(own.results());
      const bool near = std::any_of(
          steps.begin(), steps.end(),
          [&](const std::string& step) { return telling.contains(step); });
      if (!near) continue;
    }
    FoundKernel found = ByName(name);
    if (found.score == 0) continue;
    if (judged.fit > Fit::kLayout) found.score = 0;
    found.fit = judged.fit;
    found.why_not = judged.why_not;
    out.push_back(std::move(found));
  }
  std::stable_sort(
      out.begin(), out.end(),
      [](const FoundKernel& a, const FoundKernel& b) { return a.fit < b.fit; });
  // The best ones, and some of what nearly fits.
  size_t others = 0;
  std::erase_if(out, [&](const FoundKernel& one) {
    return one.score == 0 && ++others > kMostByWords;
  });
  return out;
}

}  // namespace lamina::fusion
