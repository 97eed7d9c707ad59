// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: three shells, each of which quotes in its own way.

#include "cli/manual.h"

#include <absl/strings/str_replace.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/core.h>
#include <fmt/format.h>
#include <string_view>

#include "base/byte_sink.h"
#include "report/table/summary.h"

namespace lamina::cli {

namespace {

void Flatten(const DescribedCommand& command,
             std::vector<const DescribedCommand*>& all) {
  all.push_back(&command);
  for (const DescribedCommand& sub : command.commands) Flatten(sub, all);
}

std::string_view LastWord(std::string_view name) {
  return name.substr(name.rfind(' ') + 1);
}

// In single quotes of a POSIX shell.
std::string Quoted(const std::string& text) {
  return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

std::string Bash(const std::vector<const DescribedCommand*>& all) {
  std::string words, values;
  for (const DescribedCommand* command : all) {
    std::vector<std::string> own;
    for (const DescribedCommand& sub : command->commands)
      own.emplace_back(LastWord(sub.name));
    for (const DescribedOption& option : command->options) {
      if (option.positional) continue;
      own.insert(own.end(), option.names.begin(), option.names.end());
      const auto& offered =
          option.choices.empty() ? option.offered : option.choices;
      if (offered.empty()) continue;
      for (const std::string& name : option.names)
        values += fmt::format(
            "    {}) words={} ;;\n", Quoted(command->name + ":" + name),
            Quoted(fmt::format("{}", fmt::join(offered, " "))));
    }
    words += fmt::format("    {}) words={} ;;\n", Quoted(command->name),
                         Quoted(fmt::format("{}", fmt::join(own, " "))));
  }
  return fmt::format(
      R"(# bash completion of lamina
_lamina() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command= words= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
{}      *) break ;;
    esac
  done
  case "$command:$previous" in
{}  esac
  if [ -z "$words" ]; then
    case "$command" in
{}    esac
    [[ $current == -* || -z $command || $command == graph ]] || words=
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ -n "${{COMPREPLY[*]}}" ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _lamina lamina
)",
      [&] {
        std::string steps;
        for (const DescribedCommand* command : all) {
          if (command->name.empty()) continue;
          const size_t cut = command->name.rfind(' ');
          const std::string parent =
              cut == std::string::npos ? "" : command->name.substr(0, cut);
          steps += fmt::format(
              "      {}) command={} ;;\n",
              Quoted(parent + " " + std::string(LastWord(command->name))),
              Quoted(command->name));
        }
        return steps;
      }(),
      values, words);
}

// In an _arguments specification.
std::string ZshText(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"\\", "\\\\"}, {":", "\\:"}, {"[", "\\["}, {"]", "\\]"}});
}

void ZshFunction(const DescribedCommand& command, std::string& out) {
  const std::string function =
      absl::StrReplaceAll("_" + PageName(command), {{"-", "_"}});
  out += function + "() {\n  _arguments -s";
  for (const DescribedOption& option : command.options) {
    if (option.positional) continue;
    for (const std::string& name : option.names) {
      std::string spec = name + "[" + ZshText(option.doc) + "]";
      if (!option.value.empty()) {
        spec += ":" + ZshText(option.value) + ":";
        const auto& offered =
            option.choices.empty() ? option.offered : option.choices;
        spec += offered.empty() ? "_files"
                                : fmt::format("({})", fmt::join(offered, " "));
      }
      out += " \\\n    " + Quoted(spec);
    }
  }
  if (command.commands.empty()) {
    out += " \\\n    '*:file:_files'\n}\n";
    return;
  }
  out += " \\\n    '1:command:(";
  for (const DescribedCommand& sub : command.commands)
    out += std::string(LastWord(sub.name)) + " ";
  out +=
      ")' \\\n    '*::argument:->rest'\n  case $state in\n  rest)\n"
      "    case $words[1] in\n";
  for (const DescribedCommand& sub : command.commands)
    out += fmt::format("    {}) {} ;;\n", LastWord(sub.name),
                       absl::StrReplaceAll("_" + PageName(sub), {{"-", "_"}}));
  out += "    esac ;;\n  esac\n}\n";
  for (const DescribedCommand& sub : command.commands) ZshFunction(sub, out);
}

