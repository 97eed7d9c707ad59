// SPDX-License-Identifier: Apache-2.0
//
// The layer that a module is in: the number of the repeated container around
// it, 3 of "Model_0/DecoderLayer_3/LayerNorm_12".
#pragma once

#include <cstdint>
#include <vector>

#include "tree/modules.h"

namespace lamina::cudagraph {

class LayerNumbers {
 public:
  LayerNumbers(const trace::Trace& trace, const tree::Modules& modules);
  // -1: the module is in no layer.
  int64_t Of(tree::ModulePathId path) const { return number_[path.value]; }

 private:
  std::vector<int64_t> number_;  // by path
};

}  // namespace lamina::cudagraph
