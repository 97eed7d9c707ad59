// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/format.h>

#include "graph/fusion/review_facts.h"

namespace lamina::fusion {

using graph::Rule;

std::string ReviewNote(const Rule& rule, const ReviewFacts& facts,
                       const std::vector<Item>& items,
                       const std::string& changes, const std::string& path) {
  std::string note;
  const auto fails = [&](std::string_view id) {
    return std::any_of(items.begin(), items.end(), [&](const Item& item) {
      return item.id == id && item.answer == Answer::kFail;
    });
  };
  note += fmt::format("Candidate: {}\n", rule.name);
  note += fmt::format("Path: {}\n", path);
  note += fmt::format("Rationale:\n- {}\n", rule.title);
  if (!rule.saves.empty()) note += fmt::format("- saves {}\n", rule.saves);
  const bool valid =
      !fails("structure") && !fails("one_change") && !fails("contradiction");
  note += fmt::format("Graph validation: {}", valid ? "pass" : "fail");
  if (facts.own != nullptr) note += " - " + facts.own->name;
  if (!changes.empty()) note += ": " + changes;
  note += "\n";
  note += fmt::format("Summary logs: {} before, {} after\n",
                      SaidOf(facts.log_before), SaidOf(facts.log_after));
  for (const Item& item : items) {
    if (item.id == "tested") note += fmt::format("Tests: {}\n", item.evidence);
  }
  note += "Open risks:\n";
  bool any = false;
  for (const Item& item : items) {
    if (item.answer == Answer::kPass) continue;
    any = true;
    note += fmt::format("- {}: {} ({})\n", item.question, Name(item.answer),
                        item.evidence);
  }
  for (const std::string& guard : rule.HiddenGuards()) {
    any = true;
    note += fmt::format("- guard {} does not show in a dump\n", guard);
  }
  if (!any) note += "- none known\n";
  note += "Next, in this order: dumps, unit tests, integration or accuracy.\n";
  return note;
}

}  // namespace lamina::fusion
