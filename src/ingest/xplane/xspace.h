// SPDX-License-Identifier: Apache-2.0
//
// The containers of an XPlane file: planes with their name tables, what a plane
// is by its name, and the stats that events and names carry. Names stand behind
// the events that use them, so the events of a plane are read when its tables
// are known; the tables of one plane are in memory at a time, and no event.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/protobuf/wire.h"
#include "ingest/common/id_table.h"
#include "trace/diagnostics.h"

namespace lamina::ingest::xplane {

// What a plane is, by its name.

enum class PlaneKind : uint8_t {
  kGpu,       // streams
  kTpu,       // lines by purpose
  kHost,      // threads
  kCustom,    // ranges on a device, no kernels
  kMetadata,  // programs and settings
  kSkipped,
};
PlaneKind PlaneKindOf(std::string_view name);

// N of "/device:GPU:N"; 0 where there is none.
int64_t DeviceNumber(std::string_view plane);

// Stats that have a place in the model.
#define LAMINA_XPLANE_STATS(X)               \
  X(kCorrelationId, "correlation_id")        \
  X(kHloOp, "hlo_op")                        \
  X(kHloModule, "hlo_module")                \
  X(kProgramId, "program_id")                \
  X(kOpName, "name")                         \
  X(kTfOp, "tf_op")                          \
  X(kKernelDetails, "kernel_details")        \
  X(kMemcpyDetails, "memcpy_details")        \
  X(kMemsetDetails, "memset_details")        \
  X(kContextId, "context_id")                \
  X(kStepNum, "step_num")                    \
  X(kGroupId, "group_id")                    \
  X(kStepName, "step_name")                  \
  X(kOccupancy, "theoretical_occupancy_pct") \
  X(kProducerType, "_pt")                    \
  X(kProducerId, "_p")                       \
  X(kConsumerType, "_ct")                    \
  X(kConsumerId, "_c")                       \
  X(kAllocatorName, "allocator_name")        \
  X(kBytesAllocated, "bytes_allocated")      \
  X(kBytesReserved, "bytes_reserved")        \
  X(kRequestedBytes, "requested_bytes")      \
  X(kAllocationBytes, "allocation_bytes")    \
  X(kAddress, "addr")                        \
  X(kFlops, "flops")                         \
  X(kModelFlops, "model_flops")              \
  X(kBytesAccessed, "bytes_accessed")        \
  X(kHloCategory, "hlo_category")            \
  X(kSource, "source")                       \
  X(kDeviceVendor, "device_vendor")          \
  X(kDeviceTypeString, "device_type_string") \
  X(kClockRate, "clock_rate")                \
  X(kCoreCount, "core_count")                \
  X(kMemoryBandwidth, "memory_bandwidth")    \
  X(kMemorySize, "memory_size")              \
  X(kComputeMajor, "compute_cap_major")      \
  X(kComputeMinor, "compute_cap_minor")      \
  X(kProfileStart, "profile_start_time")     \
  X(kGraphId, "cuda_graph_exec_id")          \
  X(kGraphNodeId, "cuda_graph_node_id")      \
  X(kDroppedTraces, "dropped_traces")        \
  X(kHloProto, "Hlo Proto")

enum class StatKey : uint8_t {
#define LAMINA_STAT_ENUM(id, text) id,
  LAMINA_XPLANE_STATS(LAMINA_STAT_ENUM)
#undef LAMINA_STAT_ENUM
      kCount,
};

// A value: a number, or text.
struct Stat {
  bool is_text = false;
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  bool by_reference = false;  // `text` is a name of the plane and stays there

  double Number() const {
    return is_real ? real : static_cast<double>(integer);
  }
};

// The stats of one event that have a place in the model. Text stays valid as
// long as the event's bytes and the plane's tables.
class Stats {
 public:
  void Clear() { present_ = 0; }
  bool empty() const { return present_ == 0; }
  void Set(StatKey key, const Stat& value) {
    present_ |= Bit(key);
    values_[static_cast<size_t>(key)] = value;
  }
  // All that are there, in order of their keys.
  std::vector<std::pair<StatKey, Stat>> List() const;
  bool Has(StatKey key) const { return (present_ & Bit(key)) != 0; }
  const Stat& operator[](StatKey key) const {
    return values_[static_cast<size_t>(key)];
  }
  // kNoInt where there is none.
  int64_t Int(StatKey key) const;
  std::string_view Text(StatKey key) const {
    return Has(key) ? (*this)[key].text : std::string_view();
  }

 private:
  static uint64_t Bit(StatKey key) {
    return uint64_t{1} << static_cast<unsigned>(key);
  }
  static_assert(static_cast<size_t>(StatKey::kCount) <= 64);
  uint64_t present_ = 0;
  Stat values_[static_cast<size_t>(StatKey::kCount)];
};

struct EventName {
  int64_t number = 0;
  std::string name;
  std::string display_name;
  std::string stats;  // its XStat messages, each behind its tag and length
};

struct StatName {
  std::string name;
  StatKey key = StatKey::kCount;  // kCount: one without a place in the model
};

struct Plane {
  std::string name;
  int64_t id = 0;
  uint64_t offset = 0;
  uint64_t lines = 0;
  std::string stats;  // as in EventName
  IdTable<EventName> event_names;
  IdTable<StatName> stat_names;

  // Adds the stats in a list of XStat messages. Texts that are stored packed
  // are unpacked into `arena`, which must outlive `target`.
  void AddStats(std::string_view messages, Stats& target,
                std::deque<std::string>& arena) const;
  // One XStat message.
  void AddStat(std::string_view message, Stats& target,
               std::deque<std::string>& arena) const;
};

// Which tables of a plane somebody asks for.
enum class Tables : uint8_t { kNone, kStats, kAll };

// Reads the tables of one plane after the other and passes over the events.
class PlaneReader {
 public:
  // `wanted` says by the name of a plane what is kept of it. What stands
  // before the name is kept anyway. Damage is counted in `diagnostics` and
  // ends a plane, not the file, where its length says how to go on.
  using Wanted = Tables (*)(std::string_view plane);
  PlaneReader(ByteSource& source, Wanted wanted,
              trace::Diagnostics* diagnostics)
      : stream_(source), wanted_(wanted), diagnostics_(*diagnostics) {}

  // Fills `plane` with the next one; false when there is none.
  bool Next(Plane& plane);

  // A failing device.
  const Status& status() const { return stream_.status(); }
  // When the last plane is read: what the profiler said.
  uint64_t errors() const { return errors_; }
  uint64_t warnings() const { return warnings_; }
  const std::string& first_error() const { return first_error_; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  // Of the unpacked input.
  uint64_t bytes() const { return stream_.offset(); }

 private:
  void ReadPlane(Plane& plane);
  void ReadMessage(uint32_t number);
  void Lost(const protobuf::Damage& damage);

  protobuf::Stream stream_;
  Wanted wanted_;
  trace::Diagnostics& diagnostics_;
  bool whole_ = true;
  uint64_t errors_ = 0, warnings_ = 0;
  std::string first_error_;
  std::vector<std::string> hosts_;
};

}  // namespace lamina::ingest::xplane
