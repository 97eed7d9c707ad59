// SPDX-License-Identifier: Apache-2.0
//
// Files that the build packs into the program, together: what they share is
// kept once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina {

// One after the other, with their names; then compressed.
std::string PackFiles(
    const std::vector<std::pair<std::string, std::string>>& files);

// Whether `packed` is a frame of zstd with as many bytes as `to` has, which are
// written there. Throws std::bad_alloc when there is no memory to unpack it.
bool Unpack(std::string_view packed, std::string& to);

class PackedFiles {
 public:
  // Stops the program where `packed` is damaged: it is part of it.
  explicit PackedFiles(std::string_view packed);
  // Nothing: there is none of this name.
  std::optional<std::string_view> Find(std::string_view name) const;
  // By name; views live as long as this.
  const std::vector<std::pair<std::string_view, std::string_view>>& files()
      const {
    return files_;
  }

 private:
  std::string bytes_;
  std::vector<std::pair<std::string_view, std::string_view>> files_;
};

// The pack in the file PATH, a literal, as lamina_NAME_begin and
// lamina_NAME_end. No list of headers names it: a cache of objects must not
// keep this one.
#define LAMINA_EMBED(name, path)             \
  asm(".section .rodata\n"                   \
      ".global lamina_" #name                \
      "_begin\n"                             \
      ".global lamina_" #name                \
      "_end\n"                               \
      ".balign 16\n"                         \
      "lamina_" #name                        \
      "_begin:\n"                            \
      ".incbin \"" path                      \
      "\"\n"                                 \
      "lamina_" #name                        \
      "_end:\n"                              \
      ".byte 0\n"                            \
      ".previous\n");                        \
  extern "C" {                               \
  extern const char lamina_##name##_begin[]; \
  extern const char lamina_##name##_end[];   \
  }

// Numbers of 7 bits a byte, the lowest first; the highest bit says that more
// follow.
void AppendVarint(std::string& out, uint32_t value);
// Takes one from the front. Stops the program where there is none.
uint32_t TakeVarint(std::string_view& bytes);
// The same for `size` bytes.
std::string_view TakeBytes(std::string_view& bytes, size_t size);

}  // namespace lamina
