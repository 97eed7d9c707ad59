// SPDX-License-Identifier: Apache-2.0
//
// Patterns of rules, as far as they stay small: a file of rules comes from
// anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <re2/re2.h>
#include <string>

namespace lamina::rules {

inline constexpr int64_t kMaxPatternBytes = int64_t{8} << 20;

// RE2 without messages on stderr.
RE2::Options QuietPatterns(int64_t most_bytes);

// Compiles one pattern after the other and adds up their sizes.
class PatternCompiler {
 public:
  // What is wrong with the pattern; empty when it is good. `match` is the text
  // that messages show, `pattern` what is compiled.
  std::string Compile(const std::string& match, const std::string& pattern,
                      std::unique_ptr<RE2>& out);

 private:
  int64_t total_ = 0;
};

}  // namespace lamina::rules
