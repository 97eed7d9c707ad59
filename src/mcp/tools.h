// SPDX-License-Identifier: Apache-2.0
//
// The tools that `lamina mcp` offers.
#pragma once

#include <memory>
#include <vector>

#include "mcp/protocol/inputs.h"
#include "mcp/protocol/library.h"
#include "mcp/protocol/tool.h"
#include "questions/asker.h"
#include "questions/open_traces.h"

namespace lamina::mcp {

// What tools share; lives as long as the server.
struct Workshop {
  std::shared_ptr<questions::OpenTraces> traces;
  Inputs* inputs = nullptr;
  int threads = 1;
  std::chrono::milliseconds time_limit{60'000};  // of a query

  questions::OpenTraces::Opening OpeningFor(const Call& call) const;
};

// Who asks a question, while a call runs.
struct Caller {
  Caller(const Workshop& workshop, const Call& call);
  Caller(const Caller&) = delete;

  questions::OpenedTraces traces;
  questions::Asker asker;
};

// Questions as tools; `writing`: also those that write files.
void AddQuestionTools(const Workshop& workshop, bool writing,
                      std::vector<Tool>& tools);
// open_trace, list_traces, tables, query.
void AddTraceTools(const Workshop& workshop, std::vector<Tool>& tools);

// The pages of the skill, of tables, and prompts.
Library MakeLibrary();

}  // namespace lamina::mcp
