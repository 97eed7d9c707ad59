// SPDX-License-Identifier: Apache-2.0
#include "questions/questions.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace lamina::questions {
namespace {

using testing::HasSubstr;

TEST(Questions, AreDescribed) {
  std::set<std::string> names;
  for (const Question& question : Questions()) {
    const QuestionInfo& info = question.info;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.title.empty() || info.doc.empty()) << info.name;
    std::set<std::string> params;
    for (const ParamInfo& param : info.params) {
      const std::string where = info.name + " " + param.name;
      EXPECT_TRUE(params.insert(param.name).second) << where;
      EXPECT_EQ(param.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"),
                std::string::npos)
          << where;
      EXPECT_FALSE(param.doc.empty()) << where;
      // A place is a text.
      EXPECT_TRUE(param.type == ParamType::kText ||
                  param.role == ParamRole::kValue)
          << where;
    }
    const bool makes_files = std::any_of(
        info.params.begin(), info.params.end(),
        [](const ParamInfo& p) { return p.role == ParamRole::kOutput; });
    EXPECT_EQ(info.writes, makes_files) << info.name;
    for (const NextQuestion& next : question.next)
      EXPECT_TRUE(FindQuestion(next.question)) << info.name;
  }
}

// An option that is added to a command is asked, or is named here.
TEST(Questions, HaveEveryOptionOfTheirCommands) {
  const std::set<std::string> common = {"--html-max-mb", "--html-max-events",
                                        "--output",
                                        // Of the whole session.
                                        "--step", "--range"};
  const std::map<std::string, std::set<std::string>> not_asked = {
      {"report", {"--roofline", "--full"}},
      {"diagnose",
       {"--fail-on", "--abstain", "--explain", "--check", "--list-rules"}},
      {"layers", {"--show-layer-terminal", "--perfetto"}},
      {"path", {"--overlay", "--critical-only"}},
      {"diff", {"--fail-above", "--unknown"}},
      {"ranks", {"--engine", "--partials", "--shard", "--pictures"}},
      {"requests", {"--server-log"}},
      {"annotate", {"--require"}},
      {"memory", {"--fail-above", "--fail-leaks"}},
      {"graph layers", {"--all"}},
      {"graph layer",
       {"--render", "--render-limit", "--hide-views", "--show-views", "--ids"}},
      {"graph candidates", {"--template"}},
      {"graph review", {"--note"}},
      {"graph rewrite", {"--dump-dir", "--dump-all"}},
      {"graph log-diff", {"--all"}},
      {"graph print", {"--normalize", "--check", "--as"}},
      {"graph kernels", {"--all"}},
      {"graph pass", {"--check-only"}},
  };
  std::map<std::string, std::set<std::string>> asked;
  for (const Question& question : Questions()) {
    for (const ParamInfo& param : question.info.params)
      asked[question.info.command].insert(param.option);
  }
  for (const Question& question : Questions()) {
    const std::string& name = question.info.command;
    const auto left = not_asked.find(name);
    Description takes;
    Asker asker;
    question.describe(takes, asker);
    for (const Param& param : takes.params()) {
      const std::string one = param.LongOption();
      EXPECT_TRUE(asked[name].contains(one) || common.contains(one) ||
                  (left != not_asked.end() && left->second.contains(one)))
          << name << " " << one;
    }
  }
}

TEST(Questions, NameTheNearestThatThereIs) {
  const auto found = FindQuestion("layer");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(found.error().ToString(),
            "there is no question 'layer'; did you mean 'layers'?");
  const auto far = FindQuestion("\x1b[2J");
  ASSERT_FALSE(far);
  EXPECT_THAT(far.error().ToString(), HasSubstr("questions: report, diagnose"));
  EXPECT_EQ(far.error().ToString().find('\x1b'), std::string::npos);
}

// A question that says which values its fields have.
struct Fields {
  bool flag = false;
  int number = 7;
  uint32_t unsigned_number = 0;
  std::optional<int64_t> maybe;
  double real = 0.5;
  std::string text = "one";
  std::string input;
  std::vector<std::string> texts, pair;
};

