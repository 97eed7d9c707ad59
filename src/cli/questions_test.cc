// SPDX-License-Identifier: Apache-2.0
#include "cli/questions.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "cli/host.h"

namespace lamina::cli {
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
  const std::set<std::string> common = {
      "--help", "--format", "--redact", "--rules", "--threads", "--no-cache",
      "--timing", "--html-max-mb", "--top", "--html-max-events", "--output",
      // Of the whole session.
      "--step", "--range"};
  const std::map<std::string, std::set<std::string>> not_asked = {
      {"report", {"--roofline"}},
      {"diagnose",
       {"--fail-on", "--abstain", "--explain", "--check", "--list-rules"}},
      {"layers", {"--show-layer-terminal", "--perfetto"}},
      {"path", {"--overlay", "--critical-only"}},
      {"diff", {"--fail-above", "--measure"}},
      {"ranks", {"--engine", "--partials", "--shard", "--pictures"}},
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
    for (const DescribedOption& option :
         DescribeCommand(question.command).options) {
      const bool decided = std::any_of(
          option.names.begin(), option.names.end(), [&](const auto& one) {
            return asked[name].contains(one) || common.contains(one) ||
                   (left != not_asked.end() && left->second.contains(one));
          });
      EXPECT_TRUE(decided) << name << " " << option.names.back();
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

std::string Words(const char* name, const Params& params) {
  const auto words = WordsOf(**FindQuestion(name), params);
  if (!words) {
    EXPECT_EQ(words.error().kind, ErrorKind::kUsage);
    return words.error().ToString();
  }
  std::string out;
  for (const std::string& word : *words) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(Questions, BecomeCommandLines) {
  EXPECT_EQ(Words("layers", {{"trace", "-t.json"},
                             {"stage", "decode"},
                             {"variants", true},
                             {"layer", int64_t{3}},
                             {"only", std::vector<std::string>{"a", "b"}}}),
            "layers --stage=decode --layer=3 --variants --only=a --only=b -- "
            "-t.json");
  EXPECT_EQ(Words("diff", {{"b", "2"}, {"a", "1"}, {"findings", false}}),
            "diff -- 1 2");
  EXPECT_EQ(Words("tree", {{"trace", "t"}, {"min_share", 0.25}}),
            "tree --min-share=0.25 -- t");
  EXPECT_EQ(Words("tree", {{"trace", "t"}, {"min_share", int64_t{2}}}),
            "tree --min-share=2 -- t");
}

TEST(Questions, RefuseWhatCannotBe) {
  const Params trace = {{"trace", "t"}};
  const auto with = [&](const char* name, ParamValue value) {
    Params params = trace;
    params[name] = std::move(value);
    return params;
  };
  EXPECT_EQ(Words("layers", {}), "layers: trace is missing; Path of a trace");
  EXPECT_EQ(Words("layers", with("stagee", "decode")),
            "layers: there is no parameter 'stagee'; did you mean 'stage'?");
  EXPECT_THAT(Words("event", with("qqqq", true)),
              HasSubstr("it takes trace, uid, only, top"));
  EXPECT_EQ(Words("layers", with("stage", "decoda")),
            "layers: stage: 'decoda' is none of its values; did you mean "
            "'decode'?");
  EXPECT_THAT(Words("layers", with("stage", true)),
              HasSubstr("stage: expected a text, got true or false"));
  EXPECT_THAT(Words("layers", with("variants", "yes")),
              HasSubstr("variants: expected true or false, got a text"));
  EXPECT_THAT(Words("layers", with("min_layers", 2.5)),
              HasSubstr("min_layers: expected a whole number, got a number"));
  EXPECT_THAT(Words("layers", with("min_layers", int64_t{1})),
              HasSubstr("min_layers: 1 is not from 2 to 100000"));
  EXPECT_THAT(Words("tree", with("min_share", std::nan(""))),
              HasSubstr("min_share: nan is no number"));
  EXPECT_THAT(
      Words("layers", with("stage", std::vector<std::string>{"decode"})),
      HasSubstr("stage: expected a text, got several texts"));
  // As an option it would take the word that follows.
  EXPECT_THAT(Words("layers", with("layer", "")), HasSubstr("is empty"));
  EXPECT_THAT(Words("layers", {{"trace", std::string("a\0b", 3)}}),
              HasSubstr("NUL"));
}

TEST(Questions, SpeakOfParametersNotOfOptions) {
  const Question& layers = **FindQuestion("layers");
  Error error = UsageError("--layer: expected numbers; --layers-per-pass",
                           "--detector classic");
  EXPECT_EQ(InWordsOf(layers, error).ToString(),
            "layer: expected numbers; layers_per_pass; detector classic");
  // An agent is not shown all of them.
  EXPECT_EQ(InWordsOf(layers, error, true).ToString(),
            "layer: expected numbers; --layers-per-pass; --detector classic");
}

// A document that says itself what was lost still brings the other warnings.
TEST(Host, HearsEachWarningOnce) {
  Host host;
  Document taken;
  host.take = [&](Document document) { taken = std::move(document); };
  Common common;
  common.host = &host;
  common.Warn("lost_records", "again");
  common.Warn("dump_faults", "a line");
  Document document;
  document.result.notes = {
      MakeNote(Severity::kVerdict, "verdict", "so it is"),
      MakeNote(Severity::kWarning, "lost_records", "said by the report")};
  ASSERT_TRUE(Write(document, common));
  std::vector<std::string> texts;
  for (const Note& note : taken.result.notes) texts.push_back(note.text);
  EXPECT_THAT(texts,
              testing::ElementsAre("so it is", "a line", "said by the report"));
}

}  // namespace
}  // namespace lamina::cli
