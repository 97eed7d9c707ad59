// SPDX-License-Identifier: Apache-2.0
#include "graph/generate/python_text.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"

namespace lamina::generate {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsWord(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), IsWordCharacter);
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The items of "[a, [b, c]]" between its brackets.
std::vector<std::string_view> Items(std::string_view inside) {
  std::vector<std::string_view> out;
  size_t depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= inside.size(); ++i) {
    const char c = i < inside.size() ? inside[i] : ',';
    if (c == '[' || c == '(') ++depth;
    if ((c == ']' || c == ')') && depth > 0) --depth;
    if (c != ',' || depth > 0) continue;
    const std::string_view item = Trimmed(inside.substr(begin, i - begin));
    if (!item.empty()) out.push_back(item);
    begin = i + 1;
  }
  return out;
}

std::optional<std::string> LiteralAt(std::string_view text, int depth) {
  text = Trimmed(text);
  if (text.empty() || depth > 16) return std::nullopt;
  const char open = text.front();
  if ((open == '[' && text.back() == ']') ||
      (open == '(' && text.back() == ')')) {
    std::string out(1, open);
    const auto items = Items(text.substr(1, text.size() - 2));
    for (const std::string_view item : items) {
      const auto inner = LiteralAt(item, depth + 1);
      if (!inner) return std::nullopt;
      out += (out.size() > 1 ? ", " : "") + *inner;
    }
    if (open == '(' && items.size() == 1) out += ',';
    return out + text.back();
  }
  if (text == "True" || text == "False" || text == "None")
    return std::string(text);
  if (text == "inf" || text == "-inf" || text == "nan")
    return fmt::format("float(\"{}\")", text);
  if (ParseInt(text)) return std::string(text);
  if (ParseDouble(text) && text.find_first_of("xX") == kNone)
    return std::string(text);
  if (text.starts_with("torch.") && IsWord(text.substr(6)))
    return std::string(text);
  const bool word = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
           c == ':' || c == '/';
  });
  if (!word) return std::nullopt;
  if (text.starts_with("cuda") || text == "cpu" || text == "meta")
    return fmt::format("torch.device({})", Quoted(text));
  return Quoted(text);
}

}  // namespace

std::string Identifier(std::string_view name) {
  static const std::set<std::string_view> kTaken = {
      "and",      "as",       "assert", "async",    "await",  "break", "class",
      "count",    "continue", "def",    "del",      "elif",   "else",  "except",
      "False",    "finally",  "for",    "from",     "global", "graph", "if",
      "import",   "in",       "inside", "is",       "lambda", "node",  "None",
      "nonlocal", "not",      "number", "operator", "or",     "order", "pass",
      "place",    "raise",    "return", "self",     "torch",  "True",  "try",
      "v",        "while",    "with",   "yield"};
  std::string out;
  for (const char c : name) {
    out += IsWordCharacter(c) ? c : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, "_");
  if (kTaken.contains(out) || out.ends_with("_args")) out += '_';
  return out;
}

std::string ClassName(std::string_view key) {
  std::string out;
  bool upper = true;
  for (const char c : key) {
    if (c == '_' || c == '-' || c == '.') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    upper = false;
  }
  return out;
}

bool IsWhole(std::string_view text) {
  return ParseInt(text) && text.find_first_of(".eE") == kNone;
}

std::string Quoted(std::string_view text) { return JsonQuote(text); }

std::optional<std::string> Literal(std::string_view text) {
  return LiteralAt(text, 0);
}

std::optional<std::string> Target(std::string_view op) {
  if (op.starts_with("fn.")) return std::string(op.substr(3));
  if (op.starts_with("builtin.")) {
    for (const std::string_view name :
         {"getitem", "add", "sub", "mul", "floordiv", "truediv", "mod", "neg",
          "eq", "ne", "lt", "le", "gt", "ge"}) {
      if (op.substr(8) == name) return fmt::format("operator.{}", name);
    }
    return std::nullopt;
  }
  return fmt::format("torch.ops.{}", op);
}

std::string Bracketed(size_t indent, std::string_view prefix,
                      const std::vector<std::string>& items,
                      std::string_view suffix, bool tuple) {
  std::string one(prefix);
  for (size_t i = 0; i < items.size(); ++i)
    one += (i > 0 ? ", " : "") + items[i];
  if (tuple && items.size() == 1) one += ',';
  one += suffix;
  if (indent + one.size() <= kColumns || items.empty()) return one;
  std::string out(prefix);
  out += '\n';
  std::string row;
  for (const std::string& item : items) row += (row.empty() ? "" : ", ") + item;
  if (!tuple && indent + 4 + row.size() <= kColumns) {
    out += "    " + row + "\n";
  } else {
    for (const std::string& item : items) out += "    " + item + ",\n";
  }
  return out + std::string(suffix);
}

std::string Listed(const std::vector<std::string>& items, bool tuple) {
  return tuple ? Bracketed(0, "(", items, ")", true)
               : Bracketed(0, "[", items, "]");
}

void Code::Line(size_t depth, std::string_view text) {
  while (true) {
    const size_t end = text.find('\n');
    if (end != 0 && !text.empty()) text_ += std::string(4 * depth, ' ');
    text_ += text.substr(0, end);
    text_ += '\n';
    if (end == kNone) return;
    text.remove_prefix(end + 1);
  }
}

Result<Templates> Templates::Load(const rules::DataSet& data) {
  Templates out;
  LAMINA_ASSIGN(const auto files, data.Load("passes"));
  for (const auto& file : files) {
    static constexpr std::string_view kKeys[] = {"templates"};
    LAMINA_TRY(rules::Members::Of(*file, file->root, kKeys));
    const rules::Node* const map = file->root.Find("templates");
    if (map == nullptr || !map->IsMap())
      return Fail(file->ErrorAt(file->root, "expected a map 'templates'"));
    for (size_t i = 0; i < map->keys.size(); ++i) {
      if (!map->items[i].IsScalar())
        return Fail(file->ErrorAt(map->items[i], "expected a text"));
      out.texts_[map->keys[i].text] = map->items[i].text;
    }
  }
  return out;
}

std::string Templates::Fill(
    std::string_view name,
    const std::map<std::string, std::string>& values) const {
  const auto found = texts_.find(name);
  if (found == texts_.end()) return {};
  const auto value = [&](std::string_view key) -> std::string_view {
    const auto at = values.find(std::string(key));
    return at == values.end() ? std::string_view() : at->second;
  };
  std::string out;
  std::string_view text = found->second;
  while (!text.empty()) {
    std::string_view line = TakeUntil(text, '\n');
    const std::string_view bare = Trimmed(line);
    if (bare.starts_with("{{") && bare.find("}}") == bare.size() - 2) {
      std::string_view filled = value(bare.substr(2, bare.size() - 4));
      if (filled.ends_with('\n')) filled.remove_suffix(1);
      if (filled.empty()) continue;
      const size_t indent = line.find_first_not_of(' ');
      Code code;
      code.Line(0, filled);
      for (std::string_view rest = code.text(); !rest.empty();) {
        const size_t stop = rest.find('\n');
        if (stop > 0) out += std::string(indent, ' ');
        out += rest.substr(0, stop + 1);
        rest.remove_prefix(stop + 1);
      }
      continue;
    }
    while (true) {
      const size_t open = line.find("{{");
      const size_t close = open == kNone ? kNone : line.find("}}", open);
      if (close == kNone) break;
      out += line.substr(0, open);
      out += value(line.substr(open + 2, close - open - 2));
      line.remove_prefix(close + 2);
    }
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace lamina::generate
