// SPDX-License-Identifier: Apache-2.0
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

}  // namespace lamina::rules
