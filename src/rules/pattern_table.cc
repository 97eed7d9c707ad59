// SPDX-License-Identifier: Apache-2.0
//
// Two engines behind one look-up. Testing rule after rule needs about 10 us a
// name; a combined automaton (RE2::Set) needs 1 us but builds its states while
// it runs, which costs more than it saves below a few hundred names. So the
// automaton is made when that many names have been asked for.
//
// To compile all patterns takes longer than all that is asked of a small trace.
// Those that come with the program compile, as its tests know, and only when a
// name has a text that the pattern cannot do without (Needed).
#include "rules/pattern_table.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <re2/re2.h>
#include <re2/set.h>
#include <vector>

#include "base/cpp_name.h"
#include "base/parallel.h"
#include "rules/pattern_compiler.h"

namespace lamina::rules {

namespace {

// Instructions of compiled patterns. Some names a byte of work each: a pattern
// of many repeats would take minutes on a trace.
constexpr int kMaxProgram = 20'000;
constexpr int64_t kMaxPrograms = 500'000;

}  // namespace

RE2::Options QuietPatterns(int64_t most_bytes) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(most_bytes);
  return options;
}

std::string PatternCompiler::Compile(const std::string& match,
                                     const std::string& pattern,
                                     std::unique_ptr<RE2>& out) {
  if (match.empty()) return "an empty pattern matches every name";
  out = std::make_unique<RE2>(pattern, QuietPatterns(kMaxPatternBytes));
  if (!out->ok()) return "bad pattern '" + match + "': " + out->error();
  total_ += out->ProgramSize();
  if (out->ProgramSize() > kMaxProgram)
    return "the pattern is too large: it repeats too much";
  if (total_ > kMaxPrograms) return "the patterns are too large together";
  return {};
}

// Two engines behind one look-up. Testing rule after rule needs about 10 us a
// name; a combined automaton (RE2::Set) needs 1 us but builds its states while
// it runs, which costs more than it saves below a few hundred names. So the
// automaton is made when that many names have been asked for.

namespace {

constexpr size_t kNamesForSet = 400;
constexpr int64_t kMaxAutomatonBytes = int64_t{64} << 20;

std::string PatternOf(const PatternRule& rule) {
  std::string text = rule.ignore_case ? "(?i)" : "";
  return text + (rule.anchored ? "^(?:" + rule.match + ")$" : rule.match);
}

// Whether the file of a rule is part of the program.
bool IsBuiltin(std::string_view file) { return file.starts_with("builtin:"); }

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Texts in lower case of which every name has one that a pattern matches:
// the longest plain text of each alternative. Empty: nothing is known.
class NeededTexts {
 public:
  static std::vector<std::string> Of(std::string_view pattern) {
    NeededTexts reader(pattern);
    return reader.Read() ? std::move(reader.found_)
                         : std::vector<std::string>();
  }

 private:
  explicit NeededTexts(std::string_view pattern) : left_(pattern) {}

  bool Read() {
    while (!left_.empty()) {
      const char c = left_.front();
      left_.remove_prefix(1);
      switch (c) {
        case '|':
          if (!EndAlternative()) return false;
          break;
        case '(':
          EndRun();
          if (!SkipGroup()) return false;
          break;
        case '[':
          EndRun();
          if (!SkipClass()) return false;
          break;
        case '?':
        case '*':
        case '{':
          // What stands before it need not be there.
          if (!run_.empty()) run_.pop_back();
          EndRun();
          if (c == '{' && !SkipRepeat()) return false;
          break;
        case '\\': {
          if (left_.empty()) return false;
          const char escaped = left_.front();
          left_.remove_prefix(1);
          if (IsWord(escaped)) {
            // A class, a place, or what has a meaning of its own.
            if (std::string_view("bBdDwWsSAz").find(escaped) ==
                std::string_view::npos)
              return false;
            EndRun();
          } else {
            Add(escaped);
          }
          break;
        }
        case '.':
        case '^':
        case '$':
        case '+':
          EndRun();
          break;
        default:
          Add(c);
      }
    }
    return EndAlternative();
  }

