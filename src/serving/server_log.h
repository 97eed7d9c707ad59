// SPDX-License-Identifier: Apache-2.0
//
// Logs of servers: what a line says of one pass. They fill in the load of
// passes that a trace has no annotation of, and how many requests waited.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "serving/join.h"

namespace lamina::serving {

struct LogLine {
  std::optional<int64_t> prompts, prompt_tokens, generating, waiting;
  std::optional<double> elapsed_ms;  // of the pass, by the host
};

struct ServerLog {
  std::string format;          // "vLLM log"
  std::vector<LogLine> lines;  // one per pass, in order
  // Of SGLang, which has a line for each pass with prompts, and for one of many
  // decodes: those with prompts alone.
  bool prompts_only = false;
  size_t other_lines = 0;  // that say nothing of a pass
};

// Errors: kInput where no line says anything.
Result<ServerLog> ParseServerLog(const std::string& name,
                                 std::string_view text);

// Which line begins with the first pass: the placement in which loads that
// passes know already are equal, else times of the host and of passes go
// together; nothing where none fits, or two do. Lines in order, each of one
// pass. Fills what passes lack.
struct LogFit {
  size_t filled = 0;  // passes
  bool placed = false;
};
LogFit ApplyServerLog(const ServerLog& log, std::vector<ServedPass>& passes);

}  // namespace lamina::serving