std::string Fish(const std::vector<const DescribedCommand*>& all) {
  // fish knows \' and \\ in single quotes.
  const auto quoted = [](const std::string& text) {
    return "'" + absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}) +
           "'";
  };
  std::string out = "# fish completion of lamina\n";
  for (const DescribedCommand* command : all) {
    std::string seen;
    std::string rest = command->name;
    while (!rest.empty()) {
      const size_t cut = rest.find(' ');
      seen += (seen.empty() ? "" : "; and ") +
              ("__fish_seen_subcommand_from " + rest.substr(0, cut));
      rest = cut == std::string::npos ? "" : rest.substr(cut + 1);
    }
    if (!command->commands.empty()) {
      std::string none = "not __fish_seen_subcommand_from";
      for (const DescribedCommand& sub : command->commands)
        none += " " + std::string(LastWord(sub.name));
      const std::string when = seen.empty() ? none : seen + "; and " + none;
      for (const DescribedCommand& sub : command->commands)
        out +=
            fmt::format("complete -c lamina -f -n {} -a {} -d {}\n",
                        quoted(when), LastWord(sub.name), quoted(sub.summary));
    }
    for (const DescribedOption& option : command->options) {
      if (option.positional) continue;
      out += "complete -c lamina";
      if (!seen.empty()) out += " -n " + quoted(seen);
      for (const std::string& name : option.names)
        out += name.rfind("--", 0) == 0 ? " -l " + name.substr(2)
                                        : " -s " + name.substr(1);
      const auto& offered =
          option.choices.empty() ? option.offered : option.choices;
      if (!offered.empty()) {
        out += (option.choices.empty() ? " -r -a " : " -x -a ") +
               quoted(fmt::format("{}", fmt::join(offered, " ")));
      } else if (!option.value.empty()) {
        out += " -r";
      }
      out += " -d " + quoted(option.doc) + "\n";
    }
  }
  return out;
}

void ManPages(const DescribedCommand& command, const std::string& version,
              std::vector<ManualFile>& out) {
  out.push_back({"share/man/man1/" + PageName(command) + ".1",
                 RoffPage(command, version)});
  for (const DescribedCommand& sub : command.commands)
    ManPages(sub, version, out);
}

}  // namespace

std::vector<ManualFile> Manual(const DescribedCommand& program,
                               const std::string& version) {
  std::vector<ManualFile> files;
  ManPages(program, version, files);
  std::vector<const DescribedCommand*> all;
  Flatten(program, all);
  files.push_back({"share/bash-completion/completions/lamina", Bash(all)});
  std::string zsh = "#compdef lamina\n";
  ZshFunction(program, zsh);
  files.push_back(
      {"share/zsh/site-functions/_lamina", zsh + "_lamina \"$@\"\n"});
  files.push_back({"share/fish/vendor_completions.d/lamina.fish", Fish(all)});
  return files;
}

Status WriteManual(const DescribedCommand& program, const std::string& version,
                   const std::string& folder) {
  namespace fs = std::filesystem;
  for (const ManualFile& file : Manual(program, version)) {
    const fs::path path = fs::path(folder) / file.path;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    LAMINA_TRY(WriteFile(path.string(), file.text));
  }
  return {};
}

namespace {

enum class Face { kPlain, kBold, kItalic };
struct Words {
  Face face = Face::kPlain;
  std::string text;
};
using Line = std::vector<Words>;

struct Item {
  Line term;
  std::string text;
};

// One of them has content: a line, items, or lines that stay as they are.
struct Section {
  std::string title;
  Line line;
  std::vector<Item> items;
  std::string example;
};

Item ItemOf(const DescribedOption& option) {
  Item item;
  for (const std::string& name : option.names) {
    if (!item.term.empty()) item.term.push_back({Face::kPlain, ", "});
    item.term.push_back({Face::kBold, name});
  }
  if (!option.value.empty()) {
    item.term.push_back({Face::kPlain, " "});
    item.term.push_back({Face::kItalic, option.value});
  }
  item.text = option.doc;
  if (!option.choices.empty())
    item.text += fmt::format(" (one of {})", fmt::join(option.choices, ", "));
  if (!option.default_text.empty())
    item.text += fmt::format(" (default: {})", option.default_text);
  return item;
}

Line Synopsis(const DescribedCommand& command) {
  Line line = {{Face::kBold,
                "lamina" + (command.name.empty() ? "" : " " + command.name)}};
  const auto add = [&](Face face, const std::string& text, bool in_brackets) {
    line.push_back({Face::kPlain, in_brackets ? " [" : " "});
    line.push_back({face, text});
    if (in_brackets) line.push_back({Face::kPlain, "]"});
  };
  if (!command.commands.empty()) add(Face::kItalic, "COMMAND", false);
  add(Face::kItalic, "OPTIONS", true);
  for (const DescribedOption& option : command.options) {
    if (!option.positional) continue;
    add(Face::kItalic, option.names.front(), !option.required);
    if (option.many) line.push_back({Face::kPlain, "..."});
  }
  return line;
}

std::vector<Section> SectionsOf(const DescribedCommand& command) {
  std::vector<Section> page;
  page.push_back({"NAME",
                  {{Face::kPlain, PageName(command) + " - " + command.summary}},
                  {},
                  ""});
  page.push_back({"SYNOPSIS", Synopsis(command), {}, ""});
  Section commands{"COMMANDS", {}, {}, ""};
  for (const DescribedCommand& sub : command.commands) {
    commands.items.push_back(
        {{{Face::kBold, PageName(sub)}, {Face::kPlain, "(1)"}}, sub.summary});
  }
  Section inputs{"INPUTS", {}, {}, ""}, options{"OPTIONS", {}, {}, ""};
  for (const DescribedOption& option : command.options)
    (option.positional ? inputs : options).items.push_back(ItemOf(option));
  for (Section* section : {&commands, &inputs, &options}) {
    if (!section->items.empty()) page.push_back(std::move(*section));
  }
  if (!command.example.empty())
    page.push_back({"EXAMPLE", {}, {}, command.example});
  page.push_back({"EXIT STATUS",
                  {{Face::kPlain,
                    "0: fine; 1: a check that was asked for failed; 2: wrong "
                    "usage; 3: unusable input."}},
                  {},
                  ""});
  if (!command.name.empty()) {
    page.push_back(
        {"SEE ALSO", {{Face::kBold, "lamina"}, {Face::kPlain, "(1)"}}, {}, ""});
  }
  return page;
}

// roff takes backslashes, and lines that begin with a point or an apostrophe,
// for commands, and turns hyphens into dashes that cannot be copied.
std::string Roff(std::string text) {
  text = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!text.empty() && (text[0] == '.' || text[0] == '\''))
    text.insert(0, "\\&");
  return absl::StrReplaceAll(text, {{"\n", "\n\\&"}});
}

