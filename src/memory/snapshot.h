// SPDX-License-Identifier: Apache-2.0
//
// A memory snapshot of PyTorch's caching allocator as rows: the segments and
// blocks at the moment it was taken, and per device the events before it. All
// sizes are bytes, all times microseconds of the host's clock since 1970.
//
// Nothing of the file is interpreted here beyond its layout; what the rows mean
// is in model.h.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/pod_vector.h"
#include "base/string_pool.h"

namespace lamina::memory {

inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

enum class Action : uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kSnapshot,
  kOom,
  kOther,
};
inline constexpr size_t kActions = 10;
// "alloc", "free_requested" ..., as in the files.
std::string_view ActionName(Action action);

struct Frame {
  StringId name;
  StringId file;
  int32_t line = 0;  // 0: unknown
  StringId fx;       // "key: text" of a compiled graph, joined; empty: none
};

// Stacks of frames, innermost first, each distinct one once. Stack 0 is empty.
class Stacks {
 public:
  Stacks();
  uint32_t InternFrame(const Frame& frame);
  uint32_t Intern(std::span<const uint32_t> frames);

  const Frame& frame(uint32_t id) const { return frames_[id]; }
  size_t frames() const { return frames_.size(); }
  size_t size() const { return begins_.size() - 1; }
  std::span<const uint32_t> Of(uint32_t stack) const {
    return {refs_.data() + begins_[stack], begins_[stack + 1] - begins_[stack]};
  }

 private:
  PodVector<Frame> frames_;
  PodVector<uint32_t> refs_;
  PodVector<uint64_t> begins_;
  // By a hash of the content; equal hashes are chained through next_.
  absl::flat_hash_map<uint64_t, uint32_t> frame_ids_, stack_ids_;
  PodVector<uint32_t> next_frame_, next_stack_;
};

// What many events have in common.
struct Tag {
  int64_t stream = 0;
  int64_t pool[2] = {0, 0};
  bool has_pool = false;
  StringId compile_context;
  StringId user_metadata;
  StringId category;  // only in files made from a profiler's trace

  friend bool operator==(const Tag& a, const Tag& b) {
    return a.stream == b.stream && a.pool[0] == b.pool[0] &&
           a.pool[1] == b.pool[1] && a.has_pool == b.has_pool &&
           a.compile_context == b.compile_context &&
           a.user_metadata == b.user_metadata && a.category == b.category;
  }
  template <class H>
  friend H AbslHashValue(H h, const Tag& t) {
    return H::combine(std::move(h), t.stream, t.pool[0], t.pool[1], t.has_pool,
                      t.compile_context.value, t.user_metadata.value,
                      t.category.value);
  }
};

struct Events {
  PodVector<Action> action;
  // Of an out-of-memory event the bytes that the driver had free, -1 unknown.
  PodVector<int64_t> address;
  PodVector<int64_t> size;
  PodVector<int64_t> time_us;
  PodVector<uint32_t> stack;
  PodVector<uint32_t> tag;

  size_t count() const { return action.size(); }
  void Append(const Events& from, size_t row);
  void Shrink();
};

enum class BlockState : uint8_t { kInactive, kAllocated, kPendingFree };

struct Block {
  int64_t address = -1;  // -1: where the block before it ends
  int64_t size = 0;
  int64_t requested = -1;  // -1: not given
  BlockState state = BlockState::kInactive;
  uint32_t stack = 0;
};

struct Segment {
  int64_t device = 0;
  int64_t address = 0;
  int64_t size = 0;
  int64_t stream = 0;
  int64_t pool[2] = {0, 0};
  bool small = false;
  bool expandable = false;
  uint32_t stack = 0;
  // What the file says of its blocks; -1: nothing.
  int64_t stated_allocated = -1, stated_active = -1, stated_requested = -1;
  std::vector<Block> blocks;
};

struct Annotation {
  bool end = false;
  StringId name;
  int64_t device = -1;
  int64_t time_us = kNoTime;
};

struct Snapshot {
  std::string file;
  uint64_t bytes = 0;  // unpacked
  int protocol = 0;
  std::string layout;  // "snapshot", "segments-only" or "history"
  StringPool strings;
  Stacks stacks;
  std::vector<Tag> tags;
  std::vector<Segment> segments;
  std::vector<Events> devices;  // by ordinal
  std::vector<Annotation> annotations;
  bool has_settings = false;
  // As text, in the order of the file; dictionaries are flattened: "a.b".
  std::vector<std::pair<std::string, std::string>> settings;
  // Records that were left out or mended, by reason, with the offset of the
  // first one where there is one.
  struct Lost {
    uint64_t count = 0;
    std::optional<uint64_t> first_offset;
    std::string what;
  };
  std::map<std::string, Lost> lost;

  void Count(const std::string& reason, uint64_t offset, std::string what = {});
};

}  // namespace lamina::memory
