// SPDX-License-Identifier: Apache-2.0
#include "graph/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/tables.h"
#include "graph/target.h"

namespace lamina::graph {
namespace {

using ::testing::ElementsAre;

TEST(Types, ShapesSplitBetweenDimensionsOnly) {
  EXPECT_THAT(*SplitShape("s0x3x2*s1x(s2//14)"),
              ElementsAre("s0", "3", "2*s1", "(s2//14)"));
  EXPECT_THAT(*SplitShape("s0xMax(1, u0)x3"),
              ElementsAre("s0", "Max(1, u0)", "3"));
  EXPECT_THAT(*SplitShape("s0xu0 + 2*u1x3"),
              ElementsAre("s0", "u0 + 2*u1", "3"));
  EXPECT_THAT(*SplitShape("0x128"), ElementsAre("0", "128"));
  EXPECT_TRUE(SplitShape("scalar")->empty());
  EXPECT_FALSE(SplitShape("?").has_value());
}

TEST(Types, DimensionsEvaluate) {
  const Bindings bindings = {{"s70", 128}, {"s72", 3}, {"u0", 0}};
  EXPECT_EQ(EvaluateDim("s70*s72", bindings), 384);
  EXPECT_EQ(EvaluateDim("s70 - 2*(s72 + 1)", bindings), 120);
  EXPECT_EQ(EvaluateDim("Max(1, u0)", bindings), 1);
  EXPECT_EQ(EvaluateDim("(s70//14)", bindings), 9);
  EXPECT_EQ(EvaluateDim("-7//2", bindings), -4);
  EXPECT_EQ(EvaluateDim("s1", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("s70//u0", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("9223372036854775807*s72", bindings), std::nullopt);
  EXPECT_EQ(EvaluateDim("s70 +", bindings), std::nullopt);
  EXPECT_EQ(Elements("s72xs70x8", bindings), 3 * 128 * 8);
  EXPECT_EQ(Elements("scalar", bindings), 1);
}

TEST(Types, CanonicalDimensions) {
  EXPECT_EQ(CanonicalDim("s72*s70"), CanonicalDim("s70*s72"));
  EXPECT_EQ(CanonicalDim("a + b*c"), CanonicalDim("c*b + a"));
  EXPECT_NE(CanonicalDim("a - b"), CanonicalDim("b - a"));
  EXPECT_NE(CanonicalDim("(a + b)*c"), CanonicalDim("a + b*c"));
  EXPECT_NE(CanonicalDim("a//b//c"), CanonicalDim("a//(b//c)"));
  EXPECT_EQ(CanonicalDim("Max(1, u0)"), CanonicalDim("Max(u0, 1)"));
  // What cannot be read stays.
  EXPECT_EQ(CanonicalDim("a <= b"), "a <= b");
  EXPECT_EQ(CanonicalShape("s72xs70*s72x4"), "s72xs70*s72x4");
}

TEST(Types, Results) {
  EXPECT_TRUE(IsResult("4x8 : torch.float32"));
  EXPECT_TRUE(IsResult("? : N/A"));
  EXPECT_TRUE(IsResult("(u0x32, ?) : (torch.float32, None)"));
  EXPECT_TRUE(IsResult("(s2//14)x3 : torch.float32"));
  EXPECT_FALSE(IsResult("4x8"));
  EXPECT_FALSE(IsResult("4x8 : torch.float32) : 2"));
  EXPECT_FALSE(IsResult("4(x8 : torch.float32"));
  EXPECT_EQ(ResultBytes("(2x3, 4) : (torch.float32, torch.int8)", {}), 28);
  EXPECT_EQ(ResultBytes("s0 : torch.float32", {}), std::nullopt);
  EXPECT_EQ(ResultBytes("4 : unknown", {}), std::nullopt);
}

TEST(Types, Targets) {
  EXPECT_EQ(NormalizeTarget("<built-in function getitem>"), "builtin.getitem");
  EXPECT_EQ(NormalizeTarget("<built-in method narrow of type object at 0x7f>"),
            "builtin.narrow");
  EXPECT_EQ(NormalizeTarget("<function a.<locals>.b.<locals>.split at 0x7f>"),
            "fn.split");
  EXPECT_EQ(QualifiedName("<function a.<locals>.split at 0x7f>"),
            "a.<locals>.split");
  EXPECT_EQ(NormalizeTarget("aten.add.Tensor"), "aten.add.Tensor");
  EXPECT_TRUE(MatchesTarget("aten.to.dtype", "aten.to"));
  EXPECT_FALSE(MatchesTarget("aten.topk", "aten.to"));
}

}  // namespace
}  // namespace lamina::graph
