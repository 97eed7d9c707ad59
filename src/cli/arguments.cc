// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "report/table/summary.h"
#include "rules/document.h"

namespace lamina::cli {
namespace {

using questions::Group;

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

constexpr const char* kGroups[] = {"Input",       "Analysis", "Output",
                                   "Report page", "General",  ""};

// The group that an option of this name belongs to in every command.
Group GroupOf(std::string_view names) {
  static constexpr std::string_view kInput[] = {"--capture",
                                                "--from,--capture",
                                                "--dump",
                                                "--section",
                                                "--dialect",
                                                "--log",
                                                "--config",
                                                "--overlay",
                                                "--tree",
                                                "--trace",
                                                "--kernel-annotations",
                                                "--partials",
                                                "--shard",
                                                "--engine",
                                                "--dumps",
                                                "--device",
                                                "--bind",
                                                "--raw-clocks",
                                                "--link"};
  static constexpr std::string_view kOutput[] = {
      "--format",   "-o,--output",   "--top",      "--only",      "--roofline",
      "--perfetto", "--pictures",    "--layout",   "--render",    "--note",
      "--template", "-d,--dump-dir", "--dump-all", "--hide-views"};
  static constexpr std::string_view kPage[] = {"--html-max-mb",
                                               "--html-max-events", "--redact"};
  static constexpr std::string_view kGeneral[] = {"--threads", "--rules",
                                                  "--timing", "--no-cache"};
  const auto is_in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), names) != std::end(list);
  };
  return is_in(kInput)     ? Group::kInput
         : is_in(kOutput)  ? Group::kOutput
         : is_in(kPage)    ? Group::kPage
         : is_in(kGeneral) ? Group::kGeneral
                           : Group::kAnalysis;
}

// Whether an option takes every word that follows it.
bool TakesAll(const CLI::Option& option) {
  return option.nonpositional() && option.get_allow_extra_args() &&
         option.get_items_expected_max() >=
             CLI::detail::expected_max_vector_size;
}

// The values behind "TEXT:{a,b}" in the name of an option's type.
std::vector<std::string> ChoicesOf(const std::string& type);

// The group that a command belongs to in --help of the program.
std::string_view CommandGroupOf(std::string_view command) {
  static constexpr std::pair<std::string_view, std::string_view> kGroupsOf[] = {
      {"diff", "Several traces"},
      {"ranks", "Several traces"},
      {"merge", "Several traces"},
      {"runs", "Several traces"},
      {"graph", "Dumps and memory snapshots"},
      {"memory", "Dumps and memory snapshots"},
      {"serve", "Browser and agents"},
      {"mcp", "Browser and agents"},
      {"cost", "What lamina knows"},
      {"list", "What lamina knows"},
      {"cache", "What lamina knows"}};
  for (const auto& [name, group] : kGroupsOf) {
    if (name == command) return group;
  }
  return "A trace";
}

// --help in 80 columns: the groups in one order, and a word about options that
// take what was meant as an input.
class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const bool program = app->get_parent() == nullptr;
    std::string out = make_description(app) +
                      (program ? std::string(kUsage) : make_usage(app, name)) +
                      make_positionals(app);
    if (program) out += make_subcommands(app, mode);
    for (const char* group : kGroups) {
      const auto options = app->get_options([&](const CLI::Option* option) {
        return option->nonpositional() && option->get_group() == group;
      });
      if (*group != 0 && !options.empty())
        out += make_group(group, false, options);
    }
    if (!program) out += make_subcommands(app, mode);
    return out + "\n" + make_footer(app);
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    return Item(sub->get_name(), sub->get_description(), 14);
  }
  std::string make_option(const CLI::Option* option,
                          bool positional) const override {
    const std::string type = option->get_type_name();
    std::string name = make_option_name(option, positional);
    std::string doc = option->get_description();
    if (option->get_items_expected_max() > 0 && !positional)
      name += " " + type.substr(0, type.find(':'));
    if (positional && option->get_items_expected_max() > 1) name += " ...";
    if (const auto choices = ChoicesOf(type); !choices.empty())
      doc += fmt::format(" (one of {})", fmt::join(choices, ", "));
    if (!option->get_default_str().empty() && !type.empty())
      doc += fmt::format(" (default: {})", option->get_default_str());
    if (TakesAll(*option))
      doc += "; takes all words that follow, so give inputs first";
    return Item(name, doc, 26);
  }

 private:
  static constexpr std::string_view kUsage =
      "\nUsage: lamina TRACE                one screen: what to change, and "
      "why\n"
      "       lamina COMMAND [OPTIONS]    lamina COMMAND --help says more\n\n"
      "Examples:\n"
      "  lamina trace.json.gz\n"
      "  lamina report trace.json.gz --full\n"
      "  lamina diagnose trace.json.gz\n"
      "  lamina diff before.json.gz after.json.gz\n"
      "  lamina ranks traces/\n";

  // A name, and what it means in a column of its own.
  static std::string Item(const std::string& name, const std::string& doc,
                          size_t column) {
    constexpr size_t kWidth = 80;
    std::string out = "  " + name;
    if (out.size() + 2 > column) {
      out += '\n';
      out.append(column, ' ');
    } else {
      out.append(column - out.size(), ' ');
    }
    const std::string text =
        report::table::Wrap(doc, static_cast<int>(kWidth - column), 0);
    for (const char c : text) {
      out += c;
      if (c == '\n') out.append(column, ' ');
    }
    return out + "\n";
  }
};

