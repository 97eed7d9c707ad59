// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a dump, each with its place and the line with a caret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina::graph {

enum class Level : uint8_t {
  kError,    // the line is not in the graph
  kWarning,  // it is, and something about it is doubtful
};

struct Diagnostic {
  Level level = Level::kError;
  uint32_t line = 0;    // 1-based; 0: the whole file
  uint32_t column = 0;  // 1-based byte
  std::string what;
  std::string excerpt;  // the line with a caret below; may be empty
  std::string note;
};

// Keeps the first of each level and counts all.
class Diagnostics {
 public:
  static constexpr size_t kKept = 20;

  void Add(Diagnostic diagnostic);
  // Whether one more of this level will be kept: saves making its text.
  bool Wants(Level level) const { return Count(level) < kKept; }
  void CountOnly(Level level) {
    ++(level == Level::kError ? errors_ : warnings_);
  }
  size_t Count(Level level) const {
    return level == Level::kError ? errors_ : warnings_;
  }
  bool empty() const { return errors_ + warnings_ == 0; }
  const std::vector<Diagnostic>& kept() const { return kept_; }

 private:
  std::vector<Diagnostic> kept_;
  size_t errors_ = 0;
  size_t warnings_ = 0;
};

// The line and a caret below byte `column` (0-based). Lines of more than 200
// bytes are cut to a window around the caret; control bytes are escaped.
std::string Excerpt(std::string_view line, size_t column);

// "FILE:LINE:COLUMN: error: what" with excerpt and note on lines of their own.
std::string Format(const Diagnostic& diagnostic, std::string_view file);
// All that were kept, then how many were not.
std::string Format(const Diagnostics& diagnostics, std::string_view file);
// As the error that ends a command.
Error ToError(const Diagnostic& diagnostic, std::string_view file);

}  // namespace lamina::graph
