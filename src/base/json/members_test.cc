// SPDX-License-Identifier: Apache-2.0
#include "base/json/members.h"

#include <gtest/gtest.h>
#include <string>

namespace lamina::json {
namespace {

// "key=value;" for each member, then how the object ended.
std::string ByText(std::string_view text) {
  std::string out;
  MemberScan members(text);
  for (Member member; members.Next(member);) {
    EXPECT_EQ(text.substr(member.position, member.value.size()), member.value);
    out += std::string(member.key) + "=" + std::string(member.value) + ";";
  }
  return out + (members.closed() ? "closed" : "broken");
}

std::string ByTokens(std::string_view text) {
  std::string padded(text);
  padded.append(kPadding, ' ');
  TokenIndex index;
  if (index.Build({padded.data(), text.size()}) != TokenIndex::Outcome::kOk)
    return "no tokens";
  const Tokens tokens({padded.data(), text.size()}, index);
  std::string out;
  size_t token = 0;
  const bool closed =
      WalkObject(tokens, token, [&](std::string_view key, size_t& value) {
        const bool nested =
            tokens.Kind(value) == '{' || tokens.Kind(value) == '[';
        out += std::string(key) + "=";
        if (!nested) out += tokens.Scalar(value);
        const size_t first = value;
        if (!SkipValue(tokens, value)) return false;
        if (nested) out += tokens.Raw(first, value);
        out += ";";
        return true;
      });
  EXPECT_TRUE(!closed || token == tokens.count());
  return out + (closed ? "closed" : "broken");
}

TEST(Members, AreTheSameOverTextAndTokens) {
  for (const auto& [text, expected] :
       {std::pair{"{}", "closed"},
        {" { \"a\" : 1 } ", "a=1;closed"},
        {"{\"a\":{\"b\":[1]},\"c\\\"\":\"x, y\"}",
         "a={\"b\":[1]};c\\\"=\"x, y\";closed"},
        {"{\"a\":1 \"b\":2}", "a=1;broken"},
        {"{\"a\" 1}", "broken"},
        {"{1:2}", "broken"},
        {"{\"a\":1,}", "a=1;broken"},
        {"{\"a\":1", "a=1;broken"},
        {"{,\"a\":1}", "broken"}}) {
    EXPECT_EQ(ByText(text), expected) << text;
    EXPECT_EQ(ByTokens(text), expected) << text;
  }
}

TEST(Members, TextThatIsNoObjectHasNone) {
  for (const char* text : {"", " ", "[1]", "\"a\"", "{\"a\":}", "{\"a\":tru}"})
    EXPECT_EQ(ByText(text), "broken") << text;
}

TEST(Members, StayEndedOnceEnded) {
  MemberScan members("{\"a\" 1, \"b\": 2}");
  Member member;
  EXPECT_FALSE(members.Next(member));
  EXPECT_FALSE(members.Next(member));
}

}  // namespace
}  // namespace lamina::json
