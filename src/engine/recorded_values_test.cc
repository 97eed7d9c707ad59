// SPDX-License-Identifier: Apache-2.0
#include "engine/recorded_values.h"

#include <gtest/gtest.h>

namespace lamina::engine {
namespace {

TEST(RecordedValues, TypesHaveTheNamesOfTorch) {
  EXPECT_EQ(TorchType("c10::BFloat16"), "bfloat16");
  EXPECT_EQ(TorchType("long int"), "int64");
  EXPECT_EQ(TorchType("Scalar"), "");
}

TEST(RecordedValues, AreWrittenAsJson) {
  EXPECT_EQ(JsonOf("True"), "true");
  EXPECT_EQ(JsonOf("None"), "null");
  EXPECT_EQ(JsonOf("-3"), "-3");
  EXPECT_EQ(JsonOf("0.10000000000000001"), "0.1");
  EXPECT_EQ(JsonOf("[1, [2, 0.5], []]"), "[1, [2, 0.5], []]");
  EXPECT_EQ(JsonOf("tanh"), "\"tanh\"");
}

// torch prints a double without fraction as "1."; as an integer it would give
// an op of integers another result type.
TEST(RecordedValues, FloatsStayFloats) {
  EXPECT_EQ(JsonOf("1."), "1.0");
  EXPECT_EQ(JsonOf("-0."), "-0.0");
  EXPECT_EQ(JsonOf("2.0"), "2.0");
  EXPECT_EQ(JsonOf("1e3"), "1000.0");
  EXPECT_EQ(JsonOf("[1., 2]"), "[1.0, 2]");
}

// Only words of aten's options leave the trace.
TEST(RecordedValues, OtherTextStaysBehind) {
  for (const char* text : {"", "secret", "[1, 2", "1]", "1 2", "/home/user",
                           "[[[[[[[[[1]]]]]]]]]"})
    EXPECT_EQ(JsonOf(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lamina::engine
