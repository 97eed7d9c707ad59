// SPDX-License-Identifier: Apache-2.0
//
// Parts of lamina that need libraries which the program itself shall start
// without: shared objects beside it, loaded when they are asked for.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lamina {

// `entry` of the plug-in `file` beside this program, or in ../lib/lamina from
// there. `shared_names`: its libraries look for their names among those of
// everyone. A program that is linked statically goes on as
// ../lib/lamina/`dynamic`, which is the same one with a loader, with the same
// words. Errors: why there is none.
tl::expected<void*, std::string> LoadPlugin(std::string_view file,
                                            const char* entry,
                                            std::string_view dynamic,
                                            bool shared_names = false);

}  // namespace lamina
