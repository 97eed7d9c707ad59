// SPDX-License-Identifier: Apache-2.0
#include "rules/markers.h"

#include <gtest/gtest.h>
#include <random>

#include "rules/dictionary_text.h"

namespace lamina::rules {
namespace {

std::shared_ptr<const MarkerTable> Builtin() {
  auto table = MarkerTable::Load(DataSet());
  EXPECT_TRUE(table.has_value())
      << (table ? std::string() : table.error().ToString());
  return *table;
}

Result<std::shared_ptr<const MarkerTable>> Parse(std::string text) {
  LAMINA_ASSIGN(DataFile file, ParseYaml("mine.yaml", std::move(text)));
  return MarkerTable::Make({std::make_shared<DataFile>(std::move(file))});
}

std::string ErrorOf(std::string text) {
  const auto table = Parse(std::move(text));
  return table ? "none" : table.error().ToString();
}

// "model/layers_7 forward", or "-".
std::string Shown(const MarkerTable& table, std::string_view text) {
  const auto marker = table.Read(text);
  if (!marker) return "-";
  std::string out;
  for (const std::string& part : marker->path)
    out += (out.empty() ? "" : "/") + part;
  return out + " " + std::string(PhaseName(marker->phase));
}

TEST(Markers, ExamplesOfTheDataHold) {
  const auto table = Builtin();
  for (const std::string& problem : table->CheckExamples())
    ADD_FAILURE() << problem;
  for (const MarkerRule& rule : table->rules()) {
    EXPECT_FALSE(rule.examples.empty()) << rule.id;
    EXPECT_FALSE(rule.counter_examples.empty()) << rule.id;
    EXPECT_FALSE(rule.why.empty()) << rule.id;
  }
}

TEST(Markers, TextsOfRanges) {
  const auto table = Builtin();
  const auto shown = [&](std::string_view text) { return Shown(*table, text); };
  EXPECT_EQ(shown("model.layers.7.self_attn"),
            "model/layers_7/self_attn forward");
  EXPECT_EQ(shown("FSDP::pre_forward (blocks.3._checkpoint_wrapped_module)"),
            "blocks_3 pre_forward");
  EXPECT_EQ(shown("FSDP::post_backward_reshard (layers.0)"),
            "layers_0 post_backward");
  EXPECT_EQ(shown("{'Inputs': [[8, 4], 'a, b'], 'Module': 'top.lm_head'}"),
            "top/lm_head forward");
  // Phases of a run are no modules.
  for (const char* const text :
       {"", "## forward ##", "ProfilerStep#3", "iteration", "backward",
        "Optimizer.step#Adam.step", "DataLoader.__next__", "layers", "1.2.3",
        "execute_context_0(0)_generation_32(32)", "train step 1",
        "FSDP::pre_forward (_orig_mod)", "{'Module': ''}", "{'Module'"})
    EXPECT_EQ(shown(text), "-") << text;
}

TEST(Markers, NumbersJoinTheNameBeforeThem) {
  const auto table = Parse(
      "table: module_marker\n"
      "wrappers: [_wrap]\n"
      "rules:\n"
      "  - {id: any, match: '^m:(?P<path>.*)$', phase: backward}\n");
  ASSERT_TRUE(table.has_value()) << table.error().ToString();
  const auto shown = [&](std::string_view text) {
    return Shown(**table, text);
  };
  EXPECT_EQ(shown("m:a.0"), "a_0 backward");
  EXPECT_EQ(shown("m:a.0.1"), "a_0/1 backward");
  EXPECT_EQ(shown("m:0.a"), "0/a backward");
  EXPECT_EQ(shown("m:a._wrap.3"), "a_3 backward");
  EXPECT_EQ(shown("m:.a..b."), "a/b backward");
  EXPECT_EQ(shown("m:"), "-");
  EXPECT_EQ(shown("m:" + std::string(257, 'x')), "-");
  std::string deep = "m:x";
  for (int i = 0; i < 40; ++i) deep += ".x";
  EXPECT_EQ(shown(deep), "-");
}

TEST(Markers, ErrorsSayWhere) {
  const std::string head = "table: module_marker\nrules:\n";
  EXPECT_NE(ErrorOf(head + "  - {id: a, match: '('}\n").find("mine.yaml:3"),
            std::string::npos);
  EXPECT_NE(ErrorOf(head + "  - {id: a, match: 'x'}\n").find("(?P<path>...)"),
            std::string::npos);
  EXPECT_NE(ErrorOf(head + "  - {id: a, match: '(?P<path>x)', phase: middle}\n")
                .find("pre_forward"),
            std::string::npos);
  EXPECT_NE(ErrorOf(head + "  - {id: a, match: '(?P<path>x)', matsch: b}\n")
                .find("matsch"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("table: kernel_family\nrules: 7\n"), "none");
}

TEST(Markers, ExamplesThatDoNotHold) {
  const auto table = Parse(
      "table: module_marker\n"
      "rules:\n"
      "  - id: first\n"
      "    match: '^(?P<path>a[.0-9]+)$'\n"
      "    examples: [{text: a.1, module: a}, {text: b, module: b}]\n"
      "    not: [a.2]\n");
  ASSERT_TRUE(table.has_value()) << table.error().ToString();
  EXPECT_EQ((*table)->CheckExamples(),
            (std::vector<std::string>{
                "first: the example 'a.1' names 'a_1', not 'a'",
                "first: the example 'b' is matched by no rule",
                "first: the counter-example 'a.2' is matched by it"}));
}

TEST(DictionaryText, JsonAndPython) {
  const auto of = [](std::string_view text) {
    return TextOfKey(text, "Module").value_or("-");
  };
  EXPECT_EQ(of("{'Module': 'a.b'}"), "a.b");
  EXPECT_EQ(of(" { \"x\" : {\"Module\": \"no\"} , \"Module\":\"yes\" } "),
            "yes");
  EXPECT_EQ(of(R"({'a': 'it\'s, } {', 'Module': "it's"})"), "it's");
  EXPECT_EQ(of(R"({'Module': 'a\\b\n'})"), R"(a\b\n)");
  EXPECT_EQ(of("{'a': (1, 2), 'Module': 'cut off"), "-");
  EXPECT_EQ(of("{'Module': 'a', 'Inputs': [[1, 2"), "a");
  EXPECT_EQ(of("{'Module': 3}"), "-");
  EXPECT_EQ(of("{Module: 'a'}"), "-");
  EXPECT_EQ(of("['Module', 'a']"), "-");
  EXPECT_EQ(of("{'a': ]], 'Module': 'a'}"), "-");
  EXPECT_EQ(of(""), "-");
}

// Any bytes are an answer or none: no crash, no endless loop.
TEST(DictionaryText, AnyBytes) {
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "{}[]()'\"\\:, aM\n\xff";
  const auto table = Builtin();
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "{'Module': ";
    text.resize(random() % 12);
    for (uint32_t n = random() % 24; n > 0; --n)
      text += kBytes[random() % kBytes.size()];
    const auto found = TextOfKey(text, "Module");
    if (found) {
      EXPECT_LT(found->size(), text.size());
    }
    table->Read(text);
  }
  const std::string open(size_t{1} << 20, '{');
  EXPECT_FALSE(TextOfKey(open, "Module"));
  EXPECT_FALSE(table->Read("{'a': " + open));
}

}  // namespace
}  // namespace lamina::rules
