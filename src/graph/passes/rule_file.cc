// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/rule_file.h"

#include <algorithm>

#include "base/byte_source.h"
#include "graph/passes/rule_reader.h"

namespace lamina::graph {
namespace {

constexpr size_t kMaxRuleFile = size_t{16} << 20;
constexpr size_t kMaxRules = 10'000;  // of one file

}  // namespace

const std::vector<std::string_view>& StageOrder() {
  static const std::vector<std::string_view> order = {
      "factory",   "export",      "post_export",      "pattern_matcher",
      "sharding",  "weight_load", "post_load_fusion", "cache_init",
      "visualize", "export_onnx", "compile",
  };
  return order;
}

size_t StageRank(std::string_view stage) {
  const auto& order = StageOrder();
  return static_cast<size_t>(std::find(order.begin(), order.end(), stage) -
                             order.begin());
}

const Rule* RuleSet::Find(std::string_view name) const {
  for (const Rule& rule : rules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

Result<std::vector<Rule>> ReadRules(const rules::DataFile& file,
                                    std::vector<std::string>* warnings) {
  constexpr std::string_view kKeys[] = {"rules"};
  LAMINA_ASSIGN(const rules::Members members,
                rules::Members::Of(file, file.root, kKeys));
  const rules::Node* const list = members.Find("rules");
  if (list == nullptr || !list->IsList())
    return Fail(members.ErrorAt("expected a list 'rules'"));
  std::vector<Rule> out;
  if (list->items.size() > kMaxRules)
    return Fail(file.ErrorAt(*list, "too many rules"));
  for (const rules::Node& node : list->items) {
    LAMINA_ASSIGN(Rule rule, ReadRule(file, node, warnings));
    for (const Rule& other : out) {
      if (other.name != rule.name) continue;
      return Fail(file.ErrorAt(*node.Find("rule"),
                               "the rule '" + rule.name + "' occurs twice"));
    }
    out.push_back(std::move(rule));
  }
  return out;
}

Result<RuleSet> LoadRuleSet(const rules::DataSet& data,
                            const std::string& extra) {
  RuleSet set;
  const auto add = [&](std::vector<Rule>&& rules) {
    for (Rule& rule : rules) {
      const auto old =
          std::find_if(set.rules.begin(), set.rules.end(),
                       [&](const Rule& r) { return r.name == rule.name; });
      if (old == set.rules.end()) {
        set.rules.push_back(std::move(rule));
      } else {
        *old = std::move(rule);
      }
    }
  };
  LAMINA_ASSIGN(auto files, data.Load("fusions"));
  // The last one wins here: the user's files come first in the list.
  std::reverse(files.begin(), files.end());
  for (const auto& file : files) {
    LAMINA_ASSIGN(auto rules, ReadRules(*file, &set.warnings));
    add(std::move(rules));
  }
  if (!extra.empty()) {
    LAMINA_ASSIGN(std::string text, ReadAll(extra, kMaxRuleFile));
    LAMINA_ASSIGN(const rules::DataFile file,
                  rules::ParseYaml(extra, std::move(text)));
    LAMINA_ASSIGN(auto rules, ReadRules(file, &set.warnings));
    add(std::move(rules));
  }
  std::stable_sort(set.rules.begin(), set.rules.end(),
                   [](const Rule& a, const Rule& b) {
                     return StageRank(a.stage) < StageRank(b.stage);
                   });
  return set;
}

}  // namespace lamina::graph
