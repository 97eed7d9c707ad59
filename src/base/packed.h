// SPDX-License-Identifier: Apache-2.0
//
// Bytes that the build packs into the program: their size as u32, least byte
// first, then a zlib stream. No bytes at all stand for none.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

std::string Pack(std::string_view bytes);
// Stops the program where the stream is damaged: it is part of it.
std::string Unpack(std::string_view packed);

}  // namespace lamina
