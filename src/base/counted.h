// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamina {

// A number with its noun: "1 kernel", "1,234 kernels". `plural` is for nouns
// that take more than an s: Counted(2, "pass", "passes").
std::string Counted(uint64_t count, std::string_view noun,
                    std::string_view plural = {});

}  // namespace lamina
