// SPDX-License-Identifier: Apache-2.0

#include "rules/markers.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "rules/dictionary_text.h"
#include "rules/pattern_compiler.h"

namespace lamina::rules {

namespace {

constexpr size_t kMaxText = size_t{64} << 10;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text.substr(0, kMaxText)) {}

  std::optional<std::string> Find(std::string_view key) {
    if (!Take('{')) return std::nullopt;
    while (true) {
      const auto name = String();
      if (!name || !Take(':')) return std::nullopt;
      if (*name == key) return String();
      SkipValue();
      if (!Take(',')) return std::nullopt;
    }
  }

 private:
  bool AtEnd() const { return pos_ >= text_.size(); }

  bool Take(char c) {
    while (!AtEnd() && (text_[pos_] == ' ' || text_[pos_] == '\t' ||
                        text_[pos_] == '\n' || text_[pos_] == '\r'))
      ++pos_;
    if (AtEnd() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }

  // A text in single or double quotes. Of escapes only those of quotes and of
  // the backslash are undone: names have no others.
  std::optional<std::string> String() {
    const char quote = Take('\'') ? '\'' : Take('"') ? '"' : '\0';
    if (quote == '\0') return std::nullopt;
    std::string out;
    for (; !AtEnd(); ++pos_) {
      char c = text_[pos_];
      if (c == quote) {
        ++pos_;
        return out;
      }
      if (c == '\\' && pos_ + 1 < text_.size()) {
        const char next = text_[pos_ + 1];
        if (next == '\'' || next == '"' || next == '\\') {
          c = next;
          ++pos_;
        }
      }
      out += c;
    }
    return std::nullopt;
  }

  // To the comma or brace that ends a value. Brackets are counted, not paired:
  // a text that mixes them up has no field behind that this could find.
  void SkipValue() {
    int64_t depth = 0;
    while (!AtEnd()) {
      const char c = text_[pos_];
      if (c == '\'' || c == '"') {
        if (!String()) return;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}')) return;
      depth += c == '[' || c == '{' || c == '(';
      depth -= c == ']' || c == '}' || c == ')';
      ++pos_;
    }
  }

  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace

std::optional<std::string> TextOfKey(std::string_view dictionary,
                                     std::string_view key) {
  return Reader(dictionary).Find(key);
}

namespace {

// A deeper path, a longer part or text names no module of a model: the texts
// are those of anybody, and each part of a path may become a slice.
constexpr size_t kMaxParts = 32;
constexpr size_t kMaxPart = 256;

constexpr std::array<std::string_view, 6> kPhases = {
    "forward",      "backward",     "pre_forward",
    "post_forward", "pre_backward", "post_backward"};

template <class List>
std::string Joined(const List& list, std::string_view separator) {
  return fmt::format("{}", fmt::join(list, separator));
}

bool IsNumber(std::string_view part) {
  return !part.empty() &&
         part.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<MarkerPhase> ReadPhase(const Members& members) {
  const std::string text = members.TextOr("phase", "forward");
  const auto it = std::find(kPhases.begin(), kPhases.end(), text);
  if (it == kPhases.end()) {
    return Fail(members.ErrorAt("unknown phase '" + text + "'; known are " +
                                Joined(kPhases, ", ")));
  }
  return static_cast<MarkerPhase>(it - kPhases.begin());
}

Result<MarkerRule> ReadRule(const DataFile& file, const Node& item) {
  static constexpr std::string_view kKeys[] = {
      "id", "field", "match", "phase", "why", "examples", "not"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, item, kKeys));
  MarkerRule rule;
  LAMINA_ASSIGN(rule.id, members.Text("id"));
  LAMINA_ASSIGN(rule.match, members.Text("match"));
  LAMINA_ASSIGN(rule.phase, ReadPhase(members));
  rule.field = members.TextOr("field", "");
  rule.why = members.TextOr("why", "");
  LAMINA_ASSIGN(rule.counter_examples, members.Texts("not"));
  rule.file = file.name;
  rule.line = item.line;
  const Node* const examples = members.Find("examples");
  if (examples == nullptr) return rule;
  if (!examples->IsList())
    return Fail(file.ErrorAt(*examples, "expected a list of examples"));
  for (const Node& node : examples->items) {
    static constexpr std::string_view kExample[] = {"text", "module"};
    LAMINA_ASSIGN(const Members example, Members::Of(file, node, kExample));
    MarkerRule::Example& added = rule.examples.emplace_back();
    LAMINA_ASSIGN(added.text, example.Text("text"));
    LAMINA_ASSIGN(added.module, example.Text("module"));
  }
  return rule;
}

}  // namespace

std::string_view PhaseName(MarkerPhase phase) {
  return kPhases[static_cast<size_t>(phase)];
}

Result<std::shared_ptr<const MarkerTable>> MarkerTable::Load(
    const DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("modules"));
  return Make(files);
}

Result<std::shared_ptr<const MarkerTable>> MarkerTable::Make(
    const std::vector<std::shared_ptr<const DataFile>>& files) {
  auto table = std::make_shared<MarkerTable>();
  for (const auto& file : files) LAMINA_TRY(table->AddFile(*file));
  PatternCompiler compiler;
  for (const MarkerRule& rule : table->rules_) {
    std::unique_ptr<RE2> pattern;
    std::string wrong = compiler.Compile(rule.match, rule.match, pattern);
    if (wrong.empty() && !pattern->NamedCapturingGroups().contains("path") &&
        !pattern->NamedCapturingGroups().contains("class"))
      wrong = "the pattern captures neither (?P<path>...) nor (?P<class>...)";
    if (!wrong.empty()) {
      Error error =
          InputError(rule.file, std::move(wrong), "write it in RE2 syntax");
      error.line = rule.line;
      return Fail(error);
    }
    table->patterns_.push_back(std::move(pattern));
  }
  return std::shared_ptr<const MarkerTable>(std::move(table));
}

Status MarkerTable::AddFile(const DataFile& file) {
  const Node* const name = file.root.Find("table");
  if (name == nullptr || name->text != "module_marker") return {};
  static constexpr std::string_view kKeys[] = {"table", "wrappers", "rules"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, file.root, kKeys));
  LAMINA_ASSIGN(const auto wrappers, members.Texts("wrappers"));
  wrappers_.insert(wrappers_.end(), wrappers.begin(), wrappers.end());
  const Node* const list = members.Find("rules");
  if (list == nullptr) return {};
  if (!list->IsList())
    return Fail(file.ErrorAt(*list, "expected a list of rules"));
  for (const Node& item : list->items) {
    LAMINA_ASSIGN(MarkerRule rule, ReadRule(file, item));
    rules_.push_back(std::move(rule));
  }
  return {};
}

