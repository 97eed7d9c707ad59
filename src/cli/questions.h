// SPDX-License-Identifier: Apache-2.0
//
// The one list of what can be asked: a row names a command and those of its
// options that who asks may use; types, values, ranges and defaults come from
// the command itself. `lamina mcp`, the C++ library and the module for Python
// are made of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lamina/ask.h"

namespace lamina::cli {

// What makes sense behind a question, with the same trace.
struct NextQuestion {
  const char* question;
  const char* why;
};

struct Question {
  QuestionInfo info;
  std::vector<std::string> command;  // {"graph", "layer"}
  std::vector<NextQuestion> next;
  // Also reads files that no parameter names: findings that are known.
  bool reads_beside = false;
  // An agent pays for every tool and parameter that it is shown: it gets these
  // (positions in info.params), and only some questions.
  bool for_agents = false;
  std::vector<size_t> agent_params;
};

const std::vector<Question>& Questions();
// Errors: kUsage, with the nearest name.
Result<const Question*> FindQuestion(std::string_view name);

// The command line of a question, for RunInHost. Errors: kUsage for a parameter
// that there is not, with the nearest name, a wrong type, a value or number
// that cannot be, and a required one that is missing.
Result<std::vector<std::string>> WordsOf(const Question& question,
                                         const Params& params);

// Who asks knows parameters, no options of a command line; an agent those that
// it is shown.
Error InWordsOf(const Question& question, Error error, bool for_agent = false);

}  // namespace lamina::cli
