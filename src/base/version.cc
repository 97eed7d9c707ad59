// SPDX-License-Identifier: Apache-2.0
#include "lamina/version.h"

namespace lamina {

std::string_view Version() { return LAMINA_VERSION; }

}  // namespace lamina