// "model.layers.7._orig_mod.self_attn": model, layers_7, self_attn.
std::vector<std::string> MarkerTable::PathOf(std::string_view dotted) const {
  std::vector<std::string> path;
  bool numbered = true;  // the last part has its number, or there is none yet
  while (!dotted.empty()) {
    const size_t dot = std::min(dotted.find('.'), dotted.size());
    const std::string_view part = dotted.substr(0, dot);
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
    if (part.empty() ||
        std::find(wrappers_.begin(), wrappers_.end(), part) != wrappers_.end())
      continue;
    if (part.size() > kMaxPart || path.size() == kMaxParts) return {};
    if (IsNumber(part) && !numbered) {
      path.back() += '_';
      path.back() += part;
      numbered = true;
    } else {
      path.emplace_back(part);
      numbered = IsNumber(part);
    }
  }
  return path;
}

int MarkerTable::Match(std::string_view text, Marker* marker) const {
  if (text.size() > kMaxText) return kNone;
  std::map<std::string_view, std::optional<std::string>> fields;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const MarkerRule& rule = rules_[i];
    std::string_view searched = text;
    if (!rule.field.empty()) {
      const auto [it, is_new] = fields.try_emplace(rule.field);
      if (is_new) it->second = TextOfKey(text, rule.field);
      if (!it->second) continue;
      searched = *it->second;
    }
    const RE2& pattern = *patterns_[i];
    std::vector<re2::StringPiece> groups(
        static_cast<size_t>(pattern.NumberOfCapturingGroups()) + 1);
    const re2::StringPiece piece(searched.data(), searched.size());
    if (!pattern.Match(piece, 0, piece.size(), RE2::UNANCHORED, groups.data(),
                       static_cast<int>(groups.size())))
      continue;
    for (const char* const name : {"path", "class"}) {
      const auto& named = pattern.NamedCapturingGroups();
      const auto group = named.find(name);
      if (group == named.end()) continue;
      const re2::StringPiece& found =
          groups[static_cast<size_t>(group->second)];
      std::vector<std::string> path =
          PathOf(std::string_view(found.data(), found.size()));
      if (path.empty()) continue;
      if (marker != nullptr) *marker = {std::move(path), rule.phase};
      return static_cast<int>(i);
    }
  }
  return kNone;
}

int MarkerTable::Find(std::string_view text) const {
  return Match(text, nullptr);
}

std::optional<Marker> MarkerTable::Read(std::string_view text) const {
  Marker marker;
  if (Match(text, &marker) == kNone) return std::nullopt;
  return marker;
}

std::vector<std::string> MarkerTable::CheckExamples() const {
  std::vector<std::string> problems;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const MarkerRule& rule = rules_[i];
    for (const MarkerRule::Example& example : rule.examples) {
      Marker marker;
      const int found = Match(example.text, &marker);
      const std::string intro = rule.id + ": the example '" + example.text;
      if (found != static_cast<int>(i)) {
        problems.push_back(intro + "' is matched by " +
                           (found == kNone
                                ? "no rule"
                                : rules_[static_cast<size_t>(found)].id));
      } else if (Joined(marker.path, "/") != example.module) {
        problems.push_back(intro + "' names '" + Joined(marker.path, "/") +
                           "', not '" + example.module + "'");
      }
    }
    for (const std::string& text : rule.counter_examples) {
      if (Find(text) == static_cast<int>(i)) {
        problems.push_back(rule.id + ": the counter-example '" + text +
                           "' is matched by it");
      }
    }
  }
  return problems;
}

}  // namespace lamina::rules
