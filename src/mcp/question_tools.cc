// SPDX-License-Identifier: Apache-2.0
//
// Questions as tools: what an agent is shown of each.
#include <algorithm>
#include <fmt/format.h>

#include "mcp/tools.h"
#include "questions/questions.h"

namespace lamina::mcp {
namespace {

using questions::NextQuestion;
using questions::Question;

Param ParamOf(const ParamInfo& info) {
  static constexpr Type kTypes[] = {Type::kFlag, Type::kWhole, Type::kReal,
                                    Type::kText};
  static constexpr Role kRoles[] = {Role::kValue, Role::kPath, Role::kOutput};
  const bool trace = info.name == "trace" && info.required;
  return {.name = info.name,
          .doc = trace ? "Path or handle of a trace" : info.doc,
          .type = kTypes[static_cast<size_t>(info.type)],
          .role = kRoles[static_cast<size_t>(info.role)],
          .required = info.required,
          .many = info.many,
          .choices = info.choices,
          .low = info.low,
          .high = info.high,
          .default_text = info.default_text};
}

ParamValue ValueOf(const Input& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

// What a call says, with the names of files as the command is to read them.
Params ParamsOf(const Call& call, const std::vector<Param>& params,
                const Inputs& inputs) {
  Params out;
  for (const Param& param : params) {
    const auto found = call.arguments.find(param.name);
    if (found == call.arguments.end()) continue;
    const auto text = [&](const Input& value) {
      const auto given = value.get<std::string>();
      return param.role == Role::kPath ? inputs.NameOf(given) : given;
    };
    if (found->is_array()) {
      std::vector<std::string> texts;
      for (const Input& value : *found) texts.push_back(text(value));
      out[param.name] = std::move(texts);
    } else {
      out[param.name] =
          found->is_string() ? ParamValue(text(*found)) : ValueOf(*found);
    }
  }
  return out;
}

bool Names(const ParamValue& value, const std::string& input) {
  if (const auto* const text = std::get_if<std::string>(&value))
    return *text == input;
  const auto* const texts = std::get_if<std::vector<std::string>>(&value);
  return texts != nullptr &&
         std::find(texts->begin(), texts->end(), input) != texts->end();
}

// Which file was read where a folder was given.
void SayWhatWasRead(const Params& params, Document& document) {
  std::vector<std::string> read;
  for (const std::string& input : document.inputs) {
    if (std::none_of(params.begin(), params.end(), [&](const auto& param) {
          return Names(param.second, input);
        }))
      read.push_back(input);
  }
  constexpr size_t kMost = 4;
  if (read.empty() || read.size() > kMost) return;
  document.result.notes.push_back(
      MakeNote(Severity::kInfo, "inputs",
               fmt::format("Read {}.", fmt::join(read, ", "))));
}

// The calls that make sense behind one on a trace.
std::vector<Next> NextOf(const Question& question, const Call& call,
                         const Workshop& workshop) {
  std::vector<Next> out;
  if (!call.Has("trace")) return out;
  const std::string handle = workshop.inputs->HandleOf(call.Text("trace"));
  for (const NextQuestion& next : question.next) {
    Json arguments;
    arguments["trace"] = handle;
    out.push_back({next.question, std::move(arguments), next.why});
  }
  return out;
}

}  // namespace

questions::OpenTraces::Opening Workshop::OpeningFor(const Call& call) const {
  return {[progress = call.progress](uint64_t done, uint64_t total) {
            if (progress) progress({"reading", done, total});
          },
          call.stop};
}

Caller::Caller(const Workshop& workshop, const Call& call) {
  const questions::OpenTraces::Opening how = workshop.OpeningFor(call);
  traces.open = [open = workshop.traces, how](const std::string& path) {
    return open->Open(path, how);
  };
  asker.threads = workshop.threads;
  asker.is_agent = true;
  asker.traces = &traces;
  asker.stop = how.stop;
  asker.progress = [progress = how.progress](const std::string&) {
    return progress;
  };
}

void AddQuestionTools(const Workshop& workshop, bool writing,
                      std::vector<Tool>& tools) {
  for (const Question& question : questions::Questions()) {
    if (!question.for_agents || (question.info.writes && !writing)) continue;
    Tool tool;
    tool.name = question.info.name;
    tool.title = question.info.title;
    tool.doc = question.info.doc;
    tool.writes = question.info.writes;
    for (const size_t i : question.agent_params)
      tool.params.push_back(ParamOf(question.info.params[i]));
    tool.run = [&question, workshop,
                params = tool.params](const Call& call) -> Outcome {
      const Params asked = ParamsOf(call, params, *workshop.inputs);
      Caller caller(workshop, call);
      auto answer = questions::Ask(question, asked, caller.asker);
      if (!answer) return Fail(std::move(answer).error());
      Document document = std::move(answer->document);
      SayWhatWasRead(asked, document);
      document.command = question.info.name;
      return Made{std::move(document), NextOf(question, call, workshop)};
    };
    tools.push_back(std::move(tool));
  }
}

}  // namespace lamina::mcp
