// SPDX-License-Identifier: Apache-2.0
//
// A memory snapshot and a trace of the same run: which [memory] event of the
// trace is which event of the snapshot, by what they say, not by their clocks.
// An allocation of the snapshot gets the op, module, step and thread that the
// trace knows it by.
//
// Both list allocations and requests for a free as (address, bytes of the
// block). Clocks are tried as they are, then with the offset that most equal
// pairs agree on. Inside of the time that both cover the k-th event of an
// address is joined to the k-th of the other, where the bytes are equal.
#pragma once

#include "analysis/common/context.h"
#include "memory/tables.h"

namespace lamina::analysis::memory {

// Sets `joined` of the devices of the recording where at least nine of ten
// events of both sides are pairs. Tables: memory_join. Notes say what was
// joined, and what not and why.
ResultSet JoinTrace(const Context& context,
                    ::lamina::memory::Recording* recording);

}  // namespace lamina::analysis::memory
