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
// Fewer common words are a coincidence.
constexpr double kLeastScore = 0.5;

std::string Place(const Mention& mention) {
  return mention.file + ":" + std::to_string(mention.line);
}

// Ops that are references or plumbing, not kernels of their own.
bool IsReference(std::string_view op) {
  return Contains(op, ".torch_") && !Contains(op, "quant");
}

}  // namespace

KernelLookup::KernelLookup(const OpTable& ops, const SourceIndex* tree)
    : ops_(ops), tree_(tree) {}

FoundKernel KernelLookup::ByName(std::string_view op) const {
  FoundKernel out;
  out.op = op;
  if (tree_ != nullptr) {
    const Mention* found = tree_->Find(op, Mention::Kind::kDefinition);
    if (found == nullptr) found = tree_->Find(op, Mention::Kind::kUse);
    if (found != nullptr) {
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
    for (const std::string& word : WordsOfName(op.substr(op.find('.') + 1))) {
      if (scalar && (word == "add" || word == "mul")) continue;
      words.insert(word);
    }
  }
  // A chain is named for what it computes, not for its steps.
  const bool rope = words.contains("neg") && words.contains("cat");
  if (rope) {
    words = {"rope"};
  } else if (words.contains("norm")) {
    words.erase("mul");
  }
  return {words.begin(), words.end()};
}

std::vector<FoundKernel> KernelLookup::ByWords(
    const std::vector<std::string>& words) const {
  std::vector<FoundKernel> out;
  if (words.empty()) return out;
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
    const std::vector<std::string> has = WordsOfName(name);
    std::vector<std::string> both;
    std::set_intersection(has.begin(), has.end(), words.begin(), words.end(),
                          std::back_inserter(both));
    const size_t any = has.size() + words.size() - both.size();
    const double score =
        any == 0 ? 0
                 : static_cast<double>(both.size()) / static_cast<double>(any);
    if (score < kLeastScore) continue;
    FoundKernel found = ByName(name);
    found.score = score;
    out.push_back(std::move(found));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FoundKernel& a, const FoundKernel& b) {
                     return a.score > b.score;
                   });
  if (out.size() > kMostByWords) out.resize(kMostByWords);
  return out;
}

}  // namespace lamina::fusion
