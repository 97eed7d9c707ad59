// SPDX-License-Identifier: Apache-2.0
//
// Text of a graph inside of a file that decorates it: prefixes of a log in
// front of each line, the tab of a payload, colours. The readers see the text
// alone; every position of it is known in the file, so that printing gives the
// file back byte for byte.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::graph {

class SourceText {
 public:
  // A part of a file as it stands.
  SourceText(std::string_view file, size_t begin, size_t end)
      : file_(file), text_(file.substr(begin, end - begin)), begin_(begin) {}

  // A copy without decoration: append pieces in order, then Close().
  explicit SourceText(std::string_view file)
      : file_(file), buffer_(std::make_shared<std::string>()) {}
  // Bytes [begin, end) of the file.
  void Append(size_t begin, size_t end);
  void Close() { text_ = *buffer_; }

  std::string_view text() const { return text_; }
  std::string_view file() const { return file_; }
  // Null when the text stands in the file as it is.
  std::shared_ptr<const std::string> buffer() const { return buffer_; }
  // The byte of the file at a byte of the text.
  size_t ToFile(size_t pos) const;
  // Past the byte in front of `end`: ends do not jump over decoration.
  size_t EndToFile(size_t end) const {
    return end == 0 ? ToFile(0) : ToFile(end - 1) + 1;
  }

 private:
  struct Piece {
    size_t at = 0;    // in the text
    size_t file = 0;  // in the file
  };

  std::string_view file_;
  std::shared_ptr<std::string> buffer_;
  std::string_view text_;
  size_t begin_ = 0;
  std::vector<Piece> pieces_;
};

// The text of lines [begin, end) of a file without ANSI colours.
SourceText WithoutColours(std::string_view file, size_t begin, size_t end);

// Logs that hold graphs: TORCH_LOGS with a prefix in front of each line, and
// structured traces (TORCH_TRACE) with payloads below their records.

// What a prefix of TORCH_LOGS says; length 0: the line has none.
struct LogPrefix {
  size_t length = 0;
  std::string_view frame;     // "0/0"
  std::string_view artifact;  // "aot_graphs"
  std::string_view rank;
};
LogPrefix ReadLogPrefix(std::string_view line);

// One message or payload without its decoration.
struct LogPart {
  std::string name;   // payload; empty for messages of a log
  std::string frame;  // compile id "0/0"; may be empty
  SourceText source;
  bool cut = false;  // the file ends inside
};

// Messages of TORCH_LOGS: runs of lines of one artifact and frame. Of several
// ranks the lowest is read.
std::vector<LogPart> LogMessages(std::string_view file);
// Payloads of a structured trace, in order.
std::vector<LogPart> TracePayloads(std::string_view file);
// Whether a line is a record of a structured trace.
bool IsTraceRecord(std::string_view line);

}  // namespace lamina::graph
