// SPDX-License-Identifier: Apache-2.0
#include "graph/dialects/source_text.h"

#include <algorithm>

namespace lamina::graph {

void SourceText::Append(size_t begin, size_t end) {
  if (begin >= end) return;
  // Pieces that follow each other in the file are one.
  if (pieces_.empty() ||
      pieces_.back().file + (buffer_->size() - pieces_.back().at) != begin)
    pieces_.push_back({buffer_->size(), begin});
  *buffer_ += file_.substr(begin, end - begin);
}

size_t SourceText::ToFile(size_t pos) const {
  if (!buffer_) return begin_ + pos;
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), pos,
                       [](size_t at, const Piece& p) { return at < p.at; });
  if (after == pieces_.begin()) return 0;
  const Piece& piece = *(after - 1);
  return piece.file + (pos - piece.at);
}

SourceText WithoutColours(std::string_view file, size_t begin, size_t end) {
  const std::string_view text = file.substr(begin, end - begin);
  if (text.find("\x1b[") == std::string_view::npos)
    return SourceText(file, begin, end);
  SourceText out(file);
  size_t done = 0;
  while (done < text.size()) {
    const size_t escape = text.find("\x1b[", done);
    const size_t stop = std::min(escape, text.size());
    out.Append(begin + done, begin + stop);
    if (escape == std::string_view::npos) break;
    // Parameters, then one letter.
    size_t pos = escape + 2;
    while (pos < text.size() &&
           (text[pos] == ';' || (text[pos] >= '0' && text[pos] <= '9')))
      ++pos;
    done = std::min(pos + 1, text.size());
  }
  out.Close();
  return out;
}

}  // namespace lamina::graph
