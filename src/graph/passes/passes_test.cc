// SPDX-License-Identifier: Apache-2.0
//
// Rules come from users: a wrong one is an error with a place, and none stops
// or hangs the program.

#include <absl/hash/hash.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ostream>
#include <random>

#include "graph/dialects/read.h"
#include "graph/passes/log.h"
#include "graph/passes/pass.h"
#include "graph/passes/rule_file.h"
#include "graph/print.h"
#include "graph/types.h"
#include "graph/verify.h"
#include "source_dir.h"

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

// Holds every built-in rule against its own examples.

namespace {

TEST(Rules, BuiltInRulesHoldTheirExamples) {
  const auto set = LoadRuleSet(rules::DataSet());
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_EQ(set->rules.size(), 62u);
  for (const std::string& warning : set->warnings) ADD_FAILURE() << warning;
  size_t with_pattern = 0;
  for (const Rule& rule : set->rules) {
    for (const std::string& violation : CheckRuleExamples(rule))
      ADD_FAILURE() << violation;
    if (rule.alternatives.empty()) continue;
    ++with_pattern;
    EXPECT_EQ(rule.examples.size(), rule.alternatives.size()) << rule.name;
    EXPECT_FALSE(rule.counter_examples.empty()) << rule.name;
  }
  EXPECT_EQ(with_pattern, 53u);
}

}  // namespace

// Rewrites the reference dumps and compares with what the pipeline wrote, up to
// names of values, addresses and the order of independent nodes.

namespace {

std::string Dumps() {
  const char* shared = std::getenv("LAMINA_SHARED");
  const std::string folder =
      shared != nullptr ? shared
                        : std::string(LAMINA_SOURCE_DIR) + "/../shared";
  return folder + "/dumps/";
}

std::string FindDump(const std::string& folder, const std::string& number) {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(Dumps() + folder, error)) {
    if (entry.path().filename().string().starts_with(number + "_"))
      return entry.path().string();
  }
  return {};
}

std::string Canonical(std::string_view result) {
  const ResultText parts = SplitResult(result);
  if (!parts.tuple)
    return CanonicalShape(parts.shape) + ":" + std::string(parts.dtype);
  std::string out;
  for (const std::string_view shape : SplitTuple(parts.shape))
    out += CanonicalShape(shape) + ",";
  return out + std::string(parts.dtype);
}

// One number per node that depends on everything it is computed from, but not
// on names. Sorted.
std::vector<size_t> Fingerprints(const Graph& graph) {
  std::vector<size_t> hash(graph.size());
  std::vector<size_t> out;
  for (const NodeId id : graph.Weights())
    hash[id.value] = absl::HashOf(
        absl::string_view(graph[id].name.data(), graph[id].name.size()));
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    const std::string_view op = node.kind == NodeKind::kOp ? graph.op(id)
                                : node.kind == NodeKind::kPlaceholder
                                    ? node.name
                                    : std::string_view("output");
    size_t h = absl::HashOf(std::string(op), Canonical(node.result));
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.IsValue()) {
        h = absl::HashOf(h, hash[operand.value().value]);
      } else if (IsContainer(operand.kind)) {
        h = absl::HashOf(h, operand.extent());
      } else {
        h = absl::HashOf(h, std::string(operand.text()));
      }
    }
    hash[id.value] = h;
    out.push_back(h);
  }
  std::sort(out.begin(), out.end());
  return out;
}

struct Case {
  const char* folder;
  const char* before;
  const char* after;
  std::vector<const char*> transforms;
  size_t matches;  // of the last transform
};

// Without it the name of a test would hold addresses.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.folder << " " << c.before << " to " << c.after;
}

class RewriteDumps : public testing::TestWithParam<Case> {};

TEST_P(RewriteDumps, GivesTheNextDump) {
  const Case& c = GetParam();
  const std::string before_path = FindDump(c.folder, c.before);
  if (before_path.empty()) GTEST_SKIP() << "no reference dumps";
  const auto set = LoadRuleSet(rules::DataSet());
  ASSERT_TRUE(set) << set.error().ToString();
  const PassRegistry registry(*set);
  PipelineConfig config;
  for (const char* name : c.transforms) {
    const Pass* const pass = registry.Find(name);
    ASSERT_NE(pass, nullptr) << name;
    config.transforms.push_back({});
    config.transforms.back().name = name;
    config.transforms.back().stage = pass->stage;
  }
  auto dump = ReadDump(before_path);
  auto expected = ReadDump(FindDump(c.folder, c.after));
  ASSERT_TRUE(dump && expected);
  EXPECT_NE(Fingerprints(dump->graphs[0]), Fingerprints(expected->graphs[0]));
  const auto reports = RunPasses(*dump, config, registry, {});
  ASSERT_TRUE(reports) << reports.error().ToString();
  EXPECT_EQ(reports->back().entry.matches, static_cast<int64_t>(c.matches));
  for (const auto& [reason, count] : reports->back().left)
    ADD_FAILURE() << count << " left: " << reason;
  EXPECT_TRUE(Verify(dump->graphs[0]).empty());
  EXPECT_TRUE(VerifyAnnotations(dump->graphs[0]).empty());
  EXPECT_EQ(Fingerprints(dump->graphs[0]), Fingerprints(expected->graphs[0]));
  // What is written reads back as the same graph.
  const auto again = ParseDump("again", Print(*dump));
  ASSERT_TRUE(again);
  EXPECT_EQ(Fingerprints(again->graphs[0]), Fingerprints(dump->graphs[0]));
  // A second run finds nothing more, but for transforms of layout, whose
  // result differs from what they look for by a literal.
  const auto twice = RunPasses(*dump, config, registry, {});
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->back().entry.matches, 0);
}

