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
#include "questions/asker.h"

namespace lamina::cli {

// What tools share; lives as long as the server.
struct Workshop {
  std::shared_ptr<OpenTraces> traces;
  mcp::Inputs* inputs = nullptr;
  int threads = 1;
  std::chrono::milliseconds time_limit{60'000};  // of a query

  OpenTraces::Opening OpeningFor(const mcp::Call& call) const;
};

// Who asks a question, while a call runs.
struct Caller {
  Caller(const Workshop& workshop, const mcp::Call& call);
  Caller(const Caller&) = delete;

  questions::OpenedTraces traces;
  questions::Asker asker;
};

// Questions as tools; `writing`: also those that write files.
void AddQuestionTools(const Workshop& workshop, bool writing,
                      std::vector<mcp::Tool>& tools);
// open_trace, list_traces, tables, query.
void AddTraceTools(const Workshop& workshop, std::vector<mcp::Tool>& tools);

// The pages of the skill, of tables, and prompts.
mcp::Library MakeLibrary();

}  // namespace lamina::cli