Body DescribeFields(Description& args, Asker&) {
  auto fields = std::make_shared<Fields>();
  args.Add("input", fields->input, "Input").Required();
  args.Flag("--flag", fields->flag, "Flag");
  args.Add("-n,--number", fields->number, "Number")
      .Whole(2, 100000)
      .ShowDefault();
  args.Add("--unsigned-number", fields->unsigned_number, "Number");
  args.Add("--maybe", fields->maybe, "Number");
  args.Add("--real", fields->real, "Number").Within(0, 100).ShowDefault();
  args.Add("--text", fields->text, "Text").OneOf({"one", "two"}).ShowDefault();
  args.Add("--texts", fields->texts, "Texts").SplitAtCommas();
  args.Add("--pair", fields->pair, "Two").Count(2, 2);
  return [fields]() -> Result<Answer> {
    Answer answer;
    answer.document.command = fmt::format(
        "{} {} {} {} {} {} {} [{}] [{}]", fields->input, fields->flag,
        fields->number, fields->unsigned_number, fields->maybe.value_or(-1),
        fields->real, fields->text, fmt::join(fields->texts, "|"),
        fmt::join(fields->pair, "|"));
    return answer;
  };
}

Question FieldsQuestion() {
  const auto param = [](const char* name, const char* option, ParamType type,
                        bool many = false) {
    ParamInfo info;
    info.name = name;
    info.option = option;
    info.type = type;
    info.many = many;
    return info;
  };
  Question out;
  out.info.name = "fields";
  out.describe = DescribeFields;
  out.info.params = {param("input", "input", ParamType::kText),
                     param("flag", "--flag", ParamType::kFlag),
                     param("number", "--number", ParamType::kInt),
                     param("unsigned", "--unsigned-number", ParamType::kInt),
                     param("maybe", "--maybe", ParamType::kInt),
                     param("real", "--real", ParamType::kReal),
                     param("text", "--text", ParamType::kText),
                     param("texts", "--texts", ParamType::kText, true),
                     param("pair", "--pair", ParamType::kText, true)};
  out.info.params[0].required = true;
  return out;
}

std::string Said(const Question& question, const Params& params) {
  Asker asker;
  const auto answer = Ask(question, params, asker);
  if (answer) return answer->document.command;
  EXPECT_EQ(answer.error().kind, ErrorKind::kUsage);
  return answer.error().ToString();
}

TEST(Questions, AreAskedByTheirFields) {
  const Question fields = FieldsQuestion();
  EXPECT_EQ(Said(fields, {{"input", "-t"}}), "-t false 7 0 -1 0.5 one [] []");
  EXPECT_EQ(Said(fields, {{"input", "[a,b]"},
                          {"flag", true},
                          {"number", int64_t{3}},
                          {"unsigned", int64_t{4}},
                          {"maybe", int64_t{-5}},
                          {"real", int64_t{2}},
                          {"text", "two"},
                          {"texts", std::vector<std::string>{"a,b", "c"}},
                          {"pair", std::vector<std::string>{"x,y", "z"}}}),
            "[a,b] true 3 4 -5 2 two [a|b|c] [x,y|z]");
  // A number where a text is wanted is its digits.
  EXPECT_EQ(Said(fields, {{"input", int64_t{8}}, {"texts", "d"}}),
            "8 false 7 0 -1 0.5 one [d] []");
  EXPECT_EQ(Said(fields, {{"input", "t"}, {"unsigned", int64_t{-1}}}),
            "fields: unsigned: -1 cannot be");
  EXPECT_EQ(Said(fields, {{"input", "t"}, {"pair", "x"}}),
            "fields: pair: expected 2 texts, got 1");
}

std::string Refused(const char* name, const Params& params) {
  return Said(**FindQuestion(name), params);
}

