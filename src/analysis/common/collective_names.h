// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lamina::analysis {

// True for a range or op that a communication library or its wrapper writes
// ("nccl:all_to_all", "c10d::allreduce_"), so that its name speaks of a
// collective.
bool NamesCollective(std::string_view name);

}  // namespace lamina::analysis
