// SPDX-License-Identifier: Apache-2.0
#include "base/packed.h"

#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include "base/status.h"

namespace lamina {

std::string Pack(std::string_view bytes) {
  if (bytes.empty()) return {};
  uLongf room = compressBound(bytes.size());
  std::string out(4 + room, '\0');
  for (size_t i = 0; i < 4; ++i)
    out[i] = static_cast<char>(bytes.size() >> 8 * i);
  LAMINA_CHECK(compress2(reinterpret_cast<Bytef*>(out.data()) + 4, &room,
                         reinterpret_cast<const Bytef*>(bytes.data()),
                         bytes.size(), Z_BEST_COMPRESSION) == Z_OK);
  out.resize(4 + room);
  return out;
}

std::string Unpack(std::string_view packed) {
  if (packed.empty()) return {};
  LAMINA_CHECK(packed.size() > 4);
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i)
    size |= uint32_t{static_cast<unsigned char>(packed[i])} << 8 * i;
  std::string out(size, '\0');
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(packed.data()) + 4);
  state.avail_in = static_cast<uint32_t>(packed.size() - 4);
  state.next_out = reinterpret_cast<uint8_t*>(out.data());
  state.avail_out = static_cast<uint32_t>(out.size());
  LAMINA_CHECK(isal_inflate_stateless(&state) == ISAL_DECOMP_OK &&
               state.total_out == size);
  return out;
}

}  // namespace lamina