  static bool IsWord(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  }
  // Letters that are not ASCII have other cases of their own.
  void Add(char c) {
    if ((static_cast<unsigned char>(c) & 0x80) != 0) {
      EndRun();
    } else {
      run_ += Lower(c);
    }
  }
  void EndRun() {
    if (run_.size() > longest_.size()) longest_ = run_;
    run_.clear();
  }
  bool EndAlternative() {
    EndRun();
    if (longest_.empty()) return false;
    found_.push_back(std::move(longest_));
    longest_.clear();
    return true;
  }
  bool SkipRepeat() {
    const size_t at = left_.find_first_not_of("0123456789,");
    if (at == std::string_view::npos || left_[at] != '}') return false;
    left_.remove_prefix(at + 1);
    return true;
  }
  bool SkipTo(char end) {
    const size_t at = left_.find(end);
    if (at == std::string_view::npos) return false;
    left_.remove_prefix(at + 1);
    return true;
  }
  bool SkipClass() {
    if (left_.starts_with("^")) left_.remove_prefix(1);
    if (left_.starts_with("]")) left_.remove_prefix(1);
    while (!left_.empty() && left_.front() != ']') {
      if (left_.starts_with("[:")) return false;
      left_.remove_prefix(left_.front() == '\\' && left_.size() > 1 ? 2 : 1);
    }
    return SkipTo(']');
  }
  // Behind its '('. Flags may change what follows: those of case do not matter.
  bool SkipGroup() {
    if (left_.starts_with("?i)")) {
      left_.remove_prefix(3);
      return true;
    }
    if (left_.starts_with("?") && !left_.starts_with("?:") &&
        !left_.starts_with("?P<") && !left_.starts_with("?i:"))
      return false;
    for (int open = 1; open > 0;) {
      if (left_.empty()) return false;
      const char c = left_.front();
      left_.remove_prefix(1);
      if (c == '\\') {
        if (left_.empty()) return false;
        left_.remove_prefix(1);
      } else if (c == '[') {
        if (!SkipClass()) return false;
      } else {
        open += c == '(' ? 1 : c == ')' ? -1 : 0;
      }
    }
    return true;
  }

  std::string_view left_;
  std::string run_, longest_;
  std::vector<std::string> found_;
};

// A pattern that is compiled when a name may match it.
class LazyPattern {
 public:
  LazyPattern(std::string_view match, std::unique_ptr<RE2> compiled)
      : needed_(NeededTexts::Of(match)), compiled_(std::move(compiled)) {}

  // `lower` is the name in lower case; null: any may match.
  bool Matches(const PatternRule& rule, const re2::StringPiece& name,
               const std::string* lower) const {
    if (lower != nullptr && !needed_.empty() &&
        std::none_of(needed_.begin(), needed_.end(), [&](const auto& text) {
          return lower->find(text) != std::string::npos;
        }))
      return false;
    std::call_once(made_, [&] {
      if (compiled_ == nullptr)
        compiled_ = std::make_unique<RE2>(PatternOf(rule),
                                          QuietPatterns(kMaxPatternBytes));
    });
    return compiled_->ok() && RE2::PartialMatch(name, *compiled_);
  }

 private:
  const std::vector<std::string> needed_;
  mutable std::once_flag made_;
  mutable std::unique_ptr<RE2> compiled_;
};

}  // namespace

struct PatternTable::Impl {
  std::vector<PatternRule> rules;
  std::vector<std::unique_ptr<LazyPattern>> patterns;
  mutable std::atomic<size_t> asked{0};
  mutable std::once_flag set_made;
  mutable std::unique_ptr<RE2::Set> set;
  mutable std::atomic<bool> set_ready{false};

  void MakeSet() const {
    auto made = std::make_unique<RE2::Set>(QuietPatterns(kMaxAutomatonBytes),
                                           RE2::UNANCHORED);
    for (const PatternRule& rule : rules) {
      if (made->Add(PatternOf(rule), nullptr) < 0) return;
    }
    if (!made->Compile()) return;
    set = std::move(made);
    set_ready = true;
  }

  int FindRaw(std::string_view name) const {
    const re2::StringPiece text(name.data(), name.size());
    if (asked.fetch_add(1, std::memory_order_relaxed) >= kNamesForSet) {
      std::call_once(set_made, [this] { MakeSet(); });
    }
    if (set_ready) {
      std::vector<int> hits;
      RE2::Set::ErrorInfo info{};
      if (set->Match(text, &hits, &info)) {
        return *std::min_element(hits.begin(), hits.end());
      }
      if (info.kind == RE2::Set::kNoError) return kNone;
      // The automaton ran out of memory: rule by rule.
    }
    // Letters beyond ASCII have cases of their own: nothing is left out.
    const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0x80) != 0;
    });
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (patterns[i]->Matches(rules[i], text, plain ? &lower : nullptr))
        return static_cast<int>(i);
    }
    return kNone;
  }
};

PatternTable::PatternTable() : impl_(std::make_unique<Impl>()) {}
PatternTable::~PatternTable() = default;
PatternTable::PatternTable(PatternTable&&) noexcept = default;
PatternTable& PatternTable::operator=(PatternTable&&) noexcept = default;

Result<PatternTable> PatternTable::Make(std::vector<PatternRule> rules) {
  PatternTable table;
  table.impl_->rules = std::move(rules);
  PatternCompiler compiler;
  for (const PatternRule& rule : table.impl_->rules) {
    std::unique_ptr<RE2> pattern;
    if (!IsBuiltin(rule.file)) {
      if (const std::string wrong =
              compiler.Compile(rule.match, PatternOf(rule), pattern);
          !wrong.empty()) {
        Error error = InputError(rule.file, wrong, "write it in RE2 syntax");
        error.line = rule.line;
        return Fail(error);
      }
    }
    table.impl_->patterns.push_back(
        std::make_unique<LazyPattern>(rule.match, std::move(pattern)));
  }
  return table;
}

