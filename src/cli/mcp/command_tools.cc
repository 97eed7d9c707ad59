// SPDX-License-Identifier: Apache-2.0
//
// Questions as tools: what an agent is shown of each.
#include <algorithm>
#include <fmt/format.h>

#include "cli/mcp/tools.h"
#include "cli/questions.h"

namespace lamina::cli {
namespace {

mcp::Param ParamOf(const ParamInfo& info) {
  static constexpr mcp::Type kTypes[] = {mcp::Type::kFlag, mcp::Type::kWhole,
                                         mcp::Type::kReal, mcp::Type::kText};
  static constexpr mcp::Role kRoles[] = {mcp::Role::kValue, mcp::Role::kPath,
                                         mcp::Role::kOutput};
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

ParamValue ValueOf(const mcp::Input& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

// What a call says, with the names of files as the command is to read them.
Params ParamsOf(const mcp::Call& call, const std::vector<mcp::Param>& params,
                const mcp::Inputs& inputs) {
  Params out;
  for (const mcp::Param& param : params) {
    const auto found = call.arguments.find(param.name);
    if (found == call.arguments.end()) continue;
    const auto text = [&](const mcp::Input& value) {
      const auto given = value.get<std::string>();
      return param.role == mcp::Role::kPath ? inputs.NameOf(given) : given;
    };
    if (found->is_array()) {
      std::vector<std::string> texts;
      for (const mcp::Input& value : *found) texts.push_back(text(value));
      out[param.name] = std::move(texts);
    } else {
      out[param.name] =
          found->is_string() ? ParamValue(text(*found)) : ValueOf(*found);
    }
  }
  return out;
}

// Which file was read where a folder was given: commands say it on a terminal.
void SayWhatWasRead(const std::vector<std::string>& words, Document& document) {
  std::vector<std::string> read;
  for (const std::string& input : document.inputs) {
    const bool given =
        std::any_of(words.begin(), words.end(), [&](const std::string& word) {
          return word == input || word.ends_with("=" + input);
        });
    if (!given) read.push_back(input);
  }
  constexpr size_t kMost = 4;
  if (read.empty() || read.size() > kMost) return;
  document.result.notes.push_back(
      MakeNote(Severity::kInfo, "inputs",
               fmt::format("Read {}.", fmt::join(read, ", "))));
}

// The calls that make sense behind one on a trace.
std::vector<mcp::Next> NextOf(const Question& question, const mcp::Call& call,
                              const Workshop& workshop) {
  std::vector<mcp::Next> out;
  if (!call.Has("trace")) return out;
  const std::string handle = workshop.inputs->HandleOf(call.Text("trace"));
  for (const NextQuestion& next : question.next) {
    mcp::Json arguments;
    arguments["trace"] = handle;
    out.push_back({next.question, std::move(arguments), next.why});
  }
  return out;
}

}  // namespace

Host Workshop::HostFor(const mcp::Call& call) const {
  Host host;
  host.stop = call.stop;
  host.progress = [progress = call.progress](uint64_t done, uint64_t total) {
    if (progress) progress({"reading", done, total});
  };
  host.open = [traces = traces, host](const std::string& path) {
    return traces->Open(path, host);
  };
  return host;
}

void AddCommandTools(const Workshop& workshop, bool writing,
                     std::vector<mcp::Tool>& tools) {
  for (const Question& question : Questions()) {
    if (!question.for_agents || (question.info.writes && !writing)) continue;
    mcp::Tool tool;
    tool.name = question.info.name;
    tool.title = question.info.title;
    tool.doc = question.info.doc;
    tool.writes = question.info.writes;
    for (const size_t i : question.agent_params)
      tool.params.push_back(ParamOf(question.info.params[i]));
    tool.run = [&question, workshop,
                params = tool.params](const mcp::Call& call) -> mcp::Outcome {
      const auto words =
          WordsOf(question, ParamsOf(call, params, *workshop.inputs));
      if (!words) return Fail(words.error());
      auto run = RunInHost(*words, workshop.HostFor(call));
      if (!run) return Fail(InWordsOf(question, std::move(run).error(), true));
      Document document = *std::move(run);
      SayWhatWasRead(*words, document);
      document.command = question.info.name;
      return mcp::Made{std::move(document), NextOf(question, call, workshop)};
    };
    tools.push_back(std::move(tool));
  }
}

}  // namespace lamina::cli
