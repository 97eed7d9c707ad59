// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of what commands take (questions/description.h) as a command
// line. CLI11 reads it; only arguments.cc includes CLI11, whose header alone
// costs seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "questions/command_words.h"
#include "questions/description.h"

namespace CLI {
class App;
}  // namespace CLI

namespace lamina::cli {

// The program on a command line, or a command of it.
class Place {
 public:
  explicit Place(CLI::App& app) : app_(&app) {}

  // A command with what it takes as its inputs and options. `chosen` is called
  // when the line names it, and the fields of the description are set then; the
  // caller keeps it. A vector takes all words that follow, unless OneWord() or
  // Count() say otherwise.
  Place Command(const std::string& name, const std::string& summary,
                const std::string& example, questions::Description& takes,
                const std::function<void()>& chosen);
  // A command of this one must be named.
  void RequireCommand();

 private:
  CLI::App* app_;
};

// What --help says, for manual pages and completions.
struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; of an input its name
  std::string value;               // what it takes, "TEXT"; empty: a flag
  std::string doc;
  std::vector<std::string> choices;  // all values, if they are few
  // What shells offer where there are other values, too.
  std::vector<std::string> offered = {};
  std::string default_text;
  std::optional<double> low, high;  // of a number
  bool positional = false;
  bool required = false;
  bool many = false;
};
struct DescribedCommand {
  std::string name;  // "graph census"; of the program empty
  std::string summary;
  std::string example;
  std::vector<DescribedOption> options;
  std::vector<DescribedCommand> commands;
};

// The whole line.
class CommandLine {
 public:
  CommandLine(const std::string& description, const std::string& version);
  ~CommandLine();
  Place root();
  // `words` are those behind the name of the program. The exit status where the
  // program ends here: --help, or a line that is wrong, of which stderr says
  // what.
  std::optional<int> Parse(std::vector<std::string> words);
  // The same without a word on stderr. Errors: kUsage, also for --help.
  Status Read(std::vector<std::string> words);
  std::string Help() const;
  questions::GivenWords Given() const;
  DescribedCommand Describe() const;

 private:
  struct Refused {
    std::string what;
    const CLI::App* command;
  };
  // The exit status of --help, which is printed if asked for, or nothing.
  tl::expected<std::optional<int>, Refused> TryParse(
      std::vector<std::string> words, bool print);
  // The command that `words` name, and how many of them do.
  CLI::App* CommandOf(const std::vector<std::string>& words,
                      size_t* used) const;

  std::unique_ptr<CLI::App> app_;
};

}  // namespace lamina::cli
