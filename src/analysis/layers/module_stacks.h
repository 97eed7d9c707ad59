// SPDX-License-Identifier: Apache-2.0
//
// Which modules are layers, where a trace has modules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/common/context.h"

namespace lamina::analysis::layers {

struct ModuleStacks {
  std::vector<std::string> names;         // class of the layers, by stack
  std::map<uint32_t, uint32_t> stack_of;  // module path -> stack
};

// Sets of modules of one class below one parent, `min_layers` or more, that
// hold the most kernel time and do not hold each other.
ModuleStacks FindModuleStacks(const Context& context, size_t min_layers);

}  // namespace lamina::analysis::layers
