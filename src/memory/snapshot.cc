// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot.h"

#include <absl/hash/hash.h>
#include <algorithm>
#include <array>

namespace lamina::memory {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

constexpr std::array<std::string_view, kActions> kActionNames = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "snapshot",
    "oom",          "other"};

}  // namespace

std::string_view ActionName(Action action) {
  return kActionNames[static_cast<size_t>(action)];
}

Stacks::Stacks() {
  begins_.push_back(0);
  Intern({});
}

uint32_t Stacks::InternFrame(const Frame& frame) {
  const uint64_t hash = absl::HashOf(frame.name.value, frame.file.value,
                                     frame.line, frame.fx.value);
  const auto [it, added] =
      frame_ids_.try_emplace(hash, static_cast<uint32_t>(frames_.size()));
  if (!added) {
    for (uint32_t id = it->second; id != kNone; id = next_frame_[id]) {
      const Frame& known = frames_[id];
      if (known.name == frame.name && known.file == frame.file &&
          known.line == frame.line && known.fx == frame.fx)
        return id;
    }
  }
  const auto id = static_cast<uint32_t>(frames_.size());
  frames_.push_back(frame);
  next_frame_.push_back(added ? kNone : it->second);
  it->second = id;
  return id;
}

uint32_t Stacks::Intern(std::span<const uint32_t> frames) {
  const uint64_t hash =
      absl::HashOf(absl::MakeConstSpan(frames.data(), frames.size()));
  const auto id = static_cast<uint32_t>(size());
  const auto [it, added] = stack_ids_.try_emplace(hash, id);
  if (!added) {
    for (uint32_t known = it->second; known != kNone;
         known = next_stack_[known]) {
      const auto other = Of(known);
      if (std::equal(other.begin(), other.end(), frames.begin(), frames.end()))
        return known;
    }
  }
  refs_.append(frames.data(), frames.size());
  begins_.push_back(refs_.size());
  next_stack_.push_back(added ? kNone : it->second);
  it->second = id;
  return id;
}

void Events::Append(const Events& from, size_t row) {
  action.push_back(from.action[row]);
  address.push_back(from.address[row]);
  size.push_back(from.size[row]);
  time_us.push_back(from.time_us[row]);
  stack.push_back(from.stack[row]);
  tag.push_back(from.tag[row]);
}

void Events::Shrink() {
  action.shrink_to_fit();
  address.shrink_to_fit();
  size.shrink_to_fit();
  time_us.shrink_to_fit();
  stack.shrink_to_fit();
  tag.shrink_to_fit();
}

void Snapshot::Count(const std::string& reason, uint64_t offset,
                     std::string what) {
  Lost& row = lost[reason];
  ++row.count;
  if (!row.first_offset) {
    row.first_offset = offset;
    row.what = std::move(what);
  }
}

}  // namespace lamina::memory
