// SPDX-License-Identifier: Apache-2.0

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

constexpr int64_t kMaxPatternBytes = int64_t{8} << 20;
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

}  // namespace

struct PatternTable::Impl {
  std::vector<PatternRule> rules;
  std::vector<std::unique_ptr<RE2>> patterns;
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
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (RE2::PartialMatch(text, *patterns[i])) return static_cast<int>(i);
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
    if (const std::string wrong =
            compiler.Compile(rule.match, PatternOf(rule), pattern);
        !wrong.empty()) {
      Error error = InputError(rule.file, wrong, "write it in RE2 syntax");
      error.line = rule.line;
      return Fail(error);
    }
    table.impl_->patterns.push_back(std::move(pattern));
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
    std::unique_ptr<RE2> pattern;
    if (const std::string wrong =
            compiler.Compile(rule.match, PatternOf(rule), pattern);
        !wrong.empty()) {
      return Fail(
          file.ErrorAt(*item.Find("match"), wrong, "write it in RE2 syntax"));
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
  for (size_t i = 0; i < table.rules().size(); ++i) {
    const PatternRule& rule = table.rules()[i];
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
