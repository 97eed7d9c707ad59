// SPDX-License-Identifier: Apache-2.0
#include "base/packed.h"

#include <algorithm>
#include <memory>
#include <new>
#include <zstd.h>

#include "base/status.h"

namespace lamina {

void AppendVarint(std::string& out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

uint32_t TakeVarint(std::string_view& bytes) {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    LAMINA_CHECK(shift < 32);
    const auto byte = static_cast<unsigned char>(TakeBytes(bytes, 1)[0]);
    value |= static_cast<uint32_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::string_view TakeBytes(std::string_view& bytes, size_t size) {
  LAMINA_CHECK(size <= bytes.size());
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

std::string PackFiles(
    const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes;
  for (const auto& file : files) {
    for (const std::string& text : {file.first, file.second}) {
      AppendVarint(bytes, static_cast<uint32_t>(text.size()));
      bytes += text;
    }
  }
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(
      ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel,
                         ZSTD_maxCLevel());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress2(context.get(), out.data(), out.size(),
                                     bytes.data(), bytes.size());
  LAMINA_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

bool Unpack(std::string_view packed, std::string& to) {
  // Made here: its failure would look like that of a damaged frame.
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(
      ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (context == nullptr) throw std::bad_alloc();
  return ZSTD_decompressDCtx(context.get(), to.data(), to.size(), packed.data(),
                             packed.size()) == to.size();
}

PackedFiles::PackedFiles(std::string_view packed) {
  const unsigned long long size =
      ZSTD_getFrameContentSize(packed.data(), packed.size());
  LAMINA_CHECK(size < UINT32_MAX);  // errors are larger
  bytes_.resize(size);
  LAMINA_CHECK(Unpack(packed, bytes_));
  for (std::string_view rest = bytes_; !rest.empty();) {
    const std::string_view name = TakeBytes(rest, TakeVarint(rest));
    files_.emplace_back(name, TakeBytes(rest, TakeVarint(rest)));
  }
  std::sort(files_.begin(), files_.end());
}

std::optional<std::string_view> PackedFiles::Find(std::string_view name) const {
  const auto at =
      std::lower_bound(files_.begin(), files_.end(), name,
                       [](const auto& file, std::string_view wanted) {
                         return file.first < wanted;
                       });
  if (at == files_.end() || at->first != name) return std::nullopt;
  return at->second;
}

}  // namespace lamina
