// SPDX-License-Identifier: Apache-2.0
//
// Rules come from users: a wrong one is an error with a place, and none stops
// or hangs the program.
#include "graph/passes/rule_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/passes/pattern_pass.h"
#include "graph/verify.h"

namespace lamina::graph {
namespace {

using ::testing::HasSubstr;

Result<std::vector<Rule>> Read(const std::string& yaml) {
  auto file = rules::ParseYaml("test.yaml", yaml);
  if (!file) return Fail(file.error());
  return ReadRules(*file, nullptr);
}

// A rule of one pattern and what replaces it.
Result<std::vector<Rule>> RuleOf(const std::string& before,
                                 const std::string& after,
                                 const std::string& more = "") {
  return Read("rules:\n- rule: r\n  stage: s\n  before: '" + before +
              "'\n  after: '" + after + "'\n" + more);
}

std::string ErrorOf(const std::string& before, const std::string& after,
                    const std::string& more = "") {
  const auto rules = RuleOf(before, after, more);
  return rules ? "" : rules.error().what;
}

Dump Example(const std::string& lines) {
  auto dump = ParseExample("t", lines);
  EXPECT_TRUE(dump);
  return std::move(*dump);
}

const std::string kNegs =
    "%x : 4 : torch.float32\n"
    "%a = aten.neg.default(%x : 4 : torch.float32) : 4 : torch.float32\n"
    "%b = aten.neg.default(%a : 4 : torch.float32) : 4 : torch.float32\n"
    "output %b\n";

TEST(RuleFile, ReplacementsNameWhatThePatternHas) {
  const std::string neg = "%a = aten.neg(%x)";
  EXPECT_EQ(ErrorOf(neg, "%a = my.neg(%x)"), "");
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg(%y)"), HasSubstr("'y' is bound nei"));
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg(?x)"), HasSubstr("'x' is a value"));
  EXPECT_THAT(ErrorOf("%a = aten.neg(?x)", "%a = my.neg(%x)"),
              HasSubstr("'x' is no value"));
  EXPECT_THAT(ErrorOf("%a = aten.neg(%x, $c)", "%a = %c"),
              HasSubstr("'c' is no value"));
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg(flat(%x))"),
              HasSubstr("unknown function of an operand 'flat'"));
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg(unknown())"),
              HasSubstr("unknown function of an operand 'unknown'"));
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg(%x) : dim(%x, 1)"),
              HasSubstr("unknown function of a result 'dim'"));
  EXPECT_THAT(ErrorOf(neg, "%a = my.neg([%x, ...])"),
              HasSubstr("inside a list"));
  EXPECT_THAT(ErrorOf(neg, "%a = %a"), HasSubstr("replaces itself"));
}

TEST(RuleFile, ListsWithoutAnItem) {
  EXPECT_THAT(Read("rules:\n- rule: r\n  stage: s\n"
                   "  before: '%a = aten.neg(%x)'\n  after: []\n")
                  .error()
                  .what,
              HasSubstr("expected one text or one per alternative (1)"));
  EXPECT_TRUE(Read("rules: []\n"));
}

TEST(RuleFile, GroupsNeedWhatTheirMembersShare) {
  EXPECT_THAT(ErrorOf("%a = aten.neg()", "%a = my.neg()", "  count: group\n"),
              HasSubstr("needs a value %x"));
  EXPECT_THAT(ErrorOf("%a = aten.neg(%x)", "%a = my.neg(%x)",
                      "  native: merge_linears\n"),
              HasSubstr("expected merge_linears, with 'count: group'"));
  EXPECT_THAT(ErrorOf("%a = aten.mm(%x, %w)", "%a = my.mm(%x, %w)",
                      "  count: group\n  native: merge_linears\n"),
              HasSubstr("linear(%x, !w)"));
  EXPECT_THAT(ErrorOf("%a = aten.mm(%x, !w)", "%a = my.mm(%x, !w)",
                      "  count: group\n  native: anything\n"),
              HasSubstr("expected merge_linears"));
}

