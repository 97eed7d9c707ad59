// SPDX-License-Identifier: Apache-2.0
//
// Call trees with device time: ops by calling context, modules by hierarchy.
// Equal calls are added up: a loop over 24 equal layers is one line.
#pragma once

#include "analysis/common/compiled_work.h"
#include "analysis/common/context.h"

namespace lamina::analysis::calltree {

struct TreeOptions {
  size_t max_depth = 1000;
  // Lines below this share of all linked device time are folded into one.
  double min_percent = 0;
  // Adds up equal siblings ("24 x DecoderLayer").
  bool merge = true;
  // What compiled kernels compute: columns of the op tree. May be null.
  const CompiledWork* compiled = nullptr;
};

// Table op_tree: one row per calling context in preorder.
Table MakeOpTree(const Context& context, const TreeOptions& options);
// Table module_tree: one row per module, or per run of equal siblings.
Table MakeModuleTree(const Context& context, const TreeOptions& options);

}  // namespace lamina::analysis::calltree
