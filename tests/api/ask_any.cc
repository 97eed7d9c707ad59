// SPDX-License-Identifier: Apache-2.0
//
// Asks a question through the public headers, for
// tests/checks/questions_test.py:
//
//   ask_any library|session FORMAT OUTPUT QUESTION [NAME=VALUE]...
//   ask_any list
//
// Writes the answer as the program does. A name that is given again has several
// values. "session" opens the trace and asks it. "list" prints a line for each
// question (name, command, "trace" where it is asked of one) and below it its
// parameters (name, option, "opening" where a session does not take it), parted
// by tabs.
#include <cstdio>
#include <cstdlib>
#include <lamina/session.h>

namespace {

int Refuse(const lamina::Error& error) {
  std::fprintf(stderr, "%s\n", error.ToString().c_str());
  return 3;
}

lamina::ParamValue ValueOf(lamina::ParamType type, const std::string& text) {
  switch (type) {
    case lamina::ParamType::kFlag:
      return text == "true";
    case lamina::ParamType::kInt:
      return static_cast<int64_t>(std::atoll(text.c_str()));
    case lamina::ParamType::kReal:
      return std::atof(text.c_str());
    case lamina::ParamType::kText:
      break;
  }
  return text;
}

lamina::Result<std::shared_ptr<const lamina::Document>> Ask(
    bool session, const std::string& question, lamina::Params params) {
  if (!session) {
    lamina::AskOptions options;
    options.allow_write = true;
    return lamina::Ask(question, params, options);
  }
  const auto trace =
      lamina::Session::Open(std::get<std::string>(params.at("trace")));
  if (!trace) return lamina::Fail(trace.error());
  params.erase("trace");
  lamina::RunOptions options;
  options.allow_write = true;
  return (*trace)->Ask(question, params, options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    for (const lamina::QuestionInfo& info : lamina::ListQuestions()) {
      std::printf("%s\t%s\t%s\n", info.name.c_str(), info.command.c_str(),
                  info.of_trace ? "trace" : "");
      for (const lamina::ParamInfo& param : info.params) {
        std::printf("\t%s\t%s\t%s\n", param.name.c_str(), param.option.c_str(),
                    param.at_opening ? "opening" : "");
      }
    }
    return 0;
  }
  if (argc < 5) return 2;
  const std::string question = argv[4];
  lamina::Params params;
  for (int i = 5; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    const std::string text = word.substr(name.size() + 1);
    for (const lamina::QuestionInfo& info : lamina::ListQuestions()) {
      if (info.name != question) continue;
      for (const lamina::ParamInfo& param : info.params) {
        if (param.name != name) continue;
        const auto known = params.find(name);
        if (known == params.end()) {
          params[name] = ValueOf(param.type, text);
        } else if (auto* one = std::get_if<std::string>(&known->second)) {
          known->second = std::vector<std::string>{*one, text};
        } else {
          std::get<std::vector<std::string>>(known->second).push_back(text);
        }
      }
    }
  }
  const auto answer =
      Ask(std::string(argv[1]) == "session", question, std::move(params));
  if (!answer) return Refuse(answer.error());
  const auto written = lamina::WriteDocument(**answer, argv[2], argv[3]);
  return written ? 0 : Refuse(written.error());
}