constexpr const char* kMixtral = "mixtral_4l_moe_symbolic";
constexpr const char* kLlama = "llama_32l_gqa_symbolic";

INSTANTIATE_TEST_SUITE_P(
    Reference, RewriteDumps,
    testing::Values(
        Case{kMixtral, "001", "009", {"match_repeat_kv"}, 8},
        Case{kMixtral, "009", "012", {"match_grouped_attention"}, 4},
        Case{kMixtral, "012", "013", {"match_attention_layout"}, 4},
        Case{kMixtral, "013", "014", {"match_rope_pattern"}, 4},
        Case{kMixtral, "014", "015", {"match_rope_layout"}, 4},
        Case{kMixtral, "015", "016", {"match_rmsnorm_pattern"}, 9},
        Case{kMixtral, "016", "018", {"match_moe_routing_pattern"}, 4},
        Case{kMixtral, "018", "019", {"eliminate_redundant_transposes"}, 24},
        Case{kMixtral, "019", "053", {"fuse_moe"}, 4},
        Case{kMixtral, "053", "058", {"fuse_rmsnorm"}, 9},
        Case{kMixtral, "058", "064", {"fuse_add_rms_norm"}, 8},
        Case{kMixtral, "064", "069", {"optimize_rope"}, 4},
        Case{kMixtral,
             "001",
             "069",
             {"match_repeat_kv", "match_grouped_attention",
              "match_attention_layout", "match_rope_pattern",
              "match_rope_layout", "match_rmsnorm_pattern",
              "match_moe_routing_pattern", "eliminate_redundant_transposes",
              "fuse_moe", "fuse_rmsnorm", "fuse_add_rms_norm", "optimize_rope"},
             4},
        Case{kLlama,
             "001",
             "016",
             {"match_repeat_kv", "match_grouped_attention",
              "match_attention_layout", "match_rope_pattern",
              "match_rope_layout", "match_rmsnorm_pattern"},
             65},
        Case{kLlama, "016", "019", {"eliminate_redundant_transposes"}, 192},
        Case{
            kLlama, "019", "058", {"match_swiglu_pattern", "fuse_rmsnorm"}, 65},
        Case{kLlama, "058", "064", {"fuse_swiglu", "fuse_add_rms_norm"}, 64}),
    [](const auto& test) {
      return std::string(test.param.folder == kLlama ? "Llama" : "Mixtral") +
             test.param.before + "To" + test.param.after;
    });

}  // namespace

