// SPDX-License-Identifier: Apache-2.0
#include "base/byte_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace lamina {
namespace {

// Gives a text in pieces of a few bytes, as a pipe does.
class Dripping final : public ByteSource {
 public:
  explicit Dripping(std::string text)
      : ByteSource("drip"), text_(std::move(text)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    const size_t piece = std::min({size, size_t{3}, text_.size() - at_});
    std::copy_n(text_.data() + at_, piece, to);
    at_ += piece;
    return piece;
  }
  uint64_t stored_position() const override { return at_; }

 private:
  std::string text_;
  size_t at_ = 0;
};

// Whatever the order of the calls, text() is what stands at offset().
TEST(ByteWindow, KeepsTextAndOffsetTogether) {
  std::mt19937 random(3);
  std::string input(500, ' ');
  for (char& c : input) c = static_cast<char>('a' + random() % 26);
  for (int round = 0; round < 200; ++round) {
    Dripping source(input);
    ByteWindow window(&source);
    while (!window.empty()) {
      const size_t from = window.offset();
      ASSERT_EQ(window.text(), input.substr(from, window.text().size()));
      switch (random() % 3) {
        case 0: {
          const size_t before = window.text().size();
          const auto more = window.Fill(1 + random() % 20);
          ASSERT_TRUE(more.has_value());
          EXPECT_EQ(*more, window.text().size() > before);
          break;
        }
        case 1:
          window.Consume(random() % (window.text().size() + 1));
          break;
        default: {
          std::string buffer(random() % (window.text().size() + 20), '\0');
          const auto taken = window.Take(buffer.data(), buffer.size());
          ASSERT_TRUE(taken.has_value());
          buffer.resize(*taken);
          EXPECT_EQ(buffer, input.substr(from, buffer.size()));
          const size_t used = random() % (buffer.size() + 1);
          window.PutBack(std::string_view(buffer).substr(used));
          EXPECT_EQ(window.offset(), from + used);
        }
      }
    }
    EXPECT_EQ(window.offset(), input.size());
  }
}

TEST(ByteWindow, ClosedHasNothingMore) {
  Dripping source("abcdef");
  ByteWindow window(&source);
  ASSERT_TRUE(window.Fill(4).value());
  window.Close();
  EXPECT_EQ(window.text(), "");
  EXPECT_EQ(window.offset(), 4u);
  EXPECT_FALSE(window.Fill(4).value());
}

}  // namespace
}  // namespace lamina
