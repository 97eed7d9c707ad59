// SPDX-License-Identifier: Apache-2.0
#include "render/roofline/roofline.h"

#include <cmath>
#include <gtest/gtest.h>

namespace lamina::render {
namespace {

RooflinePlot Sample() {
  RooflinePlot plot;
  plot.title = "A <device> & more";
  plot.footnote = "\"quoted\"";
  plot.bytes_per_s = 1e12;
  plot.roofs = {{"matrix_bf16", 1e14}, {"vector_a", 1e13}, {"vector_b", 1e13}};
  plot.styles = {{"gemm", "#000001", "#fffff1"},
                 {"other", "#000002", "#fffff2"}};
  plot.marks = {{"aten::mm<script>", "gemm", 100, 5e13, 1000},
                {"aten::add", "nowhere", 0.1, 5e10, 500},
                {"no flops", "gemm", 0, 0, 100},
                {"not a number", "gemm", std::nan(""), 1e12, 100}};
  return plot;
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST(Roofline, EscapesAndCountsWhatItDraws) {
  const std::string svg = DrawRoofline(Sample());
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("A <device>"), std::string::npos);
  EXPECT_NE(svg.find("aten::mm&lt;script&gt;"), std::string::npos);
  // Two marks and the two of the legend; nothing that is not a number.
  EXPECT_EQ(Count(svg, "class=\"mark"), 4U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf\""), std::string::npos);
  // Roofs of one height are one line.
  EXPECT_NE(svg.find("vector_a, vector_b 10 T"), std::string::npos);
  EXPECT_EQ(Count(svg, "class=\"roof\""), 3U);
}

TEST(Roofline, AnEmptyPlotIsStillAPicture) {
  const std::string svg = DrawRoofline(RooflinePlot());
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace lamina::render
