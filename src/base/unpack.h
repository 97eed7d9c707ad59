// SPDX-License-Identifier: Apache-2.0
//
// Packed bytes as a ByteSource of what is in them. What is wrong inside ends
// the data early and is told by damage().
#pragma once

#include <memory>

#include "base/byte_source.h"

namespace lamina {

// gzip, several members joined; zero bytes may follow the last one.
std::unique_ptr<ByteSource> UnpackGzip(std::unique_ptr<ByteSource> stored);
// Deflate data without a frame of its own, as in a zip member.
std::unique_ptr<ByteSource> UnpackDeflate(std::unique_ptr<ByteSource> stored);
// Frames that ask for a window above 128 MB are refused: bounded memory.
std::unique_ptr<ByteSource> UnpackZstd(std::unique_ptr<ByteSource> stored);

}  // namespace lamina