std::string CommandName(const CLI::App& app) {
  return app.get_parent() == nullptr
             ? app.get_name()
             : CommandName(*app.get_parent()) + " " + app.get_name();
}

int Refuse(const std::string& what, const CLI::App& command) {
  constexpr int kUsage = 2;
  std::fprintf(stderr, "lamina: error: %s; see %s --help\n",
               EscapeTerminal(what).c_str(), CommandName(command).c_str());
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

// The numbers of "INT:[0 - 3]" in the name of an option's type.
std::pair<std::optional<double>, std::optional<double>> RangeOf(
    const std::string& type) {
  const size_t open = type.find(":[");
  const size_t dash = type.find(" - ", open);
  if (open == std::string::npos || dash == std::string::npos ||
      type.back() != ']')
    return {};
  return {ParseDouble(type.substr(open + 2, dash - open - 2)),
          ParseDouble(type.substr(dash + 3, type.size() - dash - 4))};
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
    // What is not for people has no group.
    if (!own.positional && option->get_group().empty()) continue;
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
      std::tie(own.low, own.high) = RangeOf(type);
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

// "--format" of "--format=json"; empty: the word is no option.
std::string_view OptionName(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return {};
  return word.starts_with("--") ? word.substr(0, word.find('='))
                                : word.substr(0, 2);
}

const CLI::Option* FindOption(const CLI::App& app, std::string_view word) {
  const std::string_view name = OptionName(word);
  return name.empty() ? nullptr : app.get_option_no_throw(std::string(name));
}

// What was not expected, in the order in which it was given, with the nearest
// option that there is.
std::string Unexpected(const CLI::App& command, const CLI::App& root) {
  const std::vector<std::string> words = root.remaining(true);
  std::string what = words.size() > 1
                         ? "The following arguments were not expected:"
                         : "The following argument was not expected:";
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string advice;
  for (const std::string& word : words) {
    what += " " + word;
    if (!advice.empty() || !word.starts_with("--")) continue;
    const std::string_view near = rules::Nearest(OptionName(word), known);
    if (!near.empty()) advice = "; did you mean '" + std::string(near) + "'?";
  }
  return what + advice;
}

// An input is missing: an option may have taken it.
std::string Missing(const std::string& what, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || !TakesAll(*option)) continue;
    return what + "; " + option->get_name(false, false) +
           " took all words that follow it, so give the input first";
  }
  return what;
}

// "--only a b" as "--only a,b": b is no option and no file, and enough words
// are left for the inputs.
void JoinTableNames(const CLI::App& command, size_t first,
                    std::vector<std::string>& words) {
  const auto plain = [&](size_t i) {
    return i < words.size() && words[i] != "--" && OptionName(words[i]).empty();
  };
  const auto names_table = [](const std::string& word) {
    std::error_code error;
    return !word.empty() && !std::filesystem::exists(word, error) &&
           std::all_of(word.begin(), word.end(), [](char c) {
             return (IsWordCharacter(c) && LowerCase(c) == c) || c == ',';
           });
  };
  // The words that no option takes, and how many the inputs need.
  int free = 0, needed = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional() && option->get_required())
      needed += std::max(option->get_items_expected_min(), 1);
  }
  for (size_t i = first; i < words.size(); ++i) {
    if (words[i] == "--") return;
    const CLI::Option* option = FindOption(command, words[i]);
    if (option == nullptr) {
      free += OptionName(words[i]).empty() ? 1 : 0;
    } else if (words[i].find('=') == std::string::npos) {
      if (TakesAll(*option)) {
        while (plain(i + 1)) ++i;
      } else {
        i += static_cast<size_t>(option->get_items_expected_min());
      }
    }
  }
  for (size_t i = first; i + 1 < words.size(); ++i) {
    if (words[i] != "--only") continue;
    while (plain(i + 2) && free > needed && names_table(words[i + 2])) {
      words[i + 1] += "," + words[i + 2];
      words.erase(words.begin() + static_cast<ptrdiff_t>(i) + 2);
      --free;
    }
  }
}

// CLI11's own range lets "nan" through, and "-1" as a very large number.
void CheckWhole(CLI::Option& option, int64_t low, int64_t high) {
  option.check(
      [low, high](const std::string& text) {
        const auto number = ParseInt(text);
        if (number && *number >= low && *number <= high) return std::string();
        return fmt::format("expected a whole number from {} to {}, got {}", low,
                           high, text);
      },
      Range(low, high));
}

void CheckNumber(CLI::Option& option, double low, double high) {
  option.check(
      [low, high](const std::string& text) {
        const auto number = ParseDouble(text);
        if (number && *number >= low && *number <= high) return std::string();
        return fmt::format("expected a number from {} to {}, got {}", low, high,
                           text);
      },
      Range(low, high));
}

