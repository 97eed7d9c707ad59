// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/review_tests.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/text.h"

namespace lamina::fusion {
namespace {

constexpr size_t kMaxTestFile = size_t{8} << 20;
constexpr size_t kNone = std::string_view::npos;

struct Function {
  size_t line = 0;  // of the first line of the body, 1-based
  std::vector<std::string_view> body;
};

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == kNone ? std::string_view() : text.substr(first);
}

// Functions and classes of a file by name; a body is what is indented deeper.
std::map<std::string, Function> FunctionsOf(std::string_view text) {
  const std::vector<std::string_view> lines = SplitLines(text);
  std::map<std::string, Function> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = Trimmed(lines[i]);
    const size_t skip = line.starts_with("def ")     ? 4
                        : line.starts_with("class ") ? 6
                                                     : 0;
    if (skip == 0) continue;
    size_t end = skip;
    while (end < line.size() && IsWordCharacter(line[end])) ++end;
    const size_t indent = lines[i].size() - line.size();
    Function function;
    function.line = i + 2;
    for (size_t j = i + 1; j < lines.size(); ++j) {
      const std::string_view next = Trimmed(lines[j]);
      // The brackets of the head may close at its own indent.
      if (!next.empty() && lines[j].size() - next.size() <= indent &&
          next[0] != ')')
        break;
      function.body.push_back(next.starts_with('#') ? std::string_view()
                                                    : lines[j]);
    }
    out.try_emplace(std::string(line.substr(skip, end - skip)),
                    std::move(function));
  }
  return out;
}

// Whether a text calls `name(`.
bool Calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != kNone; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end < text.size() && text[end] == '(' &&
        (at == 0 || !IsWordCharacter(text[at - 1])))
      return true;
  }
  return false;
}

// Whether a text has an op of this name: `.name` of an object or namespace, or
// a call.
bool Makes(std::string_view text, const std::string& name) {
  const std::string word = "." + name;
  for (size_t at = text.find(word); at != kNone; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (end == text.size() || !IsWordCharacter(text[end])) return true;
  }
  return Calls(text, name);
}

// "auto_deploy.fused_add.default" -> "fused_add".
std::string OpWord(std::string_view op) {
  const size_t dot = op.find('.');
  const std::string_view rest = op.substr(dot == kNone ? 0 : dot + 1);
  return std::string(rest.substr(0, rest.find('.')));
}

enum class Says : uint8_t { kNothing, kMatch, kNoMatch };

// What an assert says of the number of matches.
Says ReadAssert(std::string_view line,
                const std::vector<std::string>& produced) {
  if (!line.starts_with("assert")) return Says::kNothing;
  const bool counts = Contains(line, "num_matches") ||
                      Contains(line, "matches") || Contains(line, "count");
  const bool names =
      std::any_of(produced.begin(), produced.end(),
                  [&](const auto& op) { return Contains(line, op); });
  if (Contains(line, "skipped"))
    return Contains(line, "not ") ? Says::kNothing : Says::kNoMatch;
  if (names && (Contains(line, "not any(") || Contains(line, "not in ") ||
                Contains(line, "is None")))
    return Says::kNoMatch;
  if (names && (Contains(line, " any(") || Contains(line, " in ")) && !counts &&
      line.find("==") == kNone)
    return Says::kMatch;
  if (!counts && !names) return Says::kNothing;
  for (const std::string_view sign : {"==", ">=", ">"}) {
    const size_t at = line.find(sign);
    if (at == kNone) continue;
    std::string_view value = Trimmed(line.substr(at + sign.size()));
    size_t end = 0;
    while (end < value.size() && value[end] >= '0' && value[end] <= '9') ++end;
    const auto number = ParseInt(value.substr(0, end));
    if (!number) return Says::kNothing;
    if (sign == ">") return *number >= 0 ? Says::kMatch : Says::kNothing;
    if (sign == ">=") return *number > 0 ? Says::kMatch : Says::kNothing;
    return *number > 0 ? Says::kMatch : Says::kNoMatch;
  }
  return Says::kNothing;
}

std::string ClassOf(std::string_view key) {
  std::string out;
  bool upper = true;
  for (const char c : key) {
    if (c == '_') {
      upper = true;
    } else {
      out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
      upper = false;
    }
  }
  return out;
}

}  // namespace

TestJudgement JudgeTests(const SourceIndex& tree, const graph::Rule& rule) {
  TestJudgement out;
  std::vector<std::string> produced;
  for (const std::string& op : rule.produces) produced.push_back(OpWord(op));
  std::vector<std::string> names = produced;
  names.push_back(rule.name);
  names.push_back(ClassOf(rule.name));
  // Words of the ops that a place of the rule is made of.
  std::vector<std::set<std::string>> forms;
  for (const graph::Alternative& alternative : rule.alternatives) {
    std::set<std::string> words;
    for (const graph::PatternLine& line : alternative.pattern.lines) {
      for (const std::string& target : line.targets)
        words.insert(OpWord(target));
    }
    forms.push_back(std::move(words));
  }
  std::set<std::string> files;
  for (const Mention& mention : tree.mentions) {
    if (mention.kind == Mention::Kind::kTest) files.insert(mention.file);
  }
  for (const std::string& file : files) {
    const auto text = ReadAll(tree.tree + "/" + file, kMaxTestFile);
    if (!text) continue;
    const std::map<std::string, Function> functions = FunctionsOf(*text);
    for (const auto& [name, function] : functions) {
      if (!name.starts_with("test_")) continue;
      std::string body;
      for (const std::string_view line : function.body)
        body += std::string(line) + "\n";
      // What it calls, and what that calls: models that helpers build.
      std::string near = body;
      std::set<std::string> taken = {name};
      for (int depth = 0; depth < 2; ++depth) {
        std::string more;
        for (const auto& [other, helper] : functions) {
          if (taken.contains(other) || other.starts_with("test_") ||
              !Calls(near, other))
            continue;
          taken.insert(other);
          for (const std::string_view line : helper.body)
            more += std::string(line) + "\n";
        }
        near += more;
      }
      const bool named =
          std::any_of(names.begin(), names.end(),
                      [&](const auto& word) { return Contains(near, word); });
      if (!named) continue;
      if (out.named.empty())
        out.named = fmt::format("{}:{}", file, function.line - 1);
      // Half of the ops of some form of the rule are built.
      const bool builds =
          std::any_of(forms.begin(), forms.end(), [&](const auto& words) {
            const auto found =
                std::count_if(words.begin(), words.end(),
                              [&](const auto& w) { return Makes(near, w); });
            return 2 * static_cast<size_t>(found) >= words.size();
          });
      for (size_t i = 0; i < function.body.size(); ++i) {
        const Says says = ReadAssert(Trimmed(function.body[i]), produced);
        const std::string place = fmt::format("{}:{}", file, function.line + i);
        if (says == Says::kMatch && out.positive.empty()) out.positive = place;
        if (says == Says::kNoMatch) {
          std::string& kept = builds ? out.negative : out.unrelated;
          if (kept.empty()) kept = place;
        }
      }
    }
  }
  return out;
}

}  // namespace lamina::fusion
