// SPDX-License-Identifier: Apache-2.0
#include "graph/line_parser.h"

#include <gtest/gtest.h>

namespace lamina::graph {
namespace {

ParsedLine Parse(std::string_view line) {
  ParsedLine out;
  LineError error;
  EXPECT_TRUE(ParseLine(line, out, error)) << line << ": " << error.what;
  return out;
}

LineError Wrong(std::string_view line) {
  ParsedLine out;
  LineError error;
  EXPECT_FALSE(ParseLine(line, out, error)) << line;
  return error;
}

// "value name[annotation]", "literal text", containers with their entries.
std::string Shape(const ParsedLine& line) {
  std::string out;
  for (const ParsedOperand& operand : line.operands) {
    if (!out.empty()) out += " | ";
    if (operand.kind == OperandKind::kValue) {
      out += "%" + std::string(operand.name);
      if (!operand.annotation.empty())
        out += "<" + std::string(operand.annotation) + ">";
    } else {
      out += operand.text;
      if (operand.extent > 0) out += "{" + std::to_string(operand.extent) + "}";
    }
  }
  return out;
}

TEST(LineParser, Placeholder) {
  const ParsedLine line = Parse("%mask : s0x3x2*s1x(s2//14) : torch.bool");
  EXPECT_EQ(line.kind, NodeKind::kPlaceholder);
  EXPECT_EQ(line.name, "mask");
  EXPECT_EQ(line.result, "s0x3x2*s1x(s2//14) : torch.bool");
}

TEST(LineParser, NamesInListsAreReferences) {
  const ParsedLine line =
      Parse("%a = aten.cat.default([neg, slice_1, None], -1) : 4 : torch.int8");
  EXPECT_EQ(line.target, "aten.cat.default");
  EXPECT_EQ(Shape(line),
            "[neg, slice_1, None]{3} | %neg | %slice_1 | None | -1");
}

TEST(LineParser, WordsThatAreNoReferences) {
  const ParsedLine line = Parse(
      "%a = f.g((slice(None, x, 2), Ellipsis, torch.float16, 'name', "
      "device(type='cuda', index=0), {'k': y})) : 4 : torch.int8");
  std::string names;
  for (const ParsedOperand& operand : line.operands) {
    if (operand.kind == OperandKind::kValue) names += operand.name;
  }
  EXPECT_EQ(names, "xy");
}

TEST(LineParser, TheListEndsWhereItsBracketCloses) {
  // The result holds brackets, operands hold " : ".
  const ParsedLine line = Parse(
      "%t = aten.t(%a : s0x(s2//14) : torch.bfloat16) : (s2//14)xs0 : "
      "torch.bfloat16");
  EXPECT_EQ(Shape(line), "%a<s0x(s2//14) : torch.bfloat16>");
  EXPECT_EQ(line.result, "(s2//14)xs0 : torch.bfloat16");
}

TEST(LineParser, SeveralResults) {
  const ParsedLine line = Parse(
      "%s = aten.split(%a : 4 : torch.int8, 2) : (2x3, ?) : "
      "(torch.int8, None)");
  EXPECT_EQ(line.result, "(2x3, ?) : (torch.int8, None)");
}

TEST(LineParser, FunctionTargets) {
  EXPECT_EQ(Parse("%a = <function f.<locals>.g at 0x7f>(%x : ? : int) : ? : "
                  "N/A")
                .target,
            "<function f.<locals>.g at 0x7f>");
  EXPECT_EQ(Parse("%a = <built-in function getitem>(%x : ? : tuple, 0) : 2 : "
                  "torch.int8")
                .target,
            "<built-in function getitem>");
  EXPECT_EQ(
      Parse("%a = layers.0.mlp(%x : 2 : torch.int8) : 2 : torch.int8").target,
      "layers.0.mlp");
}

TEST(LineParser, StringsWithoutQuotes) {
  const ParsedLine plain =
      Parse("%a = f.g(%x : 2 : torch.int8, NCCL, bsnd) : 2 : torch.int8");
  EXPECT_FALSE(plain.ambiguous);
  EXPECT_EQ(Shape(plain), "%x<2 : torch.int8> | NCCL | bsnd");
  const ParsedLine odd =
      Parse("%a = f.g(%x : 2 : torch.int8, (x) : y) : 2 : torch.int8");
  EXPECT_TRUE(odd.ambiguous);
  // An unbalanced string: only one place can end the list.
  const ParsedLine open =
      Parse("%a = f.g(%x : 2 : torch.int8, a) : b) : 2 : torch.int8");
  EXPECT_TRUE(open.ambiguous);
  EXPECT_EQ(open.result, "2 : torch.int8");
  EXPECT_TRUE(
      Parse("%a = f.g(%x : 2 : torch.int8, (() : 2 : torch.int8").ambiguous);
}

TEST(LineParser, Outputs) {
  EXPECT_EQ(Shape(Parse("output %a, [b, c], None")),
            "%a | [b, c]{2} | %b | %c | None");
  EXPECT_TRUE(Parse("output(%a, %b)").call_form);
  EXPECT_EQ(Shape(Parse("output None")), "None");
  EXPECT_EQ(Parse("output").operands.size(), 0U);
}

TEST(LineParser, ErrorsNameTheirPlace) {
  EXPECT_EQ(Wrong("hello").column, 0U);
  EXPECT_EQ(Wrong("% : 2 : torch.int8").column, 1U);
  EXPECT_EQ(Wrong("%x").column, 2U);
  EXPECT_EQ(Wrong("%x : 2").column, 5U);
  const LineError open = Wrong("%x = f.g(%a : 2 : torch.int8, [1, 2");
  EXPECT_EQ(open.column, 35U);
  EXPECT_EQ(open.note, "the operand list opened at column 9");
  const LineError result = Wrong("%x = f.g(%a : 2 : torch.int8)");
  EXPECT_EQ(result.what,
            "expected ' : ' and a result after the operand list, found ''");
  EXPECT_EQ(result.column, 29U);
  EXPECT_EQ(Wrong(std::string_view("%x\0 : 2 : int", 13)).column, 2U);
}

TEST(LineParser, DepthIsLimitedAndNotOnTheStack) {
  const auto nested = [](size_t depth) {
    return "%x = f.g(" + std::string(depth, '[') + "1" +
           std::string(depth, ']') + ") : 2 : torch.int8";
  };
  EXPECT_EQ(Parse(nested(9000)).operands.size(), 9001U);
  EXPECT_NE(Wrong(nested(10001)).what.find("nested"), std::string::npos);
}

TEST(LineParser, ManyOperands) {
  std::string line = "%x = f.g(";
  for (int i = 0; i < 100000; ++i)
    line += "%v" + std::to_string(i) + " : 4x8 : torch.float32, ";
  line += "[";
  for (int i = 0; i < 100000; ++i) line += "w" + std::to_string(i) + ", ";
  line += "last]) : 4 : torch.float32";
  EXPECT_EQ(Parse(line).operands.size(), 200002U);
}

// Every prefix of a line is either read or refused at a place inside it.
TEST(LineParser, PrefixesNeverCrash) {
  const std::string line =
      "%a = <function f.<locals>.g at 0x7f>(%x : s0x(s2//14) : torch.int8, "
      "[(slice(None, 'a\\'b', {'k': y}), 1e-5)], NCCL, cuda:0) : (2, ?) : "
      "(torch.int8, None)";
  for (size_t size = 0; size < line.size(); ++size) {
    ParsedLine out;
    LineError error;
    if (!ParseLine(std::string_view(line).substr(0, size), out, error)) {
      EXPECT_LE(error.column, size);
      EXPECT_FALSE(error.what.empty());
    }
  }
  Parse(line);
}

}  // namespace
}  // namespace lamina::graph
