// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::cli {
namespace {

std::string Range(int64_t low, int64_t high) {
  return fmt::format("[{} - {}]", low, high);
}

std::string Range(double low, double high) {
  return fmt::format("[{} - {}]", low, high);
}

// Options that do not go together.
struct Wrong {
  std::string what;
};

int Refuse(const std::string& what, int argc, char** argv) {
  constexpr int kUsage = 2;
  std::fprintf(stderr, "lamina: error: %s; see lamina%s%s --help\n",
               EscapeTerminal(what).c_str(), argc > 1 ? " " : "",
               argc > 1 ? EscapeTerminal(argv[1]).c_str() : "");
  return kUsage;
}

// The values behind "TEXT:{a,b}" in the name of an option's type.
std::vector<std::string> ChoicesOf(const std::string& type) {
  std::vector<std::string> choices;
  const size_t open = type.find(":{");
  if (open == std::string::npos || type.back() != '}') return choices;
  size_t at = open + 2;
  while (at < type.size()) {
    const size_t end = type.find_first_of(",}", at);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

DescribedCommand DescriptionOf(const CLI::App& app, const std::string& name) {
  DescribedCommand command;
  command.name = name;
  command.summary = app.get_description();
  command.example = app.get_footer();
  constexpr std::string_view kHead = "Example:\n  ";
  if (command.example.rfind(kHead, 0) == 0)
    command.example.erase(0, kHead.size());
  for (const CLI::Option* option : app.get_options()) {
    DescribedOption own;
    own.positional = option->get_positional() && !option->nonpositional();
    if (own.positional) {
      own.names.push_back(option->get_name(true));
    } else {
      for (const std::string& s : option->get_snames())
        own.names.push_back("-" + s);
      for (const std::string& l : option->get_lnames())
        own.names.push_back("--" + l);
    }
    if (option->get_items_expected_max() > 0) {
      const std::string type = option->get_type_name();
      own.value = type.substr(0, type.find(':'));
      own.choices = ChoicesOf(type);
    }
    own.doc = option->get_description();
    own.default_text = option->get_default_str();
    own.required = option->get_required();
    own.many = option->get_items_expected_max() > 1;
    command.options.push_back(std::move(own));
  }
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App*) { return true; }))
    command.commands.push_back(DescriptionOf(
        *sub, name.empty() ? sub->get_name() : name + " " + sub->get_name()));
  return command;
}

}  // namespace

Argument& Argument::Required() {
  option_->required();
  return *this;
}

Argument& Argument::OneOf(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

// CLI11's own range lets "nan" through, and "-1" as a very large number.
Argument& Argument::Whole(int64_t low, int64_t high) {
  option_->check(
      [low, high](const std::string& text) {
        const auto number = ParseInt(text);
        if (number && *number >= low && *number <= high) return std::string();
        return fmt::format("expected a whole number from {} to {}, got {}", low,
                           high, text);
      },
      Range(low, high));
  return *this;
}

Argument& Argument::Within(double low, double high) {
  option_->check(
      [low, high](const std::string& text) {
        const auto number = ParseDouble(text);
        if (number && *number >= low && *number <= high) return std::string();
        return fmt::format("expected a number from {} to {}, got {}", low, high,
                           text);
      },
      Range(low, high));
  return *this;
}

Argument& Argument::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Argument& Argument::SplitAtCommas() {
  option_->delimiter(',');
  return *this;
}

Argument& Argument::OneWord() {
  option_->allow_extra_args(false);
  return *this;
}

Argument& Argument::Count(int min, int max) {
  option_->expected(min, max);
  return *this;
}

Argument& Argument::ValueName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

template <class T>
Argument Arguments::Add(const std::string& names, T& value,
                        const std::string& doc) {
  return Argument(app_->add_option(names, value, doc));
}

template Argument Arguments::Add(const std::string&, std::string&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, std::vector<std::string>&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, int&, const std::string&);
template Argument Arguments::Add(const std::string&, int64_t&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, uint32_t&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, uint64_t&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, double&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, std::optional<int64_t>&,
                                 const std::string&);
template Argument Arguments::Add(const std::string&, std::optional<uint32_t>&,
                                 const std::string&);

void Arguments::Flag(const std::string& names, bool& value,
                     const std::string& doc) {
  app_->add_flag(names, value, doc);
}

void Arguments::Check(const std::function<std::string()>& check) {
  app_->parse_complete_callback([check] {
    const std::string wrong = check();
    if (!wrong.empty()) throw Wrong{wrong};
  });
}

Arguments Arguments::Command(const std::string& name,
                             const std::string& summary,
                             const std::string& example,
                             const std::function<void()>& chosen) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->footer("Example:\n  " + example);
  command->callback(chosen);
  return Arguments(*command);
}

void Arguments::RequireCommand() { app_->require_subcommand(1); }

CommandLine::CommandLine(const std::string& description,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, "lamina")) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Arguments CommandLine::root() { return Arguments(*app_); }

std::string CommandLine::Help() const { return app_->help(); }

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const Wrong& wrong) {
    return Refuse(wrong.what, argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app_->exit(e);  // --help, --version
    return Refuse(e.what(), argc, argv);
  }
  return std::nullopt;
}

DescribedCommand CommandLine::Describe() const {
  return DescriptionOf(*app_, "");
}

GivenWords CommandLine::Given() const {
  GivenWords given;
  const CLI::App* command = app_.get();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    given.command.push_back(command->get_name());
  }
  for (const CLI::Option* option : command->get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional() && !option->nonpositional()) {
      for (const std::string& value : option->results())
        given.inputs.push_back(value);
      continue;
    }
    GivenOption words{option->get_lnames().empty()
                          ? "-" + option->get_snames().front()
                          : "--" + option->get_lnames().front(),
                      {}};
    if (option->get_items_expected_max() > 0) words.values = option->results();
    given.options.push_back(std::move(words));
  }
  return given;
}

}  // namespace lamina::cli
