// SPDX-License-Identifier: Apache-2.0
//
// Pieces of Python: names, literals, targets of ops, calls broken at 100
// columns, and templates of data/passes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rules/document.h"

namespace lamina::generate {

inline constexpr size_t kColumns = 100;

// A name that Python and the generated code have free: "x", "from_".
std::string Identifier(std::string_view name);
// "fuse_add_rms_norm" -> "FuseAddRmsNorm".
std::string ClassName(std::string_view key);

// A literal as a dump or a rule shows it: numbers, True, None, dtypes, lists
// of them; other words are strings. Nothing for what may be code or holds a
// name ("<function ..>").
std::optional<std::string> Literal(std::string_view text);
// Whether a literal is a whole number: "7.0" is none.
bool IsWhole(std::string_view text);
// "..." with escapes.
std::string Quoted(std::string_view text);

// "builtin.getitem" -> "operator.getitem", "fn.f" -> "f", else torch.ops....
// Nothing for a built-in function that is not known.
std::optional<std::string> Target(std::string_view op);

// prefix(items)suffix: on one line, or an item per line with commas.
std::string Bracketed(size_t indent, std::string_view prefix,
                      const std::vector<std::string>& items,
                      std::string_view suffix, bool tuple = false);

// [a, b] or (a, b), on one line or more.
std::string Listed(const std::vector<std::string>& items, bool tuple);

// Adds a line (or several) at a depth of 4 blanks each.
class Code {
 public:
  void Line(size_t depth, std::string_view text);
  void Blank() { text_ += '\n'; }
  std::string& text() { return text_; }

 private:
  std::string text_;
};

class Templates {
 public:
  static Result<Templates> Load(const rules::DataSet& data);
  // `name` with its {{keys}} filled in. A line with nothing but a key takes
  // the indent of the key for all lines of its value, and goes when that is
  // empty.
  std::string Fill(std::string_view name,
                   const std::map<std::string, std::string>& values) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace lamina::generate
