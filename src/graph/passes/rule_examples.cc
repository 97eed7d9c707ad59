// SPDX-License-Identifier: Apache-2.0
//
// The examples and counter-examples of a rule, held against its patterns.
#include <algorithm>
#include <fmt/format.h>

#include "graph/passes/rule_file.h"
#include "graph/pattern/rule.h"
#include "graph/print.h"

namespace lamina::graph {

Result<Dump> ParseExample(const std::string& name, std::string_view lines) {
  Header header;
  header.transform = "example";
  header.stage = "example";
  std::string text = HeaderText(header) + SectionHead("(root)");
  text += lines;
  return ParseDump(name, std::move(text));
}

std::vector<std::string> CheckRuleExamples(const Rule& rule) {
  std::vector<std::string> out;
  FindOptions options;
  options.near_misses = true;
  const auto find = [&](std::string_view text) -> std::optional<RuleMatches> {
    auto dump = ParseExample(rule.name, text);
    if (!dump || dump->graphs.empty() || !dump->diagnostics.empty()) {
      out.push_back(rule.name + ": an example is no sound dump: " +
                    (dump ? Format(dump->diagnostics, rule.name)
                          : dump.error().ToString()));
      return std::nullopt;
    }
    return FindRule(OpIndex(dump->graphs[0]), rule, options);
  };
  for (size_t i = 0; i < rule.examples.size(); ++i) {
    const auto found = find(rule.examples[i]);
    if (found && found->matches.size() != 1) {
      out.push_back(fmt::format("{}: example {} has {} matches, expected 1",
                                rule.name, i + 1, found->matches.size()));
    }
  }
  for (size_t i = 0; i < rule.counter_examples.size(); ++i) {
    const CounterExample& example = rule.counter_examples[i];
    const auto found = find(example.text);
    if (!found) continue;
    if (!found->matches.empty()) {
      out.push_back(
          fmt::format("{}: counter-example {} matches", rule.name, i + 1));
    }
    if (example.why.empty()) continue;
    const bool named =
        std::any_of(found->near_misses.begin(), found->near_misses.end(),
                    [&](const RuleMatch& miss) {
                      return miss.match.deviations.size() == 1 &&
                             Name(miss.match.deviations[0].miss) == example.why;
                    });
    if (named) continue;
    std::string reasons;
    for (const RuleMatch& miss : found->near_misses)
      reasons += " " + std::string(Name(miss.match.deviations[0].miss));
    out.push_back(fmt::format(
        "{}: counter-example {} is no near miss for '{}' (found:{})", rule.name,
        i + 1, example.why, reasons));
  }
  return out;
}

}  // namespace lamina::graph
