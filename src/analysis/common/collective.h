// SPDX-License-Identifier: Apache-2.0
//
// Collectives of one rank: kind, group, message sizes, from the kernel or the
// host op above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/device_view.h"

namespace lamina::analysis {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSendRecv,
  kBarrier,
  kUnknown,
};
std::string_view CollectiveKindName(CollectiveKind kind);

// From a profiler's collective name ("allreduce", "_allgather_base") or a
// kernel name ("ncclDevKernel_AllReduce_Sum_f32_RING_LL").
CollectiveKind CollectiveKindOf(std::string_view name);

// Bytes per element of an NCCL dtype name ("BFloat16", "Float8_e4m3fn");
// nothing for an unknown one.
std::optional<int64_t> CollectiveElementBytes(std::string_view dtype);

struct Collective {
  SliceId slice;
  // Fields as recorded; null when neither kernel nor host op has any.
  const trace::CollectiveArgs* args = nullptr;
  CollectiveKind kind = CollectiveKind::kUnknown;
};

// All communication kernels, by start.
std::vector<Collective> CollectCollectives(const tree::Tree& tree,
                                           const DeviceView& device);

}  // namespace lamina::analysis
