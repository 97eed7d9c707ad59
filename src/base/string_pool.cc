// SPDX-License-Identifier: Apache-2.0
#include "base/string_pool.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace lamina {
namespace {

constexpr size_t kFirstBlock = 2 << 10;

}  // namespace

std::string_view Arena::Copy(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > left_) {
    // As much again as there is: a pool of a few texts is small.
    const size_t block = std::clamp(bytes_, kFirstBlock, kBlock);
    // A long text gets a block of its own, so that the current one keeps its
    // room for short texts.
    const bool alone = text.size() > block / 4;
    const size_t size = alone ? text.size() : block;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    bytes_ += size;
    if (alone) {
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

StringPool StringPool::Borrow(std::string_view bytes,
                              std::span<const uint64_t> offsets) {
  LAMINA_CHECK(offsets.size() >= 2 && offsets.back() == bytes.size() &&
               offsets.size() <= StringId::kNone);
  StringPool pool;
  pool.ids_.clear();
  pool.texts_.clear();
  pool.texts_.reserve(offsets.size() - 1);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    pool.texts_.push_back(
        bytes.substr(offsets[i], offsets[i + 1] - offsets[i]));
  }
  pool.unmade_ = std::make_unique<std::once_flag>();
  return pool;
}

void StringPool::MakeIds() const {
  std::call_once(*unmade_, [this] {
    ids_.reserve(texts_.size());
    for (uint32_t i = 0; i < texts_.size(); ++i) ids_.emplace(texts_[i], i);
  });
}

StringId StringPool::Intern(std::string_view text) {
  Ids& known = ids();
  const auto it = known.find(text);
  if (it != known.end()) return StringId(it->second);
  const auto id = static_cast<uint32_t>(texts_.size());
  LAMINA_CHECK(id != StringId::kNone);
  const std::string_view kept = arena_.Copy(text);
  texts_.push_back(kept);
  known.emplace(kept, id);
  return StringId(id);
}

StringId StringPool::Find(std::string_view text) const {
  const Ids& known = ids();
  const auto it = known.find(text);
  return it == known.end() ? StringId() : StringId(it->second);
}

}  // namespace lamina
