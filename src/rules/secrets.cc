// SPDX-License-Identifier: Apache-2.0
#include "rules/secrets.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "rules/pattern_compiler.h"

namespace lamina::rules {
namespace {

constexpr int64_t kSetBytes = int64_t{64} << 20;

struct KindName {
  std::string_view name;
  SecretKind kind;
};
constexpr KindName kKinds[] = {{"secret", SecretKind::kSecret},
                               {"user", SecretKind::kUser},
                               {"host", SecretKind::kHost},
                               {"path", SecretKind::kPath}};

void Sort(std::vector<SecretSpan>& spans) {
  std::sort(spans.begin(), spans.end(),
            [](const SecretSpan& a, const SecretSpan& b) {
              if (a.begin != b.begin) return a.begin < b.begin;
              if (a.end != b.end) return a.end > b.end;
              return a.kind < b.kind;
            });
}

enum class Letter : uint8_t { kUpper, kLower, kDigit, kOther };
Letter LetterOf(char c) {
  if (c >= 'A' && c <= 'Z') return Letter::kUpper;
  if (c >= 'a' && c <= 'z') return Letter::kLower;
  return IsDigit(c) ? Letter::kDigit : Letter::kOther;
}

// Letters and digits between other bytes.
bool LooksLikeChance(std::string_view run) {
  size_t changes = 0;
  std::array<size_t, 4> kinds{};
  std::array<bool, 256> seen{};
  size_t different = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    ++kinds[static_cast<size_t>(LetterOf(run[i]))];
    changes += i > 0 && LetterOf(run[i]) != LetterOf(run[i - 1]);
    bool& before = seen[static_cast<unsigned char>(run[i])];
    different += !before;
    before = true;
  }
  const auto [upper, lower, digits, other] = kinds;
  // Of random digits and letters of both cases 0.6 of the pairs change their
  // kind, of hexadecimal digits 0.47.
  const double share =
      static_cast<double>(changes) / static_cast<double>(run.size() - 1);
  if (digits == 0 || share > 0.9 || different < 9) return false;
  if (upper >= 2 && lower >= 2) return share >= (digits >= 3 ? 0.4 : 0.55);
  if (digits < 3) return false;
  const bool hexadecimal =
      run.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  return hexadecimal ? run.size() >= 32 && share >= 0.25 && share < 0.7
                     : run.size() >= 20 && share >= 0.35 && share < 0.75;
}

}  // namespace

bool IsOpaque(std::string_view text, bool named) {
  if (text.starts_with("_Z")) return false;  // a symbol
  std::array<size_t, 4> kinds{};
  for (const char c : text) ++kinds[static_cast<size_t>(LetterOf(c))];
  const auto [upper, lower, digits, other] = kinds;
  constexpr size_t kLong = 16;
  if (named || text.size() < kLong) {
    // Anything but a word, a number or a type.
    if (upper + lower == 0 || digits == 0) return false;
    if (text.starts_with("0x")) return false;
    static constexpr std::string_view kTypes[] = {
        "int", "uint", "float", "bfloat", "bf", "fp", "tf", "complex", "sm"};
    const std::string_view word =
        text.substr(0, text.find_first_of("0123456789"));
    const bool type = std::find(std::begin(kTypes), std::end(kTypes), word) !=
                      std::end(kTypes);
    return !type;
  }
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && LetterOf(text[end]) != Letter::kOther) ++end;
    if (end - i >= kLong && LooksLikeChance(text.substr(i, end - i)))
      return true;
    i = end + 1;
  }
  return false;
}

Result<std::shared_ptr<const SecretTable>> SecretTable::Load(
    const DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("secrets"));
  auto table = std::make_shared<SecretTable>();
  for (const auto& file : files) LAMINA_TRY(table->AddFile(*file));
  table->any_ =
      std::make_unique<RE2::Set>(QuietPatterns(kSetBytes), RE2::UNANCHORED);
  for (const Rule& rule : table->rules_)
    table->any_->Add(rule.pattern->pattern(), nullptr);
  if (!table->any_->Compile())
    return Fail(UsageError("the patterns of secrets are too large together"));
  return std::shared_ptr<const SecretTable>(std::move(table));
}

std::shared_ptr<const SecretTable> SecretTable::BuiltIn() {
  static const auto* const table =
      new std::shared_ptr<const SecretTable>(*Load(DataSet()));
  return *table;
}

