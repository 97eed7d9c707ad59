// SPDX-License-Identifier: Apache-2.0
//
// Allocations by their stacks, outermost frame first, as the rows of an icicle.
#pragma once

#include <string>
#include <vector>

#include "memory/attribution.h"
#include "memory/model.h"

namespace lamina::memory {

struct StackTree {
  struct Row {
    size_t depth = 0;
    std::string name;
    int64_t bytes = 0;  // with what is below
    int64_t self = 0;
    size_t blocks = 0;
  };
  // In preorder, larger ones first; the root is the first.
  std::vector<Row> rows;
};

// Frames that say nothing are left out, runs of one frame become "xN", and the
// op is the leaf. With `native`, frames of native code stay.
StackTree MakeStackTree(const Device& device, const Attribution& attribution,
                        const std::vector<uint32_t>& allocations, bool native);

// Frames of a stack in one line, outermost first.
std::string StackText(const Device& device, const Allocation& a);

}  // namespace lamina::memory
