// SPDX-License-Identifier: Apache-2.0
//
// What the inference layout says of where an op was called: module, call
// stacks, entry point. Needs a tree with Python frames.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compat/tracelens/model.h"

namespace lamina::compat::tracelens {

// Without every "_<digits>": "nn.Module: Linear_12" is "nn.Module: Linear".
std::string WithoutNumbers(std::string_view name);

// The nearest enclosing "nn.Module: X", without numbers; "NA" if none.
std::string ParentModule(const Model& model, NodeId node);

// "['aten::mm', 'nn.Module: Linear_0', ...]": the op and its enclosing modules,
// innermost first.
std::string CallStack(const Model& model, NodeId node);

// From the root to the kernels: modules, ops and frames with "::" or "/".
// Kernels with different stacks: the common part, then a list per tail, in
// the order of `work`. Of a pseudo-op `pseudo` is its name, else empty.
std::string CallStackFull(const Model& model, std::span<const SliceId> work,
                          std::string_view pseudo);

// The names of the kernels alone.
std::string KernelList(const Model& model, std::span<const SliceId> work);

// The Python frame that made the call: below the op the first whose function
// holds the op's own name, else the nearest above that is no wrapper of the
// framework, else "Not found"; without numbers.
std::string EntryPoint(const Model& model, NodeId node);

}  // namespace lamina::compat::tracelens