Status SecretTable::AddFile(const DataFile& file) {
  static constexpr std::string_view kKeys[] = {"table", "rules"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, file.root, kKeys));
  const Node* const list = members.Find("rules");
  if (list == nullptr || !list->IsList())
    return Fail(members.ErrorAt("expected a list 'rules'"));
  PatternCompiler compiler;
  for (const Node& item : list->items) {
    static constexpr std::string_view kRule[] = {"id",  "match",    "opaque",
                                                 "why", "examples", "not"};
    LAMINA_ASSIGN(const Members one, Members::Of(file, item, kRule));
    Rule rule;
    LAMINA_ASSIGN(rule.id, one.Text("id"));
    LAMINA_ASSIGN(const std::string match, one.Text("match"));
    LAMINA_ASSIGN(rule.counter_examples, one.Texts("not"));
    if (const Node* const opaque = one.Find("opaque")) {
      LAMINA_ASSIGN(const std::string how, one.Text("opaque"));
      if (how != "named" && how != "alone")
        return Fail(file.ErrorAt(*opaque, "expected named or alone"));
      rule.opaque = how == "named" ? Opaque::kNamed : Opaque::kAlone;
    }
    std::string wrong = compiler.Compile(match, match, rule.pattern);
    if (wrong.empty()) {
      for (const auto& [name, group] : rule.pattern->NamedCapturingGroups()) {
        for (const KindName& kind : kKinds)
          if (kind.name == name) rule.groups.emplace_back(group, kind.kind);
      }
      if (rule.groups.empty() ||
          rule.groups.size() !=
              static_cast<size_t>(rule.pattern->NumberOfCapturingGroups())) {
        wrong =
            "every group of the pattern captures (?P<secret>...), <user>, "
            "<host> or <path>, and there must be one";
      }
    }
    if (!wrong.empty()) return Fail(file.ErrorAt(item, wrong));
    if (const Node* const examples = one.Find("examples")) {
      if (!examples->IsList())
        return Fail(file.ErrorAt(*examples, "expected a list of examples"));
      for (const Node& node : examples->items) {
        static constexpr std::string_view kExample[] = {"text", "gives"};
        LAMINA_ASSIGN(const Members example, Members::Of(file, node, kExample));
        Rule::Example& added = rule.examples.emplace_back();
        LAMINA_ASSIGN(added.text, example.Text("text"));
        LAMINA_ASSIGN(added.gives, example.Texts("gives"));
      }
    }
    rules_.push_back(std::move(rule));
  }
  return {};
}

void SecretTable::FindBy(const Rule& rule, std::string_view text,
                         std::vector<SecretSpan>& spans) {
  const re2::StringPiece piece(text.data(), text.size());
  std::vector<re2::StringPiece> groups(
      static_cast<size_t>(rule.pattern->NumberOfCapturingGroups()) + 1);
  size_t from = 0;
  while (from <= text.size() &&
         rule.pattern->Match(piece, from, text.size(), RE2::UNANCHORED,
                             groups.data(), static_cast<int>(groups.size()))) {
    size_t last = from + 1;
    for (const auto& [group, kind] : rule.groups) {
      const re2::StringPiece& found = groups[static_cast<size_t>(group)];
      if (found.data() == nullptr || found.empty()) continue;
      const auto begin = static_cast<size_t>(found.data() - text.data());
      last = std::max(last, begin + found.size());
      if (rule.opaque != Opaque::kAny && kind == SecretKind::kSecret &&
          !IsOpaque(text.substr(begin, found.size()),
                    rule.opaque == Opaque::kNamed))
        continue;
      spans.push_back({begin, begin + found.size(), kind});
    }
    from = last;
  }
}

std::vector<SecretSpan> SecretTable::Find(std::string_view text) const {
  std::vector<SecretSpan> spans;
  std::vector<int> which;
  RE2::Set::ErrorInfo error{};
  const re2::StringPiece piece(text.data(), text.size());
  if (!any_->Match(piece, &which, &error)) {
    if (error.kind == RE2::Set::kNoError) return spans;
    // It ran out of memory: each by itself.
    for (size_t i = 0; i < rules_.size(); ++i)
      which.push_back(static_cast<int>(i));
  }
  for (const int i : which) FindBy(rules_[static_cast<size_t>(i)], text, spans);
  Sort(spans);
  return spans;
}

std::vector<std::string> SecretTable::CheckExamples() const {
  std::vector<std::string> problems;
  for (const Rule& rule : rules_) {
    for (const Rule::Example& example : rule.examples) {
      std::vector<SecretSpan> spans;
      FindBy(rule, example.text, spans);
      Sort(spans);
      std::vector<std::string> found;
      for (const SecretSpan& span : spans)
        found.push_back(example.text.substr(span.begin, span.end - span.begin));
      if (found == example.gives) continue;
      std::string list;
      for (const std::string& text : found)
        list += (list.empty() ? "'" : ", '") + text + "'";
      problems.push_back(rule.id + ": the example '" + example.text +
                         "' gives " + (list.empty() ? "nothing" : list));
    }
    for (const std::string& text : rule.counter_examples) {
      std::vector<SecretSpan> spans;
      FindBy(rule, text, spans);
      if (spans.empty()) continue;
      problems.push_back(rule.id + ": the counter-example '" + text +
                         "' is matched by it");
    }
  }
  return problems;
}

}  // namespace lamina::rules
