// SPDX-License-Identifier: Apache-2.0
//
// Targets of ops: from the text of a dump to one name per op.
#pragma once

#include <string>
#include <string_view>

namespace lamina::graph {

// "<built-in function getitem>" -> "builtin.getitem"; "<function a.<locals>.f
// at 0x7f>" -> "fn.f"; everything else stays. Addresses differ in every run,
// so nothing may be compared by the text of the dump.
std::string NormalizeTarget(std::string_view target);

// The qualified name of a function target ("a.<locals>.f"); else empty.
std::string_view QualifiedName(std::string_view target);

// Whether `op` is `pattern` or below it: "aten.to" matches "aten.to" and
// "aten.to.dtype" and not "aten.topk".
bool MatchesTarget(std::string_view op, std::string_view pattern);

}  // namespace lamina::graph
