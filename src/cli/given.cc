// SPDX-License-Identifier: Apache-2.0
#include "cli/given.h"

#include <algorithm>

namespace lamina::cli {
namespace {

// What does not change the tables.
constexpr std::string_view kNoMatter[] = {
    "--format",   "--output",          "--only",     "--threads",
    "--timing",   "--html-max-mb",     "--roofline", "--pictures",
    "--perfetto", "--html-max-events", "--engine",   "--partials",
    "--shard",    "--fail-above",      "--measure",  "--render",
    "--help",     "--verbose",         "--redact",
};

}  // namespace

Given::Given(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    command_.push_back(command->get_name());
  }
  for (const CLI::Option* option : command->get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional() && option->nonpositional() == false) {
      for (const std::string& value : option->results()) {
        // A name that begins with "-" would be taken for an option.
        const bool file = value.size() > 1 && value.starts_with('-');
        inputs_.push_back(file ? "./" + value : value);
      }
      continue;
    }
    const std::string name = option->get_lnames().empty()
                                 ? "-" + option->get_snames().front()
                                 : "--" + option->get_lnames().front();
    if (std::find(std::begin(kNoMatter), std::end(kNoMatter), name) !=
        std::end(kNoMatter))
      continue;
    Option given{name, {}};
    if (option->get_items_expected_max() > 0) given.values = option->results();
    options_.push_back(std::move(given));
  }
}

void Given::Append(const Option& option, std::vector<std::string>& words) {
  if (option.values.empty()) words.push_back(option.name);
  for (const std::string& value : option.values) {
    if (value.starts_with('-')) {
      words.push_back(option.name + "=" + value);
    } else {
      words.push_back(option.name);
      words.push_back(value);
    }
  }
}

std::vector<std::string> Given::Words() const {
  std::vector<std::string> words = command_;
  // Inputs first: some options take all words that follow.
  words.insert(words.end(), inputs_.begin(), inputs_.end());
  for (const Option& option : options_) Append(option, words);
  return words;
}

std::vector<std::string> Given::WordsFor(
    std::string_view command, std::span<const std::string_view> options) const {
  std::vector<std::string> words = {std::string(command)};
  words.insert(words.end(), inputs_.begin(), inputs_.end());
  for (const Option& option : options_) {
    if (std::find(options.begin(), options.end(), option.name) != options.end())
      Append(option, words);
  }
  return words;
}

bool Given::ReadsStdin() const {
  return std::find(inputs_.begin(), inputs_.end(), "-") != inputs_.end();
}

}  // namespace lamina::cli
