// SPDX-License-Identifier: Apache-2.0
//
// Packed bytes as a ByteSource of what is in them. What is wrong inside ends
// the data early and is told by damage().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace lamina {

// gzip, several members joined; zero bytes may follow the last one.
std::unique_ptr<ByteSource> UnpackGzip(std::unique_ptr<ByteSource> stored);
// Deflate data without a frame of its own, as in a zip member.
std::unique_ptr<ByteSource> UnpackDeflate(std::unique_ptr<ByteSource> stored);
// Frames that ask for a window above 128 MB are refused: bounded memory.
std::unique_ptr<ByteSource> UnpackZstd(std::unique_ptr<ByteSource> stored);

// A file of the zip archive in the open file `fd`, which stays the caller's, or
// in `bytes`, which must stay; `name` is that of the archive. Null when the
// list of files at its end is missing or damaged. Errors: no file in it, one
// that cannot be opened (a password).
Result<std::unique_ptr<ByteSource>> OpenZipFile(const std::string& name,
                                                int fd);
Result<std::unique_ptr<ByteSource>> OpenZipBytes(const std::string& name,
                                                 std::string_view bytes);

}  // namespace lamina
