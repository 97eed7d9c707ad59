// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamina::rules {

// The text of a key of a dictionary that is written as JSON or as Python prints
// it: {'Module': 'top.norm', 'Inputs': [[8, 64]]}. Nothing when the text is no
// dictionary, has no such key on its outermost level, or another value there.
// Looks at the first 64 KiB; what follows the value is not checked.
std::optional<std::string> TextOfKey(std::string_view dictionary,
                                     std::string_view key);

}  // namespace lamina::rules
