// SPDX-License-Identifier: Apache-2.0
//
// XXH3: fast enough to be no part of the time in which a file is mapped. It
// finds accidents, not forgeries.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lamina::snapshot {

uint64_t Digest(const void* bytes, size_t size);
std::array<uint8_t, 16> Digest128(std::string_view bytes);

}  // namespace lamina::snapshot
