// SPDX-License-Identifier: Apache-2.0
#include "report/table/notes.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "report/table/grid.h"

namespace lamina::report::table {

std::string Wrap(std::string_view text, int width, int indent) {
  std::string out;
  size_t column = 0;
  const auto limit = static_cast<size_t>(std::max(width, 30));
  size_t pos = 0;
  bool line_start = true;
  while (pos < text.size()) {
    const size_t space = text.find(' ', pos);
    const std::string_view word = text.substr(
        pos, space == std::string_view::npos ? text.npos : space - pos);
    const size_t size = DisplayWidth(word);
    if (!line_start && column + 1 + size > limit) {
      out += '\n';
      out.append(static_cast<size_t>(indent), ' ');
      column = static_cast<size_t>(indent);
    } else if (!line_start) {
      out += ' ';
      ++column;
    }
    line_start = false;
    out += word;
    column += size;
    if (space == std::string_view::npos) break;
    pos = space + 1;
  }
  return out;
}

std::string FormatNotes(std::span<const Note> notes, int width, bool color) {
  const Style style(color);
  std::string out;
  const auto print = [&](const Note& note, std::string_view lead,
                         std::string_view paint) {
    std::string text = EscapeTerminal(note.text);
    if (note.worth_ns) {
      text = fmt::format("{} at most ({}): {}", HumanTime(*note.worth_ns),
                         note.claim, text);
    }
    const int indent = static_cast<int>(lead.size());
    out += std::string(paint) + std::string(lead) + std::string(style.reset);
    out += Wrap(text, width - indent, indent) + "\n";
  };
  for (const Note& note : notes) {
    if (note.severity == Severity::kVerdict) {
      out += std::string(style.bold) +
             Wrap(EscapeTerminal(note.text), width, 0) +
             std::string(style.reset) + "\n";
    }
  }
  // Warnings before the first opportunity are why it may not hold.
  const auto first = std::find_if(
      notes.begin(), notes.end(),
      [](const Note& note) { return note.severity == Severity::kOpportunity; });
  const auto warn = [&](auto begin, auto end) {
    for (; begin != end; ++begin) {
      if (begin->severity == Severity::kWarning)
        print(*begin, "  ! ", style.yellow);
    }
  };
  if (first != notes.end()) warn(notes.begin(), first);
  for (const Note& note : notes) {
    if (note.severity == Severity::kOpportunity) print(note, "  + ", "");
  }
  warn(first != notes.end() ? first : notes.begin(), notes.end());
  for (const Note& note : notes) {
    if (note.severity == Severity::kInfo) print(note, "  - ", style.dim);
  }
  return out;
}

}  // namespace lamina::report::table
