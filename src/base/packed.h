// SPDX-License-Identifier: Apache-2.0
//
// Files that the build packs into the program, together: what they share is
// kept once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina {

// One after the other, with their names; then compressed.
std::string PackFiles(
    const std::vector<std::pair<std::string, std::string>>& files);

class PackedFiles {
 public:
  // Stops the program where `packed` is damaged: it is part of it.
  explicit PackedFiles(std::string_view packed);
  // By name; views live as long as this.
  const std::vector<std::pair<std::string_view, std::string_view>>& files()
      const {
    return files_;
  }

 private:
  std::string bytes_;
  std::vector<std::pair<std::string_view, std::string_view>> files_;
};

// Numbers of 7 bits a byte, the lowest first; the highest bit says that more
// follow.
void AppendVarint(std::string& out, uint32_t value);
// Takes one from the front. Stops the program where there is none.
uint32_t TakeVarint(std::string_view& bytes);
// The same for `size` bytes.
std::string_view TakeBytes(std::string_view& bytes, size_t size);

}  // namespace lamina
