// SPDX-License-Identifier: Apache-2.0
//
// What clients and servers write down of each request: when it began, when each
// of its tokens came, how long it was. Formats are recognised by their content
// (docs/serving.md lists them); nothing in a file is trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina::serving {

// What the times of a file count from.
enum class Clock : uint8_t {
  kEpoch,  // the wall clock
  kOwn,    // a clock of the client: any zero
  kNone,   // no request says when it began
};
std::string_view ClockName(Clock clock);

struct Request {
  std::string id;        // unique in its file: of equal ids the later get "#2"
  int64_t start_ns = 0;  // on the clock of the file
  std::optional<int64_t> input_tokens, cached_tokens, output_tokens;
  // From the start to each chunk of tokens, ascending and never empty; where
  // Records::every_token is not set, to the first and the last.
  std::vector<int64_t> chunk_ns;
  // From the start until a pass took it, where the server noted that.
  std::optional<int64_t> queue_ns;
};

struct Records {
  std::string format;  // "vLLM bench"
  Clock clock = Clock::kNone;
  bool every_token = true;
  std::vector<Request> requests;  // in the order of the file
  // Requests that were left out: failed or cancelled, of a warm-up, and those
  // whose fields say nothing that can be used.
  size_t failed = 0, warmup = 0, unusable = 0;
};

struct ReadOptions {
  std::optional<Clock> clock;  // else what the file says
  // Of files with a line per run: the line, from 1; none: the last.
  std::optional<int64_t> line;
};

// Errors: kInput for a file that is none of the formats, or without a request.
Result<Records> ReadRecords(const std::string& path,
                            const ReadOptions& options);
// The same of a text; `name` is what messages call it.
Result<Records> ParseRecords(const std::string& name, std::string text,
                             const ReadOptions& options);

}  // namespace lamina::serving
