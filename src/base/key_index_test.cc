// SPDX-License-Identifier: Apache-2.0
#include "base/key_index.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace lamina {
namespace {

constexpr std::array<std::string_view, 8> kKeys = {
    "x",
    "y",
    "id",
    "di",
    "start_timestamp",
    "start_timestamq",
    "Process Group Description",
    "thirty-two characters and no more"};
static_assert(kKeys[7].size() == 33);

// The key that is too long, cut.
constexpr std::array<std::string_view, 8> Keys() {
  auto keys = kKeys;
  keys[7].remove_suffix(1);
  return keys;
}
constexpr KeyIndex<8> kIndex{Keys()};

size_t Find(const std::string& text) {
  std::string padded = text + std::string(kIndex.kReadable, '#');
  return kIndex.Find(std::string_view(padded).substr(0, text.size()));
}

TEST(KeyIndex, FindsEveryKeyAndNothingElse) {
  const auto keys = Keys();
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(Find(std::string(keys[i])), i);
  EXPECT_EQ(Find(""), keys.size());
  EXPECT_EQ(Find(std::string(kKeys[7])), keys.size());
  EXPECT_EQ(Find("start_timestam"), keys.size());

  // One character changed: the slow twin says which key that is, if any.
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text(keys[random() % keys.size()]);
    text[random() % text.size()] = static_cast<char>(random());
    size_t expected = 0;
    while (expected < keys.size() && keys[expected] != text) ++expected;
    EXPECT_EQ(Find(text), expected) << text;
  }
}

}  // namespace
}  // namespace lamina
