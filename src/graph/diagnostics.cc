// SPDX-License-Identifier: Apache-2.0
#include "graph/diagnostics.h"

#include <algorithm>

#include "base/escape.h"

namespace lamina::graph {
namespace {

constexpr size_t kLongLine = 200;
constexpr size_t kWindow = 160;

// Moves forward to the start of a character.
size_t CharacterStart(std::string_view text, size_t pos) {
  while (pos < text.size() && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80)
    ++pos;
  return pos;
}

}  // namespace

void Diagnostics::Add(Diagnostic diagnostic) {
  const bool wanted = Wants(diagnostic.level);
  CountOnly(diagnostic.level);
  if (wanted) kept_.push_back(std::move(diagnostic));
}

std::string Excerpt(std::string_view line, size_t column) {
  column = std::min(column, line.size());
  size_t begin = 0;
  size_t end = line.size();
  if (line.size() > kLongLine) {
    begin = column > kWindow / 2 ? column - kWindow / 2 : 0;
    end = std::min(begin + kWindow, line.size());
    begin = end > kWindow ? std::min(begin, end - kWindow) : 0;
    begin = std::min(CharacterStart(line, begin), column);
    end = std::max(CharacterStart(line, end), column);
  }
  std::string out = begin > 0 ? "  ..." : "  ";
  const std::string before = EscapeTerminal(line.substr(begin, column - begin));
  const size_t caret = out.size() + DisplayWidth(before);
  out += before;
  out += EscapeTerminal(line.substr(column, end - column));
  if (end < line.size()) out += "...";
  return out + "\n" + std::string(caret, ' ') + "^";
}

std::string Format(const Diagnostic& diagnostic, std::string_view file) {
  std::string out = EscapeTerminal(file);
  if (diagnostic.line > 0) {
    out += ":" + std::to_string(diagnostic.line) + ":" +
           std::to_string(diagnostic.column);
  }
  out += diagnostic.level == Level::kError ? ": error: " : ": warning: ";
  out += diagnostic.what + "\n";
  if (!diagnostic.excerpt.empty()) out += diagnostic.excerpt + "\n";
  if (!diagnostic.note.empty()) out += "  note: " + diagnostic.note + "\n";
  return out;
}

std::string Format(const Diagnostics& diagnostics, std::string_view file) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.kept())
    out += Format(diagnostic, file);
  for (const Level level : {Level::kError, Level::kWarning}) {
    const size_t count = diagnostics.Count(level);
    if (count <= Diagnostics::kKept) continue;
    out += EscapeTerminal(file) + ": " +
           std::to_string(count - Diagnostics::kKept) + " more " +
           (level == Level::kError ? "errors\n" : "warnings\n");
  }
  return out;
}

Error ToError(const Diagnostic& diagnostic, std::string_view file) {
  Error error = InputError(std::string(file), diagnostic.what);
  error.line = diagnostic.line;
  error.column = diagnostic.column;
  error.excerpt = diagnostic.excerpt;
  if (!diagnostic.note.empty()) error.excerpt += "\n  note: " + diagnostic.note;
  return error;
}

}  // namespace lamina::graph
