// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lamina {

// Whole records of an input, for any thread to parse. The buffer is reused
// from chunk to chunk.
struct Chunk {
  std::string_view text;
  uint64_t offset = 0;    // of text[0] in the unpacked input
  uint32_t array = 0;     // which list of records, counted from 0
  uint64_t sequence = 0;  // chunk number, from 0
  bool suspect = false;   // JSON found by the careful scan: parse it carefully

  std::vector<char> buffer;
};

}  // namespace lamina
