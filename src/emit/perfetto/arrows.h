// SPDX-License-Identifier: Apache-2.0
//
// Which flows begin or end at a slice, by id. In this form slices of one id are
// a chain in the order of time, so a call that launched many kernels has an id
// for each: the arrows of a graph launch are a fan, not a chain.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace lamina::emit::perfetto {

class Arrows {
 public:
  explicit Arrows(const trace::Trace& trace);

  // The begin of one that the recording does not have: its id. The end of it.
  uint64_t Add(trace::SliceId from);
  void Add(trace::SliceId to, uint64_t id);

  // Valid until the next call.
  const std::vector<uint64_t>& Of(trace::SliceId slice);

 private:
  void AddLaunches();
  void AddOthers();

  const trace::Trace& trace_;
  // Of a call: the device slices that it launched.
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> launched_;
  std::vector<bool> is_launched_;  // by slice
  // Arrows that the recording has beside those of launches.
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> others_;
  uint64_t added_ = 0;
  std::vector<uint64_t> found_;
};

}  // namespace lamina::emit::perfetto
