// SPDX-License-Identifier: Apache-2.0
//
// Fusion rules as data: data/fusions/*.yaml and the files of --rules. The form
// is described in docs/fusions.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/dump.h"
#include "graph/pattern/rule.h"
#include "rules/document.h"

namespace lamina::graph {

struct RuleSet {
  std::vector<Rule> rules;            // by stage as the pipeline runs them
  std::vector<std::string> warnings;  // "FILE:LINE:COLUMN: what"

  const Rule* Find(std::string_view name) const;
};

// The built-in rules with those of an overlay. `extra` names one more file of
// rules, or is empty; a rule with the name of an earlier one replaces it.
Result<RuleSet> LoadRuleSet(const rules::DataSet& data,
                            const std::string& extra = {});
// The rules of one file.
Result<std::vector<Rule>> ReadRules(const rules::DataFile& file,
                                    std::vector<std::string>* warnings);

// An example of a rule as a graph.
Result<Dump> ParseExample(const std::string& name, std::string_view lines);
// Whether every example of a rule matches and no counter-example does (and
// those with a reason nearly match for that reason). One sentence per
// violation.
std::vector<std::string> CheckRuleExamples(const Rule& rule);

// Place of a stage in a pipeline; behind all known ones for others.
size_t StageRank(std::string_view stage);
const std::vector<std::string_view>& StageOrder();

}  // namespace lamina::graph
