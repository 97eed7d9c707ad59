// SPDX-License-Identifier: Apache-2.0
//
// Logs that hold graphs: TORCH_LOGS with a prefix in front of each line, and
// structured traces (TORCH_TRACE) with payloads below their records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/dialects/source_text.h"

namespace lamina::graph {

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
