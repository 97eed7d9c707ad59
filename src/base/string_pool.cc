// SPDX-License-Identifier: Apache-2.0
#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace lamina {

std::string_view Arena::Copy(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > left_) {
    // A long text gets a block of its own, so that the current one keeps its
    // room for short texts.
    const size_t size = std::max(kBlock, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    bytes_ += size;
    if (text.size() >= kBlock / 4) {
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return {blocks_.back().get(), text.size()};
    }
    free_ = blocks_.back().get();
    left_ = size;
  }
  char* to = free_;
  std::memcpy(to, text.data(), text.size());
  free_ += text.size();
  left_ -= text.size();
  return {to, text.size()};
}

StringPool::StringPool() { Intern(""); }

StringId StringPool::Intern(std::string_view text) {
  const auto it = ids_.find(text);
  if (it != ids_.end()) return StringId(it->second);
  const auto id = static_cast<uint32_t>(texts_.size());
  LAMINA_CHECK(id != StringId::kNone);
  const std::string_view kept = arena_.Copy(text);
  texts_.push_back(kept);
  ids_.emplace(kept, id);
  return StringId(id);
}

StringId StringPool::Find(std::string_view text) const {
  const auto it = ids_.find(text);
  return it == ids_.end() ? StringId() : StringId(it->second);
}

}  // namespace lamina
