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
// Bytes of so many elements; nothing where either is not known.
std::optional<int64_t> CollectiveBytes(int64_t elements,
                                       std::string_view dtype);
// What the size of a message counts: of all_gather what comes out, else what
// goes in.
inline int64_t MessageElements(CollectiveKind kind, int64_t in_elements,
                               int64_t out_elements) {
  return kind == CollectiveKind::kAllGather ? out_elements : in_elements;
}
// Factor from algorithm to bus bandwidth, for `ranks` in the group (the tests
// of NCCL define it).
double BusFactor(CollectiveKind kind, int64_t ranks);

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
