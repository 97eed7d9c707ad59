// SPDX-License-Identifier: Apache-2.0
//
// The traces that replayed graphs were captured in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/cudagraph/annotate.h"
#include "engine/session.h"

namespace lamina::engine {

struct Captures {
  std::vector<std::string> files;
  std::vector<std::unique_ptr<Session>> sessions;  // by file
  std::vector<const analysis::Context*> contexts;  // by file
  std::vector<cudagraph::Segment> segments;
};

// The rank of a trace: what it says of itself, else the number behind "rank" in
// its name.
std::optional<int64_t> RankOf(const trace::Trace& trace,
                              const std::string& path);

// Opens files and folders of traces and collects the segments of all. Batch
// and mode of a file come from an execution_details.json beside it, where there
// is one. `tags` is RE2. Errors: unusable input, a bad pattern.
Result<Captures> OpenCaptures(const std::vector<std::string>& paths,
                              const std::string& tags,
                              const OpenOptions& options);

}  // namespace lamina::engine
