// SPDX-License-Identifier: Apache-2.0
//
// The messages of markers by id. A long recording has one for each range, so a
// message is a row of numbers: texts without their numbers are few and shared
// (ingest/common/op_text.h).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/pod_vector.h"
#include "base/string_pool.h"
#include "ingest/common/op_text.h"

namespace lamina::ingest::rocprof {

struct Message {
  int64_t id = 0;
  OpNumbers numbers;
  StringId pattern;    // text without its numbers
  uint32_t since = 0;  // the first array of records that sees it
};

// The messages of one part of the input.
class MessageRows {
 public:
  void Add(int64_t id, std::string_view text) {
    const OpNumbers numbers = CutNumbers(text, scratch_);
    rows_.push_back({id, numbers, patterns_.Intern(scratch_), 0});
  }
  bool empty() const { return rows_.empty(); }

 private:
  friend class MessageTable;
  PodVector<Message> rows_;
  StringPool patterns_;
  std::string scratch_;
};

// The messages of one process, which are found once they are settled.
class MessageTable {
 public:
  // Parts come in any order; `offset` is the place of one in the input. Texts
  // go to `patterns`.
  void Add(uint64_t offset, uint32_t since, MessageRows&& part,
           StringPool& patterns);
  // Whether messages that the array sees are not settled.
  bool IsPending(uint32_t array) const {
    return !pending_.empty() && pending_.begin()->second[0].since <= array;
  }
  // Settles what the array sees. All of it must have been added.
  void Settle(uint32_t array);

  // Of equal ids the first in the input counts. Null when there is none that
  // the array sees. `hint` is where the last one stood: messages and markers
  // are in similar orders.
  const Message* Find(uint32_t array, int64_t id, size_t& hint) const;

 private:
  size_t Place(int64_t id, size_t hint) const;

  std::map<uint64_t, PodVector<Message>> pending_;  // by place in the input
  // Settled: ids ascend. Sorted once, when the first array asks; what comes
  // later and would have to be put in between is in the map, so that a file
  // with as many arrays as messages takes no longer.
  PodVector<Message> rows_;
  absl::flat_hash_map<int64_t, Message> others_;
};

}  // namespace lamina::ingest::rocprof