const CLI::Option* AddOption(CLI::App& app, const questions::Param& param,
                             const NamesOf& names) {
  const std::string doc = WithNames(param.doc, names);
  CLI::Option* const option = std::visit(
      [&](auto* field) {
        if constexpr (std::is_same_v<decltype(field), bool*>)
          return app.add_flag(param.option, *field, doc);
        else
          return app.add_option(param.option, *field, doc);
      },
      param.field);
  const Group group = param.group.value_or(GroupOf(param.option));
  option->group(kGroups[static_cast<size_t>(group)]);
  option->required(param.required);
  if (!param.choices.empty()) option->check(CLI::IsMember(param.choices));
  if (param.low_whole) {
    CheckWhole(*option, *param.low_whole, *param.high_whole);
  } else if (param.low) {
    CheckNumber(*option, *param.low, *param.high);
  }
  if (param.shows_default) option->capture_default_str();
  if (param.split_at_commas) option->delimiter(',');
  if (param.one_word) option->allow_extra_args(false);
  if (param.count) option->expected(param.count->first, param.count->second);
  if (!param.value_name.empty()) option->type_name(param.value_name);
  return option;
}

}  // namespace

Place Place::Command(const std::string& name, const std::string& summary,
                     const std::string& example, questions::Description& takes,
                     const std::function<void()>& chosen) {
  CLI::App* command = app_->add_subcommand(name, summary);
  command->footer("Example:\n  " + example);
  command->callback(chosen);
  command->get_help_ptr()->group("General");
  command->group(app_->get_parent() == nullptr
                     ? std::string(CommandGroupOf(name))
                     : std::string("Subcommands"));
  std::vector<std::pair<questions::Param*, const CLI::Option*>> added;
  for (questions::Param& param : takes.params())
    added.emplace_back(&param, AddOption(*command, param, takes.Options()));
  if (takes.has_checks()) {
    command->parse_complete_callback([&takes, added] {
      for (const auto& [param, option] : added)
        param->given = option->count() > 0;
      const std::string wrong = takes.FailedCheck();
      if (!wrong.empty()) throw Wrong{WithNames(wrong, takes.Options())};
    });
  }
  return Place(*command);
}

void Place::RequireCommand() { app_->require_subcommand(1); }

CommandLine::CommandLine(const std::string& description,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, "lamina")) {
  app_->formatter(std::make_shared<cli::Help>());
  app_->set_version_flag("-V,--version", version, "Print the version");
  app_->get_version_ptr()->group("General");
  app_->get_help_ptr()->group("General");
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Place CommandLine::root() { return Place(*app_); }

std::string CommandLine::Help() const { return app_->help(); }

CLI::App* CommandLine::CommandOf(const std::vector<std::string>& words,
                                 size_t* used) const {
  CLI::App* command = app_.get();
  for (*used = 0; *used < words.size(); ++*used) {
    CLI::App* sub = nullptr;
    for (CLI::App* candidate : command->get_subcommands({})) {
      if (candidate->get_name() == words[*used]) sub = candidate;
    }
    if (sub == nullptr) break;
    command = sub;
  }
  return command;
}

tl::expected<std::optional<int>, CommandLine::Refused> CommandLine::TryParse(
    std::vector<std::string> words, bool print) {
  size_t used = 0;
  const CLI::App& command = *CommandOf(words, &used);
  const auto refuse = [&](std::string what) {
    return tl::make_unexpected(Refused{std::move(what), &command});
  };
  JoinTableNames(command, used, words);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app_->parse(std::move(words));
  } catch (const Wrong& wrong) {
    return refuse(wrong.what);
  } catch (const CLI::ExtrasError&) {
    return refuse(Unexpected(command, *app_));
  } catch (const CLI::RequiredError& e) {
    return refuse(Missing(e.what(), command));
  } catch (const CLI::ParseError& e) {
    // --help, --version
    if (e.get_exit_code() == 0 && print) return app_->exit(e);
    return refuse(e.what());
  }
  return std::nullopt;
}

std::optional<int> CommandLine::Parse(std::vector<std::string> words) {
  // "help CMD" is "CMD --help".
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const auto parsed = TryParse(std::move(words), true);
  if (parsed) return *parsed;
  return Refuse(parsed.error().what, *parsed.error().command);
}

Status CommandLine::Read(std::vector<std::string> words) {
  const auto parsed = TryParse(std::move(words), false);
  if (parsed) return {};
  return Fail(
      UsageError(parsed.error().what,
                 "see " + CommandName(*parsed.error().command) + " --help"));
}

DescribedCommand CommandLine::Describe() const {
  return DescriptionOf(*app_, "");
}

questions::GivenWords CommandLine::Given() const {
  questions::GivenWords given;
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
    questions::GivenOption words{option->get_lnames().empty()
                                     ? "-" + option->get_snames().front()
                                     : "--" + option->get_lnames().front(),
                                 {}};
    if (option->get_items_expected_max() > 0) words.values = option->results();
    given.options.push_back(std::move(words));
  }
  return given;
}

}  // namespace lamina::cli
