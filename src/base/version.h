// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lamina {

// Version of the program, "0.1.0".
std::string_view Version();

}  // namespace lamina
