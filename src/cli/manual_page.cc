// SPDX-License-Identifier: Apache-2.0
#include "cli/manual_page.h"

#include <absl/strings/str_replace.h>
#include <algorithm>
#include <cctype>
#include <fmt/core.h>
#include <fmt/format.h>
#include <string_view>

#include "report/table/notes.h"

namespace lamina::cli {
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
