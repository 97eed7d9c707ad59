// SPDX-License-Identifier: Apache-2.0
//
// Interned strings: each distinct text is kept once and named by a small id.
// A trace of millions of events has thousands of names, so analyses work on
// ids and classify each text once.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace lamina {

struct StringTag;
using StringId = Id<StringTag>;

// Hash of text for absl maps, usable with std::string and std::string_view
// alike (Debian's absl has a string_view type of its own).
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    return absl::HashOf(absl::string_view(text.data(), text.size()));
  }
};
template <class V>
using TextMap = absl::flat_hash_map<std::string, V, TextHash, std::equal_to<>>;

// Bytes that live as long as the arena and never move.
class Arena {
 public:
  std::string_view Copy(std::string_view text);
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kBlock = size_t{64} << 10;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

// Ids count up from 0 in order of first Intern(); id 0 is the empty string.
// Not synchronised: one pool per thread while loading, read-only afterwards;
// then many threads may read it.
class StringPool {
 public:
  static constexpr StringId kEmpty{0};

  StringPool();
  // Texts that stand elsewhere and outlive the pool: text i is from offset i to
  // offset i + 1, of which there is one more than texts. They rise, the last
  // is the size of `bytes`, and text 0 is empty. Ids are found by text from the
  // first Intern() or Find() on.
  static StringPool Borrow(std::string_view bytes,
                           std::span<const uint64_t> offsets);
  StringId Intern(std::string_view text);
  // The id of a text that is present, else an invalid id.
  StringId Find(std::string_view text) const;
  std::string_view operator[](StringId id) const {
    return id.valid() ? texts_[id.value] : std::string_view();
  }
  size_t size() const { return texts_.size(); }

 private:
  using Ids = absl::flat_hash_map<std::string_view, uint32_t, TextHash,
                                  std::equal_to<>>;
  // The ids by text; made now where the pool was borrowed.
  Ids& ids() const {
    if (unmade_ != nullptr) MakeIds();
    return ids_;
  }
  void MakeIds() const;

  Arena arena_;
  std::vector<std::string_view> texts_;
  mutable Ids ids_;
  std::unique_ptr<std::once_flag> unmade_;  // of a borrowed pool
};

}  // namespace lamina
