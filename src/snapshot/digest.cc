// SPDX-License-Identifier: Apache-2.0
#include "snapshot/digest.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lamina::snapshot {

uint64_t Digest(const void* bytes, size_t size) {
  return XXH3_64bits(bytes, size);
}

std::array<uint8_t, 16> Digest128(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(bytes.data(), bytes.size()));
  std::array<uint8_t, 16> out;
  static_assert(sizeof(canonical.digest) == out.size());
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

}  // namespace lamina::snapshot
