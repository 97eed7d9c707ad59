// SPDX-License-Identifier: Apache-2.0
#include "cli/host.h"

#include <algorithm>

#include "cli/commands.h"

namespace lamina::cli {
namespace {

const CommandInfo* FindCommand(std::string_view name) {
  for (const CommandInfo& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

}  // namespace

Result<Document> RunInHost(const std::vector<std::string>& words,
                           const Host& host) {
  const CommandInfo* const command = FindCommand(words.front());
  LAMINA_CHECK(command != nullptr);
  Document document;
  Host taking = host;
  taking.take = [&](Document made) { document = std::move(made); };
  CommandLine line("", "");
  Common common;
  common.format = kAsDocument;
  common.host = &taking;
  Run run;
  AddCommand(line, *command, common, run);
  LAMINA_TRY(line.Read(words));
  LAMINA_CHECK(run != nullptr);
  common.given = Given(line.Given());
  LAMINA_TRY(run().map([](int) {}));
  return document;
}

DescribedCommand DescribeCommand(const std::vector<std::string>& words) {
  CommandLine line("", "");
  Common common;
  Run run;
  AddCommand(line, *FindCommand(words.front()), common, run);
  DescribedCommand found = line.Describe();
  std::string name;
  for (const std::string& word : words) {
    name += (name.empty() ? "" : " ") + word;
    const auto sub = std::find_if(
        found.commands.begin(), found.commands.end(),
        [&](const DescribedCommand& one) { return one.name == name; });
    LAMINA_CHECK(sub != found.commands.end());
    DescribedCommand next = *sub;
    found = std::move(next);
  }
  return found;
}

}  // namespace lamina::cli
