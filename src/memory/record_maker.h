// SPDX-License-Identifier: Apache-2.0
//
// The records of a memory snapshot, from the dictionaries and lists of its
// pickle. A dictionary is known by its keys, whatever their order.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "memory/pickle_value.h"
#include "memory/snapshot.h"

namespace lamina::memory {

class RecordMaker {
 public:
  RecordMaker(Heap* heap, Snapshot* out);

  // A parent takes `value` in: from now on it does not change. A container
  // that is a known record becomes a row. `offset` is where.
  void Consume(Value value, uint64_t offset);
  // Fills the snapshot from the value of the whole pickle.
  Status Finish(Value root);
  uint64_t events() const { return events_.count(); }

 private:
  struct Fields;

  Value FromDict(Value dict, uint64_t offset);
  Value FromList(Value list);
  Value MakeFrame(const Fields& fields);
  Value MakeEvent(const Fields& fields, uint64_t offset);
  Value MakeBlock(const Fields& fields, uint64_t offset);
  Value MakeSegment(const Fields& fields, uint64_t offset);
  Value MakeUse(const Fields& fields);

  std::optional<int64_t> Int(Value value) const;
  int64_t IntOr(Value value, int64_t missing) const;
  StringId Text(Value value) const;
  uint32_t Stack(Value value) const;
  void Pool(Value value, int64_t* pool, bool* present) const;
  std::string Render(Value value) const;
  // What is wrong with an item of a list of segments or blocks.
  std::string Fault(Value item, std::span<const std::string_view> needed,
                    const std::string& path, const std::string& noun) const;
  Error NoSnapshot(std::string what) const;
  Status TakeSegments(Value list);
  Status TakeTraces(Value list);
  void TakeTrace(Value list, size_t device);
  void TakeAnnotations(Value list);
  void TakeSettings(Value dict, const std::string& prefix, int depth);

  Heap& heap_;
  Snapshot& out_;
  Events events_;
  std::vector<Block> blocks_;
  std::vector<Segment> segments_;
  std::vector<std::string> segment_faults_;  // parallel; empty: none
  struct Use {
    int64_t size;
    uint32_t stack;
  };
  PodVector<Use> uses_;
  std::vector<Annotation> annotations_;
  absl::flat_hash_map<Tag, uint32_t> tags_;
  Tag last_tag_;
  uint32_t last_tag_id_ = 0;
  bool history_ = false;
};

}  // namespace lamina::memory
