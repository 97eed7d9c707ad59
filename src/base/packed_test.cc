// SPDX-License-Identifier: Apache-2.0
#include "base/packed.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Packed, ComesBackAsItWas) {
  std::string bytes;
  for (size_t i = 0; i < 100000; ++i) bytes += static_cast<char>(i * i >> 5);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{300}, bytes.size()}) {
    const std::string part = bytes.substr(0, size);
    EXPECT_EQ(Unpack(Pack(part)), part);
  }
  EXPECT_LT(Pack(std::string(bytes.size(), 'a')).size(), bytes.size() / 100);
}

TEST(PackedDeathTest, DamageStops) {
  std::string packed = Pack("text that is packed");
  packed[packed.size() - 1] ^= 1;
  EXPECT_DEATH(Unpack(packed), "");
}

}  // namespace
}  // namespace lamina
