// SPDX-License-Identifier: Apache-2.0
//
// The argument names that have a place in the model, as PyTorch's profiler
// writes them: one row per name says it all. Every other argument stays
// reachable through the offset of its event.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamina::trace {

// X(enumerator, text in the trace)
#define LAMINA_TRACE_ARGS(X)                        \
  X(kInputDims, "Input Dims")                       \
  X(kInputTypes, "Input type")                      \
  X(kInputStrides, "Input Strides")                 \
  X(kConcreteInputs, "Concrete Inputs")             \
  X(kExternalId, "External id")                     \
  X(kExternalIdOld, "external id")                  \
  X(kSequence, "Sequence number")                   \
  X(kFwdThread, "Fwd thread id")                    \
  X(kCorrelation, "correlation")                    \
  X(kDevice, "device")                              \
  X(kContext, "context")                            \
  X(kStream, "stream")                              \
  X(kQueue, "queue")                                \
  X(kBytes, "bytes")                                \
  X(kGrid, "grid")                                  \
  X(kBlock, "block")                                \
  X(kSharedMemory, "shared memory")                 \
  X(kRegisters, "registers per thread")             \
  X(kOccupancy, "est. achieved occupancy %")        \
  X(kKernel, "kernel")                              \
  X(kGraphId, "graph id")                           \
  X(kGraphNodeId, "graph node id")                  \
  X(kPythonId, "Python id")                         \
  X(kPythonParentId, "Python parent id")            \
  X(kPythonModuleId, "Python module id")            \
  X(kCollectiveName, "Collective name")             \
  X(kGroupName, "Process Group Name")               \
  X(kGroupDescription, "Process Group Description") \
  X(kGroupRanks, "Process Group Ranks")             \
  X(kGroupSize, "Group size")                       \
  X(kDtype, "dtype")                                \
  X(kInElements, "In msg nelems")                   \
  X(kOutElements, "Out msg nelems")                 \
  X(kInSplit, "In split size")                      \
  X(kOutSplit, "Out split size")                    \
  X(kSeq, "Seq")                                    \
  X(kSrcRank, "Src Rank")                           \
  X(kDstRank, "Dst Rank")                           \
  X(kCommsId, "Comms Id")                           \
  X(kMemoryBytes, "Bytes")                          \
  X(kAddress, "Addr")                               \
  X(kTotalAllocated, "Total Allocated")             \
  X(kTotalReserved, "Total Reserved")               \
  X(kDeviceId, "Device Id")                         \
  X(kDeviceType, "Device Type")                     \
  X(kName, "name")                                  \
  X(kLabels, "labels")                              \
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

// Perfect hash over length and three characters. The table is made and
// checked for collisions at compile time.
class ArgIndex {
 public:
  constexpr ArgIndex() {
    for (auto& slot : slots_) slot = kNoKey;
    for (size_t i = 0; i < kArgKeys; ++i) {
      uint8_t& slot = slots_[Hash(kArgTexts[i])];
      if (slot != kNoKey) collision_ = true;
      slot = static_cast<uint8_t>(i);
      if (kArgTexts[i].size() > kLongest) collision_ = true;
      for (size_t k = 0; k < kArgTexts[i].size(); ++k)
        padded_[i][k] = kArgTexts[i][k];
    }
  }
  constexpr bool collision() const { return collision_; }

  // ArgKey::kCount when the text is no key of the model. At least 32 bytes
  // behind the start of the text must be readable (json::kPadding).
  ArgKey Find(std::string_view text) const {
    if (text.size() < 3 || text.size() > kLongest) return ArgKey::kCount;
    const uint8_t key = slots_[Hash(text)];
    return key != kNoKey && kArgTexts[key].size() == text.size() &&
                   SameBytes(text.data(), padded_[key].data(), text.size())
               ? static_cast<ArgKey>(key)
               : ArgKey::kCount;
  }

 private:
  static constexpr uint8_t kNoKey = 255;
  static constexpr size_t kLongest = 32;

  // Comparison by words of eight bytes; both sides are padded.
  static bool SameBytes(const char* a, const char* b, size_t size) {
    uint64_t difference = 0;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) difference |= Word(a + i) ^ Word(b + i);
    if (i < size) {
      const auto unused = static_cast<unsigned>(8 * (8 - (size - i)));
      difference |= (Word(a + i) ^ Word(b + i)) << unused;
    }
    return difference == 0;
  }
  static uint64_t Word(const char* at) {
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof(word));
    return word;
  }
  static constexpr size_t kSlots = 1024;
  static constexpr size_t Hash(std::string_view text) {
    const auto byte = [&](size_t i) {
      return static_cast<unsigned char>(text[i]);
    };
    return (text.size() * 131 + byte(0) + byte(text.size() / 2) * 29 +
            byte(text.size() - 1) * 101) %
           kSlots;
  }

  std::array<uint8_t, kSlots> slots_{};
  std::array<std::array<char, kLongest + 8>, kArgKeys> padded_{};
  bool collision_ = false;
};

inline constexpr ArgIndex kArgIndex;
static_assert(!kArgIndex.collision(),
              "choose other factors in Hash, or a larger kLongest");
static_assert(std::endian::native == std::endian::little,
              "SameBytes drops the high bytes of the last word");

}  // namespace lamina::trace
