// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/details.h"

#include <gtest/gtest.h>

namespace lamina::ingest::xplane {
namespace {

using trace::kNoInt;

TEST(Details, KernelDetailsInAnyOrder) {
  auto config = ParseKernelDetails(
      "regs:168 static_shared:16 dynamic_shared:32 grid:4,2,1 block:256,1,1 "
      "occ_pct:25");
  EXPECT_EQ(config.registers_per_thread, 168);
  EXPECT_EQ(config.shared_memory_bytes, 48);
  EXPECT_EQ(config.occupancy_pct, 25);
  // Addresses where sizes belong, of an old profiler.
  config = ParseKernelDetails(
      "regs:2191500840 static_shared:32462 grid:1,1,1 block:64,1,1 occ_pct:0");
  EXPECT_EQ(config.registers_per_thread, kNoInt);
  EXPECT_EQ(config.shared_memory_bytes, kNoInt);
  EXPECT_EQ(config.occupancy_pct, -1);
}

TEST(Details, ScopesOfOpNames) {
  const auto text = [](std::string_view name) {
    const Scopes scopes = ScopesOf(name);
    std::string out = scopes.backward ? "bwd" : "fwd";
    for (const std::string& scope : scopes.names) out += " " + scope;
    return out;
  };
  EXPECT_EQ(text("jit(step)/mlp/dot_general"), "fwd mlp");
  EXPECT_EQ(text("jit(step)/jit(main)/transpose(jvp(Model))/layers_0/dot"),
            "bwd Model layers_0");
  EXPECT_EQ(text("jit(f)/while/body/jvp(a/b)/add"), "fwd a b");
  EXPECT_EQ(text("jit(f)/bsd,de->bse/dot_general"), "fwd");
  EXPECT_EQ(text("x"), "fwd");
  EXPECT_EQ(text(""), "fwd");
}

}  // namespace
}  // namespace lamina::ingest::xplane
