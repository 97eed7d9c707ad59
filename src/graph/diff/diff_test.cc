// SPDX-License-Identifier: Apache-2.0
#include "graph/diff/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/dump.h"

namespace lamina::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "change name" of every difference.
std::vector<std::string> Changes(const std::string& a, const std::string& b) {
  ParseOptions options;
  options.ops = std::make_shared<StringPool>();
  const auto x = ParseDump("a", a, options);
  const auto y = ParseDump("b", b, options);
  EXPECT_TRUE(x && y);
  std::vector<std::string> out;
  for (const Difference& one : Compare(x->graphs[0], y->graphs[0])) {
    const NodeId id = one.b.valid() ? one.b : one.a;
    const Graph& graph = one.b.valid() ? y->graphs[0] : x->graphs[0];
    out.push_back(std::string(ChangeName(one.change)) + " " +
                  std::string(graph[id].name));
  }
  return out;
}

const std::string kBase =
    "%x : s0x4 : torch.int8\n"
    "%a = f.one(%x : s0x4 : torch.int8, %w : 4 : torch.int8) : s0x4 : "
    "torch.int8\n"
    "%b = <function g.<locals>.two at 0x7f>(%a : s0x4 : torch.int8, 2) : s0x4 "
    ": torch.int8\n"
    "output %b\n";

std::string With(const std::string& from, const std::string& to) {
  std::string out = kBase;
  for (size_t at = out.find(from); at != std::string::npos;
       at = out.find(from, at + to.size()))
    out.replace(at, from.size(), to);
  return out;
}

TEST(Diff, NamesSymbolsAndAddressesDoNotCount) {
  EXPECT_THAT(Changes(kBase, kBase), IsEmpty());
  EXPECT_THAT(Changes(kBase, With("%a", "%a_77")), IsEmpty());
  EXPECT_THAT(Changes(kBase, With("s0", "s9")), IsEmpty());
  EXPECT_THAT(Changes(kBase, With("s0", "16")), IsEmpty());
  EXPECT_THAT(Changes(kBase, With("0x7f", "0x88")), IsEmpty());
}

TEST(Diff, WhatChangedIsNamed) {
  EXPECT_THAT(Changes(kBase, With("2) :", "3) :")), ElementsAre("literal b"));
  // Quotes are part of a literal.
  EXPECT_THAT(Changes(kBase, With("2) :", "'2') :")), ElementsAre("literal b"));
  EXPECT_THAT(Changes(kBase, With("%w : 4 : torch.int8) : s0x4 : torch.int8",
                                  "%w : 4 : torch.int8) : ? : N/A")),
              ElementsAre("metadata_lost a"));
  EXPECT_THAT(Changes(With("%w : 4 : torch.int8) : s0x4 : torch.int8",
                           "%w : 4 : torch.int8) : ? : N/A"),
                      kBase),
              ElementsAre("metadata_gained a"));
  EXPECT_THAT(Changes(kBase, With("%w : 4 : torch.int8) : s0x4 : torch.int8",
                                  "%w : 4 : torch.int8) : s0x5 : torch.int8")),
              ElementsAre("shape a"));
  EXPECT_THAT(Changes(kBase, With("two at 0x7f>(%a", "two at 0x7f>(%x")),
              ElementsAre("rewired b"));
  EXPECT_THAT(Changes(kBase, With("f.one", "f.other")),
              ElementsAre("added a", "rewired b", "removed a"));
}

}  // namespace
}  // namespace lamina::graph