const std::vector<PatternRule>& PatternTable::rules() const {
  return impl_->rules;
}

int PatternTable::Find(std::string_view name) const {
  const int found = impl_->FindRaw(name);
  if (found != kNone || !name.starts_with("_Z")) return found;
  const std::string demangled = Demangle(name);
  return demangled == name ? kNone : impl_->FindRaw(demangled);
}

std::vector<int> PatternTable::FindAll(std::span<const std::string_view> names,
                                       int threads) const {
  std::vector<int> out(names.size(), kNone);
  ParallelRanges(threads, names.size(), 256,
                 [&](size_t begin, size_t end, size_t) {
                   for (size_t i = begin; i < end; ++i) out[i] = Find(names[i]);
                 });
  return out;
}

Result<std::vector<PatternRule>> ReadPatternRules(const DataFile& file,
                                                  const Node& list,
                                                  std::string_view value_key) {
  const std::string_view keys[] = {
      "id",       "match", "ignore_case", value_key, "part",  "also",
      "strength", "why",   "examples",    "not",     "origin"};
  if (!list.IsList())
    return Fail(file.ErrorAt(list, "expected a list of rules"));
  std::vector<PatternRule> rules;
  PatternCompiler compiler;
  for (const Node& item : list.items) {
    LAMINA_ASSIGN(const Members members, Members::Of(file, item, keys));
    PatternRule rule;
    LAMINA_ASSIGN(rule.id, members.Text("id"));
    LAMINA_ASSIGN(rule.match, members.Text("match"));
    LAMINA_ASSIGN(rule.ignore_case, members.BoolOr("ignore_case", false));
    LAMINA_ASSIGN(rule.value, members.Text(value_key));
    rule.part = members.TextOr("part", "");
    rule.also = members.TextOr("also", "");
    rule.strength = members.TextOr("strength", "");
    rule.why = members.TextOr("why", "");
    LAMINA_ASSIGN(rule.examples, members.Texts("examples"));
    LAMINA_ASSIGN(rule.counter_examples, members.Texts("not"));
    rule.file = file.name;
    rule.line = item.line;
    if (!IsBuiltin(rule.file)) {
      std::unique_ptr<RE2> pattern;
      if (const std::string wrong =
              compiler.Compile(rule.match, PatternOf(rule), pattern);
          !wrong.empty()) {
        return Fail(
            file.ErrorAt(*item.Find("match"), wrong, "write it in RE2 syntax"));
      }
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<PatternTable> ReadPatternTable(
    const std::vector<std::shared_ptr<const DataFile>>& files,
    std::string_view list_key, std::string_view value_key) {
  std::vector<PatternRule> all;
  for (const auto& file : files) {
    const Node* const list = file->root.Find(list_key);
    if (list == nullptr) continue;
    LAMINA_ASSIGN(auto rules, ReadPatternRules(*file, *list, value_key));
    for (PatternRule& rule : rules) all.push_back(std::move(rule));
  }
  return PatternTable::Make(std::move(all));
}

std::vector<std::string> CheckExamples(const PatternTable& table) {
  std::vector<std::string> violations;
  PatternCompiler compiler;
  for (size_t i = 0; i < table.rules().size(); ++i) {
    const PatternRule& rule = table.rules()[i];
    std::unique_ptr<RE2> compiled;
    if (const std::string wrong =
            compiler.Compile(rule.match, PatternOf(rule), compiled);
        !wrong.empty()) {
      violations.push_back(rule.id + ": " + wrong);
      continue;
    }
    // What a look-up expects of names that match.
    const std::vector<std::string> needed = NeededTexts::Of(rule.match);
    for (const auto* names : {&rule.examples, &rule.counter_examples}) {
      for (std::string name : *names) {
        if (needed.empty() || !RE2::PartialMatch(name, *compiled)) continue;
        std::transform(name.begin(), name.end(), name.begin(), Lower);
        if (std::none_of(needed.begin(), needed.end(), [&](const auto& text) {
              return name.find(text) != std::string::npos;
            }))
          violations.push_back(rule.id + ": '" + name + "' has no '" +
                               needed[0] + "'");
      }
    }
    for (const std::string& example : rule.examples) {
      const int found = table.Find(example);
      if (found == static_cast<int>(i)) continue;
      violations.push_back(
          rule.id + ": the example '" + example + "' is matched by " +
          (found == PatternTable::kNone ? "no rule" : table.rule(found).id));
    }
    for (const std::string& example : rule.counter_examples) {
      if (table.Find(example) == static_cast<int>(i)) {
        violations.push_back(rule.id + ": the counter-example '" + example +
                             "' is matched by it");
      }
    }
  }
  return violations;
}

}  // namespace lamina::rules
