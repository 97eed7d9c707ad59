// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// A C++ symbol name as source text; the name itself when it is none, or when
// its source text would be larger than 64 kB: 300 hostile bytes can stand for
// more text than any memory holds.
std::string Demangle(std::string_view name);

}  // namespace lamina