std::string Roff(const Line& line) {
  std::string out;
  for (const auto& [face, text] : line) {
    if (face == Face::kPlain) {
      out += Roff(text);
    } else {
      out += (face == Face::kBold ? "\\fB" : "\\fI") + Roff(text) + "\\fR";
    }
  }
  return out;
}

std::string Text(const Line& line) {
  std::string out;
  for (const Words& words : line) out += words.text;
  return out;
}

// Lines of `width`, each behind `indent` spaces.
std::string Indented(const std::string& text, int width, int indent) {
  const std::string space(static_cast<size_t>(indent), ' ');
  const std::string lines =
      width == 0 ? text
                 : report::table::Wrap(absl::StrReplaceAll(text, {{"\n", " "}}),
                                       width - indent, 0);
  return space + absl::StrReplaceAll(lines, {{"\n", "\n" + space}}) + "\n";
}

}  // namespace

std::string PageName(const DescribedCommand& command) {
  return absl::StrReplaceAll(
      "lamina" + (command.name.empty() ? "" : " " + command.name),
      {{" ", "-"}});
}

std::string RoffPage(const DescribedCommand& command,
                     const std::string& version) {
  std::string title = PageName(command);
  for (char& c : title) c = static_cast<char>(std::toupper(c));
  std::string out =
      fmt::format(".TH \"{}\" \"1\" \"\" \"lamina {}\" \"lamina manual\"\n",
                  Roff(title), Roff(version));
  for (const Section& section : SectionsOf(command)) {
    out += ".SH " + section.title + "\n";
    if (section.title == "NAME") {
      // What apropos reads: the dash between name and summary.
      out += Roff(PageName(command)) + " \\- " + Roff(command.summary) + "\n";
      continue;
    }
    if (!section.line.empty()) out += Roff(section.line) + "\n";
    for (const Item& item : section.items)
      out += ".TP\n" + Roff(item.term) + "\n" + Roff(item.text) + "\n";
    if (!section.example.empty())
      out += ".nf\n" + Roff(section.example) + "\n.fi\n";
  }
  return out;
}

std::string TextPage(const DescribedCommand& command, int width) {
  std::string out;
  for (const Section& section : SectionsOf(command)) {
    out += (out.empty() ? "" : "\n") + section.title + "\n";
    if (!section.line.empty()) out += Indented(Text(section.line), width, 7);
    bool first = true;
    for (const Item& item : section.items) {
      if (!first) out += "\n";
      first = false;
      out += Indented(Text(item.term), 0, 7) + Indented(item.text, width, 14);
    }
    if (!section.example.empty()) out += Indented(section.example, 0, 7);
  }
  return out;
}

const DescribedCommand* FindCommand(const DescribedCommand& program,
                                    const std::vector<std::string>& words) {
  const DescribedCommand* command = &program;
  std::string name;
  for (const std::string& word : words) {
    name += (name.empty() ? "" : " ") + word;
    const auto found = std::find_if(
        command->commands.begin(), command->commands.end(),
        [&](const DescribedCommand& sub) { return sub.name == name; });
    if (found == command->commands.end()) return nullptr;
    command = &*found;
  }
  return command;
}

}  // namespace lamina::cli
