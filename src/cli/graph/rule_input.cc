// SPDX-License-Identifier: Apache-2.0
#include "cli/graph/rule_input.h"

#include <cstdio>
#include <filesystem>

#include "base/escape.h"

namespace lamina::cli {

Result<RuleInput> OpenRules(const Common& common) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(common.rules_dir, error);
  RuleInput out;
  out.data = rules::DataSet(file ? std::string() : common.rules_dir);
  LAMINA_ASSIGN(out.set, graph::LoadRuleSet(out.data, file ? common.rules_dir
                                                           : std::string()));
  LAMINA_ASSIGN(out.groups, graph::GroupRules::Load(out.data));
  for (const std::string& warning : out.set.warnings)
    std::fprintf(stderr, "lamina: warning: %s\n",
                 EscapeTerminal(warning).c_str());
  return out;
}

Error UnknownRule(const RuleInput& rules, const std::string& name) {
  std::vector<std::string_view> names;
  for (const graph::Rule& rule : rules.set.rules) names.push_back(rule.name);
  const std::string_view near = rules::Nearest(name, names);
  return UsageError("no rule '" + EscapeTerminal(name) + "'",
                    near.empty()
                        ? "lamina graph census DUMP --explain lists the rules"
                        : "did you mean '" + std::string(near) + "'?");
}

}  // namespace lamina::cli
