// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// At most `max_bytes` of a text, with "..." inside, so that at least `tail`
// bytes of its end stay, or less by part of a character: for names that differ
// there.
std::string ShortenInside(std::string_view text, size_t max_bytes, size_t tail);

// A name with "#" for every number: "iteration 3" and "iteration 17" are alike.
std::string WithoutNumbers(std::string_view name);

}  // namespace lamina
