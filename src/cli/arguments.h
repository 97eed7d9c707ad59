// SPDX-License-Identifier: Apache-2.0
//
// The command line, as commands describe it. CLI11 reads it; only
// arguments.cc includes CLI11, whose header alone costs seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lamina::cli {

// Under which heading --help lists an option.
enum class Group { kInput, kAnalysis, kOutput, kPage, kGeneral, kHidden };

// What an option or input may be, to be said right where it is added.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& Required();
  Argument& OneOf(const std::vector<std::string>& values);
  // Whole numbers, or numbers, from `low` to `high`; no "nan", and "-1" is
  // no very large number.
  Argument& Whole(int64_t low, int64_t high);
  Argument& Within(double low, double high);
  // --help says the value that the variable has now.
  Argument& ShowDefault();
  // "a,b" is two values.
  Argument& SplitAtCommas();
  // Takes one word each time it is given, so that an input may follow.
  Argument& OneWord();
  // Takes so many words.
  Argument& Count(int min, int max);
  // What --help calls the value.
  Argument& ValueName(const std::string& name);
  // Another group than the one that the option's name stands for.
  Argument& In(Group group);
  // Once the line is parsed: whether it has this option.
  bool given() const;

 private:
  CLI::Option* option_;
};

// The arguments of one command, and its sub-commands.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  // `names` is "--long", "-s,--long" or, of an input, its name. `value` is
  // written when the line is parsed and holds the default before; it is text,
  // a number, or an optional or a vector of those. A vector takes all words
  // that follow, unless OneWord() or Count() say otherwise.
  template <class T>
  Argument Add(const std::string& names, T& value, const std::string& doc);
  Argument Flag(const std::string& names, bool& value, const std::string& doc);
  // Called when the line has been parsed; returns what is wrong with the
  // options together, or nothing.
  void Check(const std::function<std::string()>& check);
  // `chosen` is called when the line names this sub-command.
  Arguments Command(const std::string& name, const std::string& summary,
                    const std::string& example,
                    const std::function<void()>& chosen);
  void RequireCommand();

 private:
  CLI::App* app_;
};

// What was given on the command line, in words.
struct GivenOption {
  std::string name;                 // "--device"
  std::vector<std::string> values;  // none: a flag
};
struct GivenWords {
  std::vector<std::string> command;  // "graph", "census"
  std::vector<std::string> inputs;
  std::vector<GivenOption> options;
};

// What --help says, for manual pages and completions.
struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; of an input its name
  std::string value;               // what it takes, "TEXT"; empty: a flag
  std::string doc;
  std::vector<std::string> choices;  // all values, if they are few
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
  Arguments root();
  // `words` are those behind the name of the program. The exit status where the
  // program ends here: --help, or a line that is wrong, of which stderr says
  // what.
  std::optional<int> Parse(std::vector<std::string> words);
  // The same without a word on stderr. Errors: kUsage, also for --help.
  Status Read(std::vector<std::string> words);
  std::string Help() const;
  GivenWords Given() const;
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
