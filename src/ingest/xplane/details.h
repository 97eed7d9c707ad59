// SPDX-License-Identifier: Apache-2.0
//
// What names and detail texts of XPlane events say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace lamina::ingest::xplane {

// "regs:168 static_shared:0 dynamic_shared:0 grid:4,2,1 block:256,1,1
// occ_pct:25". Order is free. Register counts that no device has are dropped.
trace::LaunchConfig ParseKernelDetails(std::string_view text);

// The size of "kind:.. size:4096 dest:.. async:.."; kNoInt for none, and for
// the zeros of profilers that do not know.
int64_t ParseCopySize(std::string_view text);

// Kernel, copy or fill, by the name of a device event.
trace::Kind DeviceKindOf(std::string_view name);

// Runtime or driver API by the name of a host call.
trace::Kind ApiKindOf(std::string_view name);

// "fusion.3" of "%fusion.3 = bf16[2048,4096] fusion(...)".
std::string_view InstructionNameOf(std::string_view event_name);

// Named scopes of an op name, outermost first, and whether it is part of the
// backward pass: "jit(step)/transpose(jvp(Model))/layers_0/dot_general" gives
// Model, layers_0. The last component is the operation and no scope.
struct Scopes {
  std::vector<std::string> names;
  bool backward = false;
};
Scopes ScopesOf(std::string_view op_name);

}  // namespace lamina::ingest::xplane
