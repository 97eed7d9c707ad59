// SPDX-License-Identifier: Apache-2.0
#include "base/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PackedFiles, ComeBackAsTheyWere) {
  std::string bytes;
  for (size_t i = 0; i < 100000; ++i) bytes += static_cast<char>(i * i >> 5);
  const std::string packed =
      PackFiles({{"b", bytes}, {"a/empty", ""}, {"c", bytes + "and more"}});
  const PackedFiles files(packed);
  EXPECT_THAT(files.files(), ElementsAre(Pair("a/empty", ""), Pair("b", bytes),
                                         Pair("c", bytes + "and more")));
  EXPECT_EQ(files.Find("b"), bytes);
  EXPECT_EQ(files.Find("a"), std::nullopt);
  EXPECT_EQ(files.Find("d"), std::nullopt);
  // What they share is kept once.
  EXPECT_LT(packed.size(), PackFiles({{"b", bytes}}).size() + 200);
  EXPECT_TRUE(PackedFiles(PackFiles({})).files().empty());
}

TEST(PackedFilesDeathTest, DamageStops) {
  std::string packed = PackFiles({{"name", "text that is packed"}});
  EXPECT_DEATH(PackedFiles(packed.substr(0, packed.size() - 1)), "");
  packed[packed.size() - 1] ^= 1;
  EXPECT_DEATH(PackedFiles{packed}, "");
  EXPECT_DEATH(PackedFiles{""}, "");
}

TEST(Varint, ComesBackAsItWas) {
  std::string bytes;
  const uint32_t values[] = {0, 1, 127, 128, 300, 1u << 21, UINT32_MAX};
  for (const uint32_t value : values) AppendVarint(bytes, value);
  EXPECT_EQ(bytes.size(), 1u + 1 + 1 + 2 + 2 + 4 + 5);
  std::string_view rest = bytes;
  for (const uint32_t value : values) EXPECT_EQ(TakeVarint(rest), value);
  EXPECT_TRUE(rest.empty());
  EXPECT_DEATH(TakeVarint(rest), "");
}

}  // namespace
}  // namespace lamina
