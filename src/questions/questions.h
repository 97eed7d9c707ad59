// SPDX-License-Identifier: Apache-2.0
//
// The one list of what can be asked, and the way to ask: what a question takes
// is described where it is answered (bodies.h); a row of the list says which of
// that others than the command line are told, and how it is named to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lamina/ask.h"
#include "questions/bodies.h"

namespace lamina::questions {

// What makes sense behind a question, with the same trace.
struct NextQuestion {
  const char* question;
  const char* why;
};

struct Question {
  QuestionInfo info;
  Body (*describe)(Description& args, Asker& asker);
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

// Answers with all tables, without a terminal: what there is to say joins the
// notes of the document. Its checks that fail are no error. Errors: kUsage for
// a parameter that there is not, with the nearest name, a wrong type, a value
// or number that cannot be, and a required one that is missing; those of the
// question; kCancelled when it was stopped.
Result<Answer> Ask(const Question& question, const Params& params,
                   Asker& asker);
// The same for a question whose parameters are a struct that is filled already.
Result<Answer> Complete(const Body& body, Asker& asker);

// Names in messages for who asks by values: parameters and questions; an agent
// knows those that it is shown.
NamesOf ParamsOf(const Question& question, bool for_agent);
// Of an agent where no question is asked: the questions that it is shown.
NamesOf AgentNames();
// In all that the answer says.
void PutNames(Answer& answer, const NamesOf& names);
void PutNames(Document& document, const NamesOf& names);

}  // namespace lamina::questions