TEST(RuleFile, LinesThatAreNoneOfADumpLeaveTheGraph) {
  // An option without a value leaves no target.
  const auto rules =
      RuleOf("%a = aten.neg(%x)", "%b = my.one(%x)\n\n  %a = {target}(%b)");
  ASSERT_TRUE(rules) << rules.error().ToString();
  Dump dump = Example(kNegs);
  const Applied applied = ApplyRule(dump.graphs[0], (*rules)[0], {});
  EXPECT_EQ(applied.matches, 0u);
  EXPECT_EQ(applied.left.at("a new line is not one of a dump"), 2u);
  EXPECT_TRUE(Verify(dump.graphs[0]).empty());
  size_t nodes = 0;
  for ([[maybe_unused]] const NodeId id : dump.graphs[0].nodes()) ++nodes;
  EXPECT_EQ(nodes, 4u);
}

TEST(RuleFile, RulesThatMatchTheirOwnReplacementEnd) {
  for (const char* after : {"%a = aten.neg(%x)", "%a = &aten.neg(%x)",
                            "%b = aten.neg(%x)\n\n  %a = aten.neg(%b)"}) {
    const auto rules =
        RuleOf("%a = aten.neg(%x)", after, "  count: fixed_point\n");
    ASSERT_TRUE(rules) << rules.error().ToString();
    Dump dump = Example(kNegs);
    const Applied applied = ApplyRule(dump.graphs[0], (*rules)[0], {});
    EXPECT_EQ(applied.left.count("the rule matches what it puts in place"), 1u)
        << after;
    EXPECT_TRUE(Verify(dump.graphs[0]).empty()) << after;
  }
}

// A name that is a value in one pattern and a literal in another one.
TEST(RuleFile, ChecksOfAValueThatAnAlternativeHasAsALiteral) {
  const auto rules = Read(
      "rules:\n- rule: r\n  stage: s\n"
      "  before: ['%a = aten.neg(%x)', '%a = aten.abs($x)']\n"
      "  guards:\n"
      "  - {id: g, text: t, check: all_users(%x)}\n"
      "  - {id: f, text: t, check: 'first_user(%x, %a)'}\n");
  ASSERT_TRUE(rules) << rules.error().ToString();
  const Dump dump =
      Example("%a = aten.abs.default(2) : 4 : torch.float32\noutput %a\n");
  const RuleMatches found =
      FindRule(OpIndex(dump.graphs[0]), (*rules)[0], FindOptions());
  ASSERT_EQ(found.matches.size(), 1u);
  EXPECT_TRUE(found.matches[0].possible);
}

// 2^20 orders of operands at each of many anchors: all together has a bound.
TEST(RuleFile, SearchesThatDoubleWithEachLineAreGivenUp) {
  std::string before;
  for (int i = 0; i < 20; ++i) {
    before += "%n" + std::to_string(i) + " = ~aten.add(" +
              (i == 0 ? std::string("%x") : "%n" + std::to_string(i - 1)) +
              ", %y" + std::to_string(i) + ")\n\n  ";
  }
  // Never true, and known only at the end.
  before += "%out = aten.neg(%n19, 1)";
  std::string text = "%x : 4 : torch.float32\n";
  std::string last = "x";
  const std::string type = " : 4 : torch.float32";
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "a" + std::to_string(i);
    text += "%" + name + " = aten.add.Tensor(%" + last + type + ", %" + last +
            type + ")" + type + "\n";
    last = name;
    if (i < 20) continue;
    text += "%b" + std::to_string(i) + " = aten.neg.default(%" + name + type +
            ", 1)" + type + "\n";
  }
  text += "output %" + last + "\n";
  const auto rules = RuleOf(before, "%out = my.op(%x)");
  ASSERT_TRUE(rules) << rules.error().ToString();
  const Dump dump = Example(text);
  const RuleMatches found =
      FindRule(OpIndex(dump.graphs[0]), (*rules)[0], FindOptions());
  EXPECT_TRUE(found.matches.empty());
  EXPECT_GT(found.given_up, 1000u);
}

}  // namespace
}  // namespace lamina::graph
