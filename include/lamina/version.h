// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lamina/export.h"

namespace lamina {

// Version of the program and the library, "0.1.0".
LAMINA_API std::string_view Version();

}  // namespace lamina
