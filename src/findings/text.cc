// SPDX-License-Identifier: Apache-2.0
#include "findings/text.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>
#include <vector>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "findings/rule.h"

namespace lamina::findings {
namespace {

bool Truth(const Value& value) {
  if (value.null()) return false;
  if (value.kind() == Value::Kind::kText) return !value.text().empty();
  return value.real() != 0;
}

std::string Choose(std::string_view names, const ValueOf& value) {
  while (true) {
    const size_t bar = names.find('|');
    const std::string_view name = names.substr(0, bar);
    const Value found = value(name);
    if (bar == std::string_view::npos) {
      // The last of several may be plain words.
      return found.null() ? std::string(name) : ShowValue(name, found);
    }
    if (!found.null() &&
        !(found.kind() == Value::Kind::kText && found.text().empty()))
      return ShowValue(name, found);
    names.remove_prefix(bar + 1);
  }
}

// "1 copy" and "takes" of one, "3 copies" and "take" of all others; nothing
// where `inside` is of neither form.
std::optional<std::string> Numbered(std::string_view inside,
                                    const ValueOf& value) {
  const size_t mark = inside.find_first_of(":?|");
  if (mark == std::string_view::npos || inside[mark] == '|')
    return std::nullopt;
  const std::string_view name = inside.substr(0, mark);
  std::string_view words = inside.substr(mark + 1);
  const Value found = value(name);
  const std::string_view one = TakeUntil(words, '|');
  const std::string_view word =
      !found.null() && found.real() == 1 ? one : words;
  if (inside[mark] == '?') return std::string(word);
  return fmt::format("{} {}", ShowValue(name, found), word);
}

}  // namespace

std::string ShowValue(std::string_view name, const Value& value) {
  constexpr size_t kMost = 60;
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "unknown";
    case Value::Kind::kText:
      return EscapeTerminal(Shorten(value.text(), kMost));
    default:
      break;
  }
  if (name.ends_with("_ns") || name == "owned" || name == "gain")
    return HumanTime(static_cast<int64_t>(value.real()));
  if (name.ends_with("_bytes") || name == "bytes")
    return HumanBytes(value.real());
  if (name.ends_with("share")) {
    const double percent = 100 * value.real();
    return fmt::format("{:.{}f} %", percent, percent < 10 ? 1 : 0);
  }
  if (value.kind() == Value::Kind::kReal) {
    const double x = value.real();
    const bool whole = x >= 100 || x == std::floor(x);
    return fmt::format("{:.{}f}", x, whole ? 0 : x >= 10 ? 1 : 2);
  }
  return GroupDigits(value.integer());
}

std::string FillTemplate(std::string_view text, const ValueOf& value) {
  std::string out;
  bool skip = false;
  while (!text.empty()) {
    const size_t open = text.find('{');
    if (!skip) out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    text.remove_prefix(close + 1);
    if (inside == "end") {
      skip = false;
    } else if (inside.starts_with("if ")) {
      skip = !Truth(value(inside.substr(3)));
    } else if (!skip) {
      const auto numbered = Numbered(inside, value);
      out += numbered ? *numbered : Choose(inside, value);
    }
  }
  return out;
}

std::string CheckTemplate(std::string_view text) {
  bool inside_if = false;
  size_t at = 0;
  while (true) {
    const size_t open = text.find('{', at);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) return "a { without a }";
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    if (inside.empty() || inside.find('{') != std::string_view::npos)
      return "an empty or a nested placeholder";
    if (inside.starts_with("if ")) {
      if (inside_if) return "an {if} inside another";
      inside_if = true;
    } else if (inside == "end") {
      if (!inside_if) return "an {end} without an {if}";
      inside_if = false;
    } else if (const size_t mark = inside.find_first_of(":?|");
               mark != std::string_view::npos && inside[mark] != '|' &&
               std::count(inside.begin(), inside.end(), '|') != 1) {
      return "no {name:one|many} or {name?one|many}";
    }
    at = close + 1;
  }
  return inside_if ? "an {if} without an {end}" : "";
}

namespace {

// The part of a name that says most, in at most `most` bytes: a function of its
// frame, an op without its namespace, words without those in front.
std::string Subject(std::string_view name, size_t most) {
  const auto behind = [&](std::string_view mark) {
    const size_t at = name.rfind(mark);
    if (at != std::string_view::npos && at + mark.size() < name.size())
      name.remove_prefix(at + mark.size());
  };
  for (const std::string_view built_in :
       {"<built-in method ", "<built-in function "}) {
    if (!name.starts_with(built_in)) continue;
    name.remove_prefix(built_in.size());
    name = name.substr(0, name.find_first_of(" >"));
  }
  if (name.starts_with("ProfilerStep")) return "the step";
  if (name == "aten::_local_scalar_dense" || name == "aten::item")
    return ".item()";
  // "thread 4037 (python3)" is told by its number.
  if (name.starts_with("thread ")) name = name.substr(0, name.find(" ("));
  // Words between marks, as in "[param|clear_cache]".
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  behind("|");
  behind("): ");  // a Python frame
  // Optimizer.step#SGD.step, but no number behind it.
  if (const size_t at = name.rfind('#');
      at != std::string_view::npos && at + 1 < name.size() &&
      IsWordCharacter(name[at + 1]) && !IsDigit(name[at + 1]))
    behind("#");
  behind("::");
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__"))
    name = name.substr(2, name.size() - 4);
  constexpr std::string_view kFrame = "_#=*- ";
  name.remove_prefix(std::min(name.find_first_not_of(kFrame), name.size()));
  while (!name.empty() && Contains("#=*- ", name.substr(name.size() - 1)))
    name.remove_suffix(1);
  while (name.size() > most && !Contains(name, " ")) {
    const size_t next = name.find('_');
    if (next == std::string_view::npos || next + 4 > name.size()) break;
    name.remove_prefix(next + 1);
  }
  // Words tell most in front.
  if (Contains(name, " ")) return Shorten(name, most);
  return ShortenInside(name, most, most / 3);
}

}  // namespace

std::string FillTodo(std::string_view text, const ValueOf& value, size_t most) {
  std::string out;
  std::vector<std::string> kept;  // texts of values
  for (size_t room = most; room >= 4; --room) {
    kept.clear();
    kept.reserve(8);
    out = FillTemplate(text, [&](std::string_view name) -> Value {
      const Value found = value(name);
      if (found.kind() != Value::Kind::kText || found.text().empty() ||
          kept.size() == kept.capacity())
        return found;
      return kept.emplace_back(Subject(found.text(), room));
    });
    if (DisplayWidth(out) <= most) return out;
  }
  return Shorten(out, most);
}

std::string CheckTodo(std::string_view text) {
  std::string wrong = CheckTemplate(text);
  if (!wrong.empty()) return wrong;
  const std::string plain =
      FillTemplate(text, [](std::string_view) { return Value(1); });
  const bool names = plain != text;
  const size_t most = names ? kMostTodo - 2 : kMostTodo;
  if (DisplayWidth(plain) > most)
    return fmt::format("what to do has more than {} characters", most);
  if (text.empty() || text.front() < 'A' || text.front() > 'Z')
    return "what to do does not begin with a capital letter";
  if (text.ends_with('.')) return "what to do ends in a full stop";
  return "";
}

}  // namespace lamina::findings