TEST(Questions, RefuseWhatCannotBe) {
  const Params trace = {{"trace", "t"}};
  const auto with = [&](const char* name, ParamValue value) {
    Params params = trace;
    params[name] = std::move(value);
    return params;
  };
  EXPECT_EQ(Refused("layers", {}), "layers: trace is missing; Path of a trace");
  EXPECT_EQ(Refused("layers", with("stagee", "decode")),
            "layers: there is no parameter 'stagee'; did you mean 'stage'?");
  EXPECT_THAT(Refused("event", with("qqqq", true)),
              HasSubstr("it takes trace, uid, capture, only, top"));
  EXPECT_EQ(Refused("layers", with("stage", "decoda")),
            "layers: stage: 'decoda' is none of its values; did you mean "
            "'decode'?");
  EXPECT_THAT(Refused("layers", with("stage", true)),
              HasSubstr("stage: expected a text, got true or false"));
  EXPECT_THAT(Refused("layers", with("variants", "yes")),
              HasSubstr("variants: expected true or false, got a text"));
  EXPECT_THAT(Refused("layers", with("min_layers", 2.5)),
              HasSubstr("min_layers: expected a whole number, got a number"));
  EXPECT_THAT(Refused("layers", with("min_layers", int64_t{1})),
              HasSubstr("min_layers: 1 is not from 2 to 100000"));
  EXPECT_THAT(Refused("tree", with("min_share", std::nan(""))),
              HasSubstr("min_share: nan is no number"));
  EXPECT_THAT(
      Refused("layers", with("stage", std::vector<std::string>{"decode"})),
      HasSubstr("stage: expected a text, got several texts"));
  EXPECT_THAT(Refused("layers", with("layer", "")), HasSubstr("is empty"));
  EXPECT_THAT(Refused("layers", {{"trace", std::string("a\0b", 3)}}),
              HasSubstr("NUL"));
  EXPECT_THAT(Refused("graph_layers", {{"dump", "d"}, {"dialect", "fxx"}}),
              HasSubstr("fxx"));
}

TEST(Questions, SpeakOfWhatWhoAsksKnows) {
  const Question& layers = **FindQuestion("layers");
  const Error error = UsageError(
      "⟨layer⟩: expected numbers",
      "⟨detector⟩ classic; see ⟨report()⟩ or ⟨layer⟩; ⟨path()⟩ says more");
  EXPECT_EQ(WithNames(error, ParamsOf(layers, false)).ToString(),
            "layer: expected numbers; detector classic; see report or layer; "
            "path says more");
  // An agent is not shown all of them.
  EXPECT_EQ(WithNames(error, ParamsOf(layers, true)).ToString(),
            "layer: expected numbers; see report or layer");
  Description takes;
  Asker asker;
  layers.describe(takes, asker);
  EXPECT_EQ(WithNames(error, takes.Options()).ToString(),
            "--layer: expected numbers; --detector classic; see lamina report "
            "or --layer; lamina path says more");
}

// No message names an option of the command line.
TEST(Questions, DescribeNoOptions) {
  for (const Question& question : Questions()) {
    for (const ParamInfo& info : question.info.params) {
      EXPECT_THAT(info.doc, testing::Not(HasSubstr("--")))
          << question.info.name;
      EXPECT_THAT(info.doc, testing::Not(HasSubstr("lamina ")))
          << question.info.name << " " << info.name;
      EXPECT_THAT(info.doc, testing::Not(HasSubstr("⟨"))) << info.name;
    }
  }
}

// A document that says itself what was lost still brings the other warnings.
TEST(Questions, SayEachWarningOnce) {
  Asker asker;
  const auto answer = Complete(
      [&]() -> Result<Answer> {
        asker.Warn("lost_records", "again");
        asker.Warn("dump_faults", "a line");
        Answer out;
        out.document.result.notes = {
            MakeNote(Severity::kVerdict, "verdict", "so it is"),
            MakeNote(Severity::kWarning, "lost_records", "said by the report")};
        return out;
      },
      asker);
  ASSERT_TRUE(answer);
  std::vector<std::string> texts;
  for (const Note& note : answer->document.result.notes)
    texts.push_back(note.text);
  EXPECT_THAT(texts,
              testing::ElementsAre("so it is", "a line", "said by the report"));
}

}  // namespace
}  // namespace lamina::questions
