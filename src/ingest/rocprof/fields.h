// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a record: which key, in which object, is which.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina::ingest::rocprof {

// Fields of a record; the order is free.
enum Field : uint8_t {
  kStart,
  kEnd,
  kThread,
  kKind,
  kOperation,
  kCorrelation,
  kAgent,
  kQueue,
  kStream,
  kKernel,
  kGroupBytes,
  kWorkgroupX,
  kWorkgroupY,
  kWorkgroupZ,
  kGridX,
  kGridY,
  kGridZ,
  kSourceAgent,
  kTargetAgent,
  kBytes,
  kAllocated,
  kAddress,
  kFields,
  // Objects around numbers.
  kInCorrelation,
  kInAgent,
  kInQueue,
  kInStream,
  kInSourceAgent,
  kInTargetAgent,
  kInWorkgroup,
  kInGrid,
  kInAddress,
  kInDispatch,
  kOther,
};

// What the key `key` means in the object `around`, which is kOther for the
// record itself. The text of the key must have room behind it as KeyIndex
// needs.
Field FieldOf(Field around, std::string_view key);

}  // namespace lamina::ingest::rocprof
