// SPDX-License-Identifier: Apache-2.0
//
// The tools that `lamina mcp` offers.
#pragma once

#include <memory>
#include <vector>

#include "cli/mcp/open_traces.h"
#include "mcp/inputs.h"
#include "mcp/library.h"
#include "mcp/tool.h"

namespace lamina::cli {

// What tools share; lives as long as the server.
struct Workshop {
  std::shared_ptr<OpenTraces> traces;
  mcp::Inputs* inputs = nullptr;
  int threads = 1;
  std::chrono::milliseconds time_limit{60'000};  // of a query

  // What a command may ask for while a call runs.
  Host HostFor(const mcp::Call& call) const;
};

// Commands as tools; `writing`: also those that write files.
void AddCommandTools(const Workshop& workshop, bool writing,
                     std::vector<mcp::Tool>& tools);
// open_trace, list_traces, tables, query.
void AddTraceTools(const Workshop& workshop, std::vector<mcp::Tool>& tools);

// The pages of the skill, of tables, and prompts.
mcp::Library MakeLibrary();

}  // namespace lamina::cli
