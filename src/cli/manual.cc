// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: three shells, each of which quotes in its own way.
#include "cli/manual.h"

#include <absl/strings/str_replace.h>
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <fmt/format.h>

#include "base/byte_sink.h"
#include "cli/manual_page.h"

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
      if (option.choices.empty()) continue;
      for (const std::string& name : option.names)
        values += fmt::format(
            "    {}) words={} ;;\n", Quoted(command->name + ":" + name),
            Quoted(fmt::format("{}", fmt::join(option.choices, " "))));
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
        spec += option.choices.empty()
                    ? "_files"
                    : fmt::format("({})", fmt::join(option.choices, " "));
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
      if (!option.choices.empty()) {
        out += " -x -a " +
               quoted(fmt::format("{}", fmt::join(option.choices, " ")));
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

}  // namespace lamina::cli
