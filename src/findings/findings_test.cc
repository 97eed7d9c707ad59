// SPDX-License-Identifier: Apache-2.0
#include "findings/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "findings/text.h"
#include "rules/document.h"
#include "source_dir.h"

namespace lamina::findings {
namespace {

using testing::Gt;
using testing::SizeIs;

// All that is shown of a run, as text.
std::vector<std::string> TextsOf(const std::string& sample, int threads) {
  engine::OpenOptions open;
  open.threads = threads;
  const auto rules = RuleSet::Load(rules::DataSet(""));
  EXPECT_TRUE(rules.has_value());
  Options options;
  options.all = true;
  options.min_share = 0;
  options.slices_for_threads = 0;
  const auto diagnosis =
      Diagnose(*engine::Session::Open(
                   std::string(LAMINA_SOURCE_DIR "/samples/") + sample, open),
               *rules, options);
  EXPECT_TRUE(diagnosis.has_value());
  std::vector<std::string> out;
  for (const Table& table : Tables(*diagnosis).tables) {
    for (size_t row = 0; row < table.rows(); ++row) {
      std::string& line = out.emplace_back(table.schema().name);
      for (size_t c = 0; c < table.schema().columns.size(); ++c) {
        const Value value = table.At(row, c);
        line += '|';
        if (value.kind() == Value::Kind::kText) {
          line += value.text();
        } else if (!value.null()) {
          line += std::to_string(value.real());
        }
      }
    }
  }
  return out;
}

TEST(Diagnose, IsTheSameWithAnyNumberOfThreads) {
  for (const char* const sample :
       {"train_step.json.gz", "serve.json.gz", "moe.json.gz"}) {
    const auto one = TextsOf(sample, 1);
    EXPECT_THAT(one, SizeIs(Gt(70u)));
    for (const int threads : {2, 3, 8})
      EXPECT_EQ(TextsOf(sample, threads), one) << sample << " " << threads;
  }
}

TEST(Todo, EveryRuleSaysWhatToDoInOneLine) {
  const auto rules = RuleSet::Load(rules::DataSet(""));
  ASSERT_TRUE(rules.has_value());
  std::set<std::string> texts;
  for (const Rule& rule : (*rules)->rules()) {
    EXPECT_EQ(CheckTodo(rule.todo), "") << rule.id;
    EXPECT_TRUE(texts.insert(rule.todo).second ||
                rule.todo == "Pin the launching thread")
        << rule.id << ": " << rule.todo;
  }
  EXPECT_NE(CheckTodo("Use what no line of thirty-two has room for"), "");
  EXPECT_NE(CheckTodo("use fused attention"), "");
  EXPECT_NE(CheckTodo("Use fused attention."), "");
  EXPECT_NE(CheckTodo("Tune {op kernels"), "");
  EXPECT_NE(CheckTodo(""), "");
}

TEST(Todo, NamesLoseWhatStandsInFrontUntilTheyFit) {
  const auto filled = [](std::string_view name) {
    return FillTodo(
        "Tune {op} kernels", [&](std::string_view) { return Value(name); },
        kMostTodo);
  };
  EXPECT_EQ(filled("aten::mm"), "Tune mm kernels");
  EXPECT_EQ(filled("aten::_scaled_dot_product_flash_attention"),
            "Tune flash_attention kernels");
  EXPECT_EQ(filled("a/model.py(40): forward"), "Tune forward kernels");
  EXPECT_EQ(filled("<built-in method item of Tensor object at 0x7f>"),
            "Tune item kernels");
  EXPECT_EQ(filled("Optimizer.step#SGD.step"), "Tune SGD.step kernels");
  EXPECT_EQ(filled("ProfilerStep#12"), "Tune the step kernels");
  EXPECT_EQ(filled("## data_load ##"), "Tune data_load kernels");
  EXPECT_EQ(filled("[param|clear_cache]"), "Tune clear_cache kernels");
  EXPECT_EQ(filled("aten::_local_scalar_dense"), "Tune .item() kernels");
  EXPECT_LE(filled(std::string(300, 'x')).size(), kMostTodo);
  EXPECT_LE(filled("Torch-Compiled Region: 12/3 of many").size(), kMostTodo);
  EXPECT_EQ(FillTodo(
                "Avoid {op|scalar reads}",
                [](std::string_view) -> Value { return {}; }, kMostTodo),
            "Avoid scalar reads");
}

TEST(FillTemplate, WordsGoWithTheirNumber) {
  constexpr std::string_view text =
      "{n:copy|copies} of {name|work} {n?takes|take} {n:load|loads}.";
  const auto filled = [&](Value n) {
    return FillTemplate(
        text, [&](std::string_view name) { return name == "n" ? n : Value(); });
  };
  EXPECT_EQ(filled(1), "1 copy of work takes 1 load.");
  EXPECT_EQ(filled(1.0), "1 copy of work takes 1 load.");
  EXPECT_EQ(filled(0), "0 copies of work take 0 loads.");
  EXPECT_EQ(filled(1200), "1,200 copies of work take 1,200 loads.");
  EXPECT_EQ(CheckTemplate(text), "");
  EXPECT_NE(CheckTemplate("{n:copies}"), "");
  EXPECT_NE(CheckTemplate("{n?a|b|c}"), "");
}

}  // namespace
}  // namespace lamina::findings
