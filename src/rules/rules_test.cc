// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "rules/catalog.h"
#include "rules/document.h"
#include "rules/embedded.h"
#include "rules/pattern_table.h"
#include "source_dir.h"

namespace lamina::rules {
namespace {

std::shared_ptr<const Catalog> BuiltinCatalog() {
  auto catalog = Catalog::Load(DataSet());
  EXPECT_TRUE(catalog.has_value())
      << (catalog ? std::string() : catalog.error().ToString());
  return *catalog;
}

// A file is a rule and its test: every example is matched by its own rule, no
// counter-example is.
TEST(Data, ExamplesOfKernelRulesHold) {
  const auto catalog = BuiltinCatalog();
  for (const std::string& violation : CheckExamples(catalog->kernel_table()))
    ADD_FAILURE() << violation;
  size_t with_examples = 0;
  for (const PatternRule& rule : catalog->kernel_table().rules())
    with_examples += !rule.examples.empty();
  EXPECT_GT(with_examples, 30u);
}

TEST(Data, ExamplesOfOpRulesHold) {
  const auto catalog = BuiltinCatalog();
  for (const std::string& violation : CheckExamples(catalog->op_table()))
    ADD_FAILURE() << violation;
  for (const PatternRule& rule : catalog->op_table().rules())
    EXPECT_FALSE(rule.examples.empty()) << rule.id;
}

TEST(Data, ExamplesOfRulesOfStepsAndWaitsHold) {
  const auto catalog = BuiltinCatalog();
  for (const PatternTable* table :
       {&catalog->step_table(), &catalog->outside_table()}) {
    for (const std::string& violation : CheckExamples(*table))
      ADD_FAILURE() << violation;
    for (const PatternRule& rule : table->rules())
      EXPECT_FALSE(rule.examples.empty()) << rule.id;
  }
}

TEST(Catalog, OpsByNameAndWithoutSuffix) {
  const auto catalog = BuiltinCatalog();
  EXPECT_EQ(catalog->OpFamily("aten::mm"), "gemm");
  EXPECT_EQ(catalog->OpFamily("aten::_softmax"), "softmax");
  EXPECT_EQ(catalog->OpFamily("aten::sub_"), "elementwise");
  EXPECT_EQ(catalog->OpFamily("my::custom_op"), "");
  EXPECT_EQ(catalog->OpFamily(""), "");
  EXPECT_EQ(catalog->Entry("aten::mm")->category, "GEMM");
  EXPECT_EQ(catalog->Entry("aten::nothing"), nullptr);
}

TEST(Catalog, KernelsByName) {
  const auto catalog = BuiltinCatalog();
  EXPECT_EQ(catalog->KernelFamily("nvjet_tst_128x256"), "gemm");
  EXPECT_EQ(catalog->KernelFamily("ncclDevKernel_AllReduce_Sum_f32"),
            "communication");
  EXPECT_EQ(catalog->KernelFamily("who knows"), "other");
  // Mangled: void flash_fwd_kernel<int>(int).
  EXPECT_EQ(catalog->KernelFamily("_Z16flash_fwd_kernelIiEvT_"), "attention");
}

TEST(Catalog, GeneratedKernelsByTheOpsInTheirName) {
  EXPECT_EQ(GeneratedFamily("triton_poi_fused_add_mul_3"), "elementwise");
  EXPECT_EQ(GeneratedFamily("triton_per_fused_native_layer_norm_2"), "norm");
  EXPECT_EQ(GeneratedFamily("triton_red_fused_abs_amax_view_32"), "reduce");
  EXPECT_EQ(GeneratedFamily("triton_poi_fused_clone_transpose_1"), "copy");
  EXPECT_EQ(GeneratedFamily("triton_poi_fused_gelu_0"), "activation");
  EXPECT_EQ(GeneratedFamily("void kernel()"), "");
}

// The combined automaton that takes over for many names answers as the single
// patterns do.
TEST(PatternTable, BothEnginesAgree) {
  const auto few = BuiltinCatalog();
  const auto many = BuiltinCatalog();
  for (int i = 0; i < 1000; ++i)
    many->kernel_table().Find("warm up " + std::to_string(i));
  for (const PatternRule& rule : few->kernel_table().rules()) {
    for (const std::string& example : rule.examples) {
      EXPECT_EQ(few->kernel_table().Find(example),
                many->kernel_table().Find(example))
          << example;
    }
  }
}

TEST(Document, ErrorsNamePlaceAndNearestKey) {
  const auto file = ParseYaml("rules.yaml",
                              "families:\n"
                              "  - {family: gemm, gruop: gemm, title: G}\n");
  ASSERT_TRUE(file.has_value());
  const std::string_view keys[] = {"family", "group", "title"};
  const auto members =
      Members::Of(*file, file->root.Find("families")->items[0], keys);
  ASSERT_FALSE(members.has_value());
  EXPECT_EQ(members.error().ToString(),
            "rules.yaml:2:20: unknown key 'gruop'; did you mean 'group'?\n"
            "    - {family: gemm, gruop: gemm, title: G}\n"
            "                     ^");
  const auto broken = ParseYaml("broken.yaml", "a: [1, 2\nb: 3\n");
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().line, 2u);
}

// Nine lines that stand for 10^9 nodes.
TEST(Document, AliasesAreWrittenOutUpToALimit) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int k = 1; k < 10; ++k) text += ", " + last;
    text += "]\n";
  }
  const auto file = ParseYaml("laughs.yaml", text);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().what, "too much, with every alias written out");
  EXPECT_GT(file.error().line, 0u);
  // Few are fine, and one inside of itself ends.
  EXPECT_TRUE(ParseYaml("t", "a: &a [x]\nb: [*a, *a]\n"));
  EXPECT_FALSE(ParseYaml("t", "a: &a [*a, *a]\n"));
}

