// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <gtest/gtest.h>

namespace lamina {
namespace {

TEST(Demangle, ReadsSymbolsAndLeavesOtherText) {
  EXPECT_EQ(Demangle("_ZN2at6native3addIfEEvPT_"),
            "void at::native::add<float>(float*)");
  EXPECT_EQ(Demangle("_ZN2at6native3addIfEEvPT_.kd"),
            "void at::native::add<float>(float*)");
  for (const char* text : {"", "_Z", "_ZN", "add", "Memcpy DtoH", "_ZN99x"})
    EXPECT_EQ(Demangle(text), text);
}

// f(P<A, A>, P<1, 1>, P<2, 2>, ...): every argument is twice as long as the
// one before it.
std::string Doubling(int arguments) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1PI1AS0_E";
  for (int i = 0; i < arguments; ++i) {
    std::string number;
    for (int rest = i + 1; rest > 0; rest /= 36)
      number.insert(number.begin(), kDigits[rest % 36]);
    const std::string last = "S" + number + "_";
    name += "S_I" + last + last + "E";
  }
  return name;
}

TEST(Demangle, StopsWhereTheTextExplodes) {
  EXPECT_TRUE(Demangle(Doubling(4)).starts_with("f(P<A, A>, P<P<A, A>, "));
  const std::string hostile = Doubling(200);
  EXPECT_EQ(Demangle(hostile), hostile);
}

}  // namespace
}  // namespace lamina
