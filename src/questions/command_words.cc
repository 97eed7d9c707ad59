// SPDX-License-Identifier: Apache-2.0
#include "questions/command_words.h"

#include <algorithm>

namespace lamina::questions {
namespace {

// What does not change the tables.
constexpr std::string_view kNoMatter[] = {
    "--format",   "--output",          "--only",     "--threads",
    "--timing",   "--html-max-mb",     "--roofline", "--pictures",
    "--perfetto", "--html-max-events", "--engine",   "--partials",
    "--shard",    "--fail-above",      "--unknown",  "--render",
    "--help",     "--verbose",         "--redact",   "--full",
};

}  // namespace

CommandWords::CommandWords(const GivenWords& words) : command_(words.command) {
  for (const std::string& input : words.inputs) {
    // A name that begins with "-" would be taken for an option.
    const bool file = input.size() > 1 && input.starts_with('-');
    inputs_.push_back(file ? "./" + input : input);
  }
  for (const GivenOption& option : words.options) {
    if (std::find(std::begin(kNoMatter), std::end(kNoMatter), option.name) ==
        std::end(kNoMatter))
      options_.push_back(option);
  }
}

void CommandWords::Append(const GivenOption& option,
                          std::vector<std::string>& words) {
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

std::vector<std::string> CommandWords::Words() const {
  std::vector<std::string> words = command_;
  // Inputs first: some options take all words that follow.
  words.insert(words.end(), inputs_.begin(), inputs_.end());
  for (const GivenOption& option : options_) Append(option, words);
  return words;
}

std::vector<std::string> CommandWords::WordsFor(
    std::string_view command, std::span<const std::string_view> options) const {
  std::vector<std::string> words = {std::string(command)};
  words.insert(words.end(), inputs_.begin(), inputs_.end());
  for (const GivenOption& option : options_) {
    if (std::find(options.begin(), options.end(), option.name) != options.end())
      Append(option, words);
  }
  return words;
}

bool CommandWords::ReadsStdin() const {
  return std::find(inputs_.begin(), inputs_.end(), "-") != inputs_.end();
}

}  // namespace lamina::questions