namespace {

TransformLog Parse(std::string_view text) {
  auto log = ParseTransformLog("t.log", text);
  EXPECT_TRUE(log) << log.error().ToString();
  return log ? *log : TransformLog();
}

TEST(TransformLog, ReadsTheNewerGenerationWithPrefixAndColors) {
  const TransformLog log = Parse(
      "\x1b[32m[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=post_load_fusion, "
      "transform=fuse_rmsnorm]\x1b[0m [SUMMARY] matches=65 | time: 0.104s "
      "(pre=0.001s, apply=0.085s, post=0.018s)\r\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=cache_init, transform=c] "
      "[SUMMARY] skipped | time: 0.004s\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=cache_init, transform=d] "
      "[SUMMARY] disabled\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 1] [I] [stage=cache_init, transform=c] "
      "[SUMMARY] matches=7\n");
  ASSERT_EQ(log.entries.size(), 3u);
  EXPECT_EQ(log.entries[0].stage, "post_load_fusion");
  EXPECT_EQ(log.entries[0].matches, 65);
  EXPECT_EQ(log.entries[0].total_ns, 104000000);
  EXPECT_EQ(log.entries[1].status, TransformStatus::kSkipped);
  EXPECT_EQ(log.entries[1].matches, 0);
  EXPECT_EQ(log.entries[2].status, TransformStatus::kDisabled);
  EXPECT_EQ(log.entries[2].matches, std::nullopt);
  EXPECT_EQ(log.other_ranks, 1u);
}

TEST(TransformLog, ReadsTheOlderGeneration) {
  const TransformLog log = Parse(
      "[stage=s, transform=a] enabled=True, num_matches=4, is_clean=True, "
      "has_valid_shapes=False\n"
      "[stage=s, transform=a] elapsed time: total=0.250s, pre_cleanup=0.1s, "
      "apply=0.1s, post_cleanup=0.05s\n"
      "[stage=s, transform=b] enabled=True, skipped=True, is_clean=True, "
      "has_valid_shapes=True\n"
      "[stage=s, transform=c] enabled=False\n");
  ASSERT_EQ(log.entries.size(), 3u);
  EXPECT_EQ(log.entries[0].matches, 4);
  EXPECT_EQ(log.entries[0].total_ns, 250000000);
  EXPECT_EQ(log.entries[0].has_valid_shapes, false);
  EXPECT_EQ(log.entries[1].status, TransformStatus::kSkipped);
  EXPECT_EQ(log.entries[2].status, TransformStatus::kDisabled);
}

TEST(TransformLog, CountsRepeatsOfATransform) {
  const TransformLog log = Parse(
      "[stage=s, transform=a] [SUMMARY] matches=1\n"
      "[stage=s, transform=a] [SUMMARY] matches=2\n");
  ASSERT_NE(log.Find("a", 1), nullptr);
  EXPECT_EQ(log.Find("a", 1)->matches, 2);
  EXPECT_EQ(log.Find("a", 2), nullptr);
}

TEST(TransformLog, JoinsFailuresToTheirTransform) {
  const TransformLog log = Parse(
      "Transform a failed: shapes differ\n"
      "[stage=s, transform=a] [SUMMARY] matches=0 | time: 0.1s\n"
      "[stage=s, transform=b] [SUMMARY] matches=3 | time: 0.1s\n"
      "Transform b failed: no kernel\n");
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.entries[0].status, TransformStatus::kFailed);
  EXPECT_EQ(log.entries[0].message, "Transform a failed: shapes differ");
  EXPECT_EQ(log.entries[1].status, TransformStatus::kFailed);
  EXPECT_EQ(log.entries[1].matches, std::nullopt);
}

TEST(TransformLog, RefusesOtherText) {
  EXPECT_FALSE(ParseTransformLog("x", "nothing\nto see [stage=\n"));
  EXPECT_FALSE(ParseTransformLog("x", ""));
}

TEST(TransformLog, ReadsWhatItWrites) {
  LogEntry entry;
  entry.stage = "s";
  entry.transform = "a";
  entry.matches = 12;
  const std::string line = SummaryLine(entry, {1000000, 85000000, 18000000});
  EXPECT_EQ(line,
            "[stage=s, transform=a] [SUMMARY] matches=12 | time: 0.104s "
            "(pre=0.001s, apply=0.085s, post=0.018s)");
  const TransformLog log = Parse(line);
  EXPECT_EQ(log.entries[0].matches, 12);
  EXPECT_EQ(log.entries[0].total_ns, 104000000);
}

// Whatever a log holds, its entries written as summary lines are the same
// entries when they are read again.
TEST(TransformLog, ReadsWhatItWritesOfAnyLog) {
  constexpr std::array<std::string_view, 28> kParts = {
      "[stage=",     "s",         ", transform=", "transform=",
      "t",           "]",         "] [SUMMARY]",  " matches=",
      "3",           "-7",        "enabled=",     "True",
      "False",       "num_",      "skipped",      "skipped=",
      "disabled",    "[RANK 1] ", " failed",      "Transform ",
      "Skipping t ", "\x1b[3",    "\r",           "| time: ",
      "1e3s",        "\n",        "\n",           " "};
  std::mt19937 random(5);
  size_t entries = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = 0; i < 60; ++i) {
      if (random() % 4 == 0) text += "\n[stage=s, transform=t] ";
      text += kParts[random() % kParts.size()];
    }
    const auto log = ParseTransformLog("t.log", text);
    if (!log) continue;
    std::string lines;
    for (const LogEntry& entry : log->entries)
      lines += SummaryLine(entry, {}) + "\n";
    const TransformLog again = Parse(lines);
    ASSERT_EQ(again.entries.size(), log->entries.size()) << text;
    for (size_t i = 0; i < again.entries.size(); ++i) {
      const LogEntry& written = log->entries[i];
      const LogEntry& read = again.entries[i];
      EXPECT_EQ(read.stage, written.stage) << text;
      EXPECT_EQ(read.transform, written.transform) << text;
      EXPECT_EQ(read.occurrence, written.occurrence) << text;
      EXPECT_EQ(read.status, written.status) << text;
      EXPECT_EQ(read.matches, written.matches) << text;
    }
    entries += again.entries.size();
  }
  EXPECT_GT(entries, 1000u);
}

}  // namespace

}  // namespace lamina::graph