TEST(Document, MessagesOfTheParserAreNoTerminalCodes) {
  for (const char* text :
       {"a: \"\\\x1b[31m\"", "a: !<\x1b[31m b", "\x1b[31m: [", "*\x1b[31m"}) {
    const auto file = ParseYaml("bad\x1b.yaml", text);
    ASSERT_FALSE(file.has_value()) << text;
    EXPECT_EQ(file.error().ToString().find('\x1b'), std::string::npos);
  }
}

TEST(Document, DeepNestingIsAnError) {
  for (const char open : {'[', '{', '-', '?'}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) {
      text += open;
      if (open == '-' || open == '?') text += ' ';
    }
    EXPECT_FALSE(ParseYaml("deep.yaml", text).has_value()) << open;
  }
}

TEST(Document, EmbeddedTreesEqualTheirSources) {
  size_t compared = 0;
  for (const std::string& name : EmbeddedNames()) {
    if (!name.ends_with(".yaml")) continue;
    const std::filesystem::path path =
        std::filesystem::path(LAMINA_SOURCE_DIR) / "data" / name;
    std::ifstream in(path);
    const std::string text((std::istreambuf_iterator<char>(in)),
                           std::istreambuf_iterator<char>());
    const auto parsed = ParseYaml(name, text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
    std::string a, b;
    AppendNode(a, parsed->root);
    AppendNode(b, LoadEmbedded(name)->root);
    EXPECT_EQ(a, b) << name;
    ++compared;
  }
  EXPECT_GT(compared, 5u);
}

class Overlay : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("rules_test" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "kernels");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(Overlay, UserRulesComeFirst) {
  Write("kernels/mine.yaml",
        "table: kernel_family\nrules:\n"
        "  - {id: mine, match: 'nvjet', family: moe}\n");
  const auto catalog = Catalog::Load(DataSet(folder_.string()));
  ASSERT_TRUE(catalog.has_value());
  EXPECT_EQ((*catalog)->KernelFamily("nvjet_tst_128x256"), "moe");
  EXPECT_EQ((*catalog)->KernelFamily("flash_fwd_kernel"), "attention");
}

// A pattern may neither match everything nor repeat without measure.
TEST_F(Overlay, EmptyAndHugePatternsAreRefused) {
  const auto error_of = [&](const std::string& pattern) {
    Write("kernels/bad.yaml",
          "table: kernel_family\nrules:\n  - {id: bad, match: '" + pattern +
              "', family: moe}\n");
    const auto catalog = Catalog::Load(DataSet(folder_.string()));
    return catalog ? std::string() : catalog.error().what;
  };
  EXPECT_EQ(error_of("x"), "");
  EXPECT_EQ(error_of(""), "an empty pattern matches every name");
  EXPECT_EQ(error_of("\\pL{100}"),
            "the pattern is too large: it repeats too much");
  EXPECT_NE(error_of("((a{999}){999}){999}"), "");
}

TEST_F(Overlay, BadRulesAreRefusedWithTheirPlace) {
  Write("kernels/bad.yaml",
        "table: kernel_family\nrules:\n"
        "  - {id: bad, match: '(', family: moe}\n");
  auto catalog = Catalog::Load(DataSet(folder_.string()));
  ASSERT_FALSE(catalog.has_value());
  EXPECT_EQ(catalog.error().line, 3u);
  EXPECT_NE(catalog.error().what.find("bad pattern"), std::string::npos);
  Write("kernels/bad.yaml",
        "table: kernel_family\nrules:\n"
        "  - {id: bad, match: 'x', family: mow}\n");
  catalog = Catalog::Load(DataSet(folder_.string()));
  ASSERT_FALSE(catalog.has_value());
  EXPECT_EQ(catalog.error().hint, "did you mean 'moe'?");
}

}  // namespace
}  // namespace lamina::rules
