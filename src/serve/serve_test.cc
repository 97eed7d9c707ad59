// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <random>

#include "serve/frames.h"
#include "serve/guard.h"

namespace lamina::serve {
namespace {

TEST(Frames, AnyCutGivesTheSame) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Frame> sent;
    std::string text;
    for (int i = 0; i < 5; ++i) {
      Frame frame{"qcpor"[random() % 5], random() % 1000,
                  static_cast<int>(random() % 600),
                  std::string(random() % 50, '\n')};
      text += FrameText(frame);
      sent.push_back(std::move(frame));
    }
    FrameReader reader;
    std::vector<Frame> got;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 9, text.size() - at);
      reader.Feed(std::string_view(text).substr(at, size));
      at += size;
      while (auto frame = reader.Next()) got.push_back(*std::move(frame));
    }
    EXPECT_FALSE(reader.damaged());
    ASSERT_EQ(got.size(), sent.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(FrameText(got[i]), FrameText(sent[i]));
  }
}

TEST(Frames, WhatIsNoneEndsIt) {
  for (const char* text :
       {"\n", "r\n", "r 1 2\n", "r 1 2 -1\n", "r 1 2 3 4\n", "rr 1 2 3\n",
        "r 1 2 99999999999\n", "r x 2 3\n", "r 1 2 3",
        "r 18446744073709551616 "
        "0 0\n"}) {
    FrameReader reader;
    reader.Feed(text);
    EXPECT_FALSE(reader.Next().has_value()) << text;
    EXPECT_EQ(reader.damaged(), std::string_view(text).ends_with('\n')) << text;
  }
  FrameReader reader;
  reader.Feed(std::string(100, 'r'));
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_TRUE(reader.damaged());
}

TEST(Guard, TokensAreNotEqual) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = MakeToken();
    EXPECT_TRUE(IsToken(token)) << token;
    EXPECT_TRUE(seen.insert(token).second);
  }
  for (const char* text :
       {"", "x", "../../../../../../../../../../../../../etc"})
    EXPECT_FALSE(IsToken(text));
}

TEST(Guard, NamesOfTunnels) {
  Guard guard(MakeToken(), {"Laptop.lan"});
  const auto status = [&](const char* host, const char* origin) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/";
    request.headers.emplace_back("hOST", host);
    if (origin != nullptr) request.headers.emplace_back("Origin", origin);
    const auto refused = guard.Check(request);
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("laptop.lan", nullptr), 200);
  EXPECT_EQ(status("LAPTOP.lan:8250", "http://laptop.lan:8250"), 200);
  EXPECT_EQ(status("laptop.lan:8250", "http://127.0.0.1:8250"), 403);
  EXPECT_EQ(status("laptop.lan.evil", nullptr), 421);
  EXPECT_EQ(status("xlaptop.lan", nullptr), 421);
}

}  // namespace
}  // namespace lamina::serve
