// SPDX-License-Identifier: Apache-2.0
//
// How much goes through memory from one op to the next, by the shapes of their
// inputs. A profiler records no outputs: what an op can have made is told by
// the number of elements, and the next op must read a tensor of that many.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tree/tree.h"

namespace lamina::analysis::host_tables {

// Bytes that the ops of kernels that follow each other pass on, pair by pair;
// nothing where shapes or types are not recorded or do not fit, or where two
// neighbours are of one op. `launchers`: what launched each kernel.
std::optional<int64_t> PassedBytes(const tree::Tree& tree,
                                   std::span<const tree::NodeId> launchers);

}  // namespace lamina::analysis::host_tables
