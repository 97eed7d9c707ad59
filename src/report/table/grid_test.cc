// SPDX-License-Identifier: Apache-2.0
#include "report/table/grid.h"

#include <gtest/gtest.h>
#include <sstream>
#include <vector>

#include "base/escape.h"

namespace lamina::report::table {
namespace {

constexpr char kLong[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor"
    "_add<c10::BFloat16>, std::array<char*, 3ul> >(int)";

lamina::Table Kernels() {
  lamina::Table table({"kernels",
                       "Kernels.",
                       {{"kernel", ColumnType::kText, "Name."},
                        {"module", ColumnType::kText, "Path."},
                        {"device", ColumnType::kInt, "Id.", Shown::kHidden},
                        {"time_us", ColumnType::kTime, "Sum."},
                        {"percent", ColumnType::kReal, "Share.", Shown::kBar},
                        {"count", ColumnType::kInt, "Calls."}}});
  const std::string module =
      "Qwen2ForCausalLM_0/Qwen2Model_0/Qwen2DecoderLayer_3/Qwen2Attention_3";
  const auto add = [&](std::string_view kernel, std::string_view path,
                       int64_t time_ns, double percent, int64_t count) {
    table.Add(kernel, path, int64_t{0}, time_ns, percent, count);
  };
  add(kLong, module, 1'500'000, 75, 12);
  add("attn_fwd", module, 500'000, 25, 3);
  add("copy", "", 0, 0, 1);
  return table;
}

std::vector<std::string> Lines(int width, size_t max_rows = 20) {
  GridOptions options;
  options.width = width;
  options.max_rows = max_rows;
  std::istringstream in(FormatGrid(Kernels(), options));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Grid, WideEnoughItShowsNamesBarsAndAllColumns) {
  const auto lines = Lines(300);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_TRUE(lines[1].starts_with("kernel  ")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("percent             count")) << lines[1];
  EXPECT_NE(lines[2].find("75.0 \u2588\u2588\u2588\u2588\u2588\u2588\u2588"
                          "\u2588\u2588     "),
            std::string::npos)
      << lines[2];
  EXPECT_EQ(lines[5], "... 1 more column in csv and json");
}

// No line is wider than the terminal, and the title is the only one that may
// be.
TEST(Grid, NoLineIsWiderThanAskedFor) {
  for (int width = 40; width < 200; ++width) {
    const auto lines = Lines(width);
    for (size_t i = 1; i + 1 < lines.size(); ++i)
      EXPECT_LE(DisplayWidth(lines[i]), static_cast<size_t>(width)) << lines[i];
  }
}

TEST(Grid, NamesLoseNamespacesAndPathsTheirBeginning) {
  const auto lines = Lines(130);
  EXPECT_TRUE(lines[2].starts_with("vectorized_elementwise_kernel<4, CUDA"))
      << lines[2];
  EXPECT_NE(lines[2].find("odel_0/Qwen2DecoderLayer_3/Qwen2Attention_3  "),
            std::string::npos)
      << lines[2];
}

// What stands behind the bars goes first, then the bars, then other columns.
TEST(Grid, BarsGoBeforeNamesGetTooShortToTellApart) {
  const auto narrow = Lines(95);
  EXPECT_TRUE(narrow[1].ends_with("time  percent")) << narrow[1];
  EXPECT_NE(narrow[2].find("   75.0 \u2588"), std::string::npos) << narrow[2];
  EXPECT_EQ(narrow[5], "... 2 more columns in csv and json");
  const auto narrower = Lines(75);
  EXPECT_TRUE(narrower[1].ends_with("time  percent  count")) << narrower[1];
  EXPECT_EQ(narrower[2].find("\u2588"), std::string::npos) << narrower[2];
}

TEST(Grid, CountsRowsThatAreLeftOut) {
  EXPECT_EQ(Lines(300, 2).back(),
            "... 1 more row, 1 more column in csv and json");
  EXPECT_EQ(Lines(300, 1).back(),
            "... 2 more rows, 1 more column in csv and json");
}

}  // namespace
}  // namespace lamina::report::table
