// SPDX-License-Identifier: Apache-2.0
//
// The argument names that have a place in the model, as PyTorch's profiler
// writes them: one row per name says it all. Every other argument stays
// reachable through the offset of its event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/key_index.h"

namespace lamina::trace {

// X(enumerator, text in the trace)
#define LAMINA_TRACE_ARGS(X)                            \
  X(kInputDims, "Input Dims")                           \
  X(kInputTypes, "Input type")                          \
  X(kInputStrides, "Input Strides")                     \
  X(kConcreteInputs, "Concrete Inputs")                 \
  X(kExternalId, "External id")                         \
  X(kExternalIdOld, "external id")                      \
  X(kSequence, "Sequence number")                       \
  X(kFwdThread, "Fwd thread id")                        \
  X(kCorrelation, "correlation")                        \
  X(kDevice, "device")                                  \
  X(kContext, "context")                                \
  X(kStream, "stream")                                  \
  X(kQueue, "queue")                                    \
  X(kBytes, "bytes")                                    \
  X(kGrid, "grid")                                      \
  X(kBlock, "block")                                    \
  X(kSharedMemory, "shared memory")                     \
  X(kRegisters, "registers per thread")                 \
  X(kOccupancy, "est. achieved occupancy %")            \
  X(kKernel, "kernel")                                  \
  X(kGraphId, "graph id")                               \
  X(kGraphNodeId, "graph node id")                      \
  X(kPythonId, "Python id")                             \
  X(kPythonParentId, "Python parent id")                \
  X(kPythonModuleId, "Python module id")                \
  X(kCollectiveName, "Collective name")                 \
  X(kGroupName, "Process Group Name")                   \
  X(kGroupDescription, "Process Group Description")     \
  X(kGroupRanks, "Process Group Ranks")                 \
  X(kGroupSize, "Group size")                           \
  X(kDtype, "dtype")                                    \
  X(kInElements, "In msg nelems")                       \
  X(kOutElements, "Out msg nelems")                     \
  X(kInSplit, "In split size")                          \
  X(kOutSplit, "Out split size")                        \
  X(kSeq, "Seq")                                        \
  X(kSrcRank, "Src Rank")                               \
  X(kDstRank, "Dst Rank")                               \
  X(kCommsId, "Comms Id")                               \
  X(kMemoryBytes, "Bytes")                              \
  X(kAddress, "Addr")                                   \
  X(kTotalAllocated, "Total Allocated")                 \
  X(kTotalReserved, "Total Reserved")                   \
  X(kDeviceId, "Device Id")                             \
  X(kDeviceType, "Device Type")                         \
  X(kWaitOnStream, "wait_on_stream")                    \
  X(kWaitOnRecord, "wait_on_cuda_event_record_corr_id") \
  X(kSize, "size")                                      \
  X(kDirection, "direction")                            \
  X(kQueueId, "sqid")                                   \
  X(kCorrelationId, "correlation_id")                   \
  X(kKernelDetails, "kernel_details")                   \
  X(kStepNum, "step_num")                               \
  X(kName, "name")                                      \
  X(kLabels, "labels")                                  \
  X(kSortIndex, "sort_index")

enum class ArgKey : uint8_t {
#define LAMINA_ARG_ENUM(id, text) id,
  LAMINA_TRACE_ARGS(LAMINA_ARG_ENUM)
#undef LAMINA_ARG_ENUM
      kCount,
};
inline constexpr size_t kArgKeys = static_cast<size_t>(ArgKey::kCount);
static_assert(kArgKeys <= 64, "ArgValues keeps a bit per key");

inline constexpr std::array<std::string_view, kArgKeys> kArgTexts = {
#define LAMINA_ARG_TEXT(id, text) text,
    LAMINA_TRACE_ARGS(LAMINA_ARG_TEXT)
#undef LAMINA_ARG_TEXT
};

constexpr std::string_view ArgText(ArgKey key) {
  return kArgTexts[static_cast<size_t>(key)];
}

inline constexpr KeyIndex<kArgKeys> kArgIndex(kArgTexts);

// ArgKey::kCount when the text is no key of the model. kArgIndex.kReadable
// bytes behind the start of the text must be readable.
inline ArgKey FindArgKey(std::string_view text) {
  return static_cast<ArgKey>(kArgIndex.Find(text));
}

}  // namespace lamina::trace
