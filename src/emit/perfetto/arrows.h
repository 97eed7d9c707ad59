// SPDX-License-Identifier: Apache-2.0
//
// Which flows begin or end at a slice, by id.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace lamina::emit::perfetto {

class Arrows {
 public:
  explicit Arrows(const trace::Trace& trace);

  // Of a launch and of autograd; valid until the next call.
  const std::vector<uint64_t>& Of(trace::SliceId slice);

 private:
  const trace::Trace& trace_;
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> autograd_;
  std::vector<uint64_t> found_;
};

}  // namespace lamina::emit::perfetto
