// SPDX-License-Identifier: Apache-2.0
//
// From arguments with PyTorch's names to the argument rows of the model, for
// every format that carries them. `Args` is the format's view of the arguments
// of one event:
//
//   bool Has(ArgKey) const;
//   uint64_t present() const;           // a bit per key
//   int64_t Int(ArgKey) const;          // kNoInt: absent or no number
//   std::optional<double> Real(ArgKey) const;
//   StringId Text(ArgKey);              // invalid: absent
//   StringId List(ArgKey);              // JSON list as text; invalid: none
//   std::array<uint32_t, 3> Triple(ArgKey) const;
#pragma once

#include "trace/arg_keys.h"
#include "trace/builder.h"
#include "trace/sync_record.h"

namespace lamina::ingest {

using trace::ArgKey;

constexpr uint64_t ArgBit(ArgKey key) {
  return uint64_t{1} << static_cast<unsigned>(key);
}

// Whether an argument is an id or address: 64 bits without a sign.
constexpr bool IsId(ArgKey key) {
  constexpr uint64_t kIds =
      ArgBit(ArgKey::kExternalId) | ArgBit(ArgKey::kExternalIdOld) |
      ArgBit(ArgKey::kCorrelation) | ArgBit(ArgKey::kContext) |
      ArgBit(ArgKey::kStream) | ArgBit(ArgKey::kQueue) |
      ArgBit(ArgKey::kGraphId) | ArgBit(ArgKey::kGraphNodeId) |
      ArgBit(ArgKey::kCommsId) | ArgBit(ArgKey::kAddress);
  return (kIds & ArgBit(key)) != 0;
}

template <class Args>
int64_t ExternalId(const Args& args) {
  return args.Has(ArgKey::kExternalId) ? args.Int(ArgKey::kExternalId)
                                       : args.Int(ArgKey::kExternalIdOld);
}

// Row of a launch configuration; kNoRow without grid and block.
template <class Args>
uint32_t ConfigRow(const Args& args, trace::Segment& segment) {
  if (!args.Has(ArgKey::kGrid) && !args.Has(ArgKey::kBlock))
    return trace::kNoRow;
  trace::LaunchConfig config;
  if (args.Has(ArgKey::kGrid)) config.grid = args.Triple(ArgKey::kGrid);
  if (args.Has(ArgKey::kBlock)) config.block = args.Triple(ArgKey::kBlock);
  config.shared_memory_bytes = args.Int(ArgKey::kSharedMemory);
  config.registers_per_thread = args.Int(ArgKey::kRegisters);
  if (args.Has(ArgKey::kOccupancy)) {
    const auto value = args.Real(ArgKey::kOccupancy);
    if (value && *value >= 0 && *value <= 1e6) config.occupancy_pct = *value;
  }
  return segment.names->InternConfig(config);
}

// Row of a collective; kNoRow without any of its fields.
template <class Args>
uint32_t CollectiveRow(Args& args, trace::Segment& segment) {
  constexpr uint64_t kAny =
      ArgBit(ArgKey::kCollectiveName) | ArgBit(ArgKey::kGroupName) |
      ArgBit(ArgKey::kGroupRanks) | ArgBit(ArgKey::kInElements) |
      ArgBit(ArgKey::kOutElements) | ArgBit(ArgKey::kSeq);
  if ((args.present() & kAny) == 0) return trace::kNoRow;
  trace::CollectiveArgs row;
  row.name = args.Text(ArgKey::kCollectiveName);
  row.group = args.Text(ArgKey::kGroupName);
  row.group_desc = args.Text(ArgKey::kGroupDescription);
  row.group_ranks = args.Text(ArgKey::kGroupRanks);
  row.dtype = args.Text(ArgKey::kDtype);
  row.in_split = args.Text(ArgKey::kInSplit);
  row.out_split = args.Text(ArgKey::kOutSplit);
  row.group_size = args.Int(ArgKey::kGroupSize);
  row.in_elements = args.Int(ArgKey::kInElements);
  row.out_elements = args.Int(ArgKey::kOutElements);
  row.sequence = args.Int(ArgKey::kSeq);
  row.src_rank = args.Int(ArgKey::kSrcRank);
  row.dst_rank = args.Int(ArgKey::kDstRank);
  row.comms_id = args.Int(ArgKey::kCommsId);
  return segment.AddCollective(row);
}

// The argument row of a slice of this kind; kNoRow for kinds without one.
template <class Args>
uint32_t DetailRow(trace::Kind kind, Args& args, trace::Segment& segment) {
  using trace::Kind;
  const auto small = [&](ArgKey key) {
    const int64_t value = args.Int(key);
    return value >= 0 && value <= 0x7FFFFFFF ? static_cast<int32_t>(value) : -1;
  };
  switch (kind) {
    case Kind::kPython:
      return segment.AddPython({small(ArgKey::kPythonId),
                                small(ArgKey::kPythonParentId),
                                small(ArgKey::kPythonModuleId)});
    case Kind::kOp:
    case Kind::kAnnotation:
    case Kind::kGpuAnnotation: {
      trace::OpArgs op;
      op.dims = args.List(ArgKey::kInputDims);
      op.types = args.List(ArgKey::kInputTypes);
      op.strides = args.List(ArgKey::kInputStrides);
      op.concrete = args.List(ArgKey::kConcreteInputs);
      op.external_id = ExternalId(args);
      op.sequence = args.Int(ArgKey::kSequence);
      op.fwd_thread = args.Int(ArgKey::kFwdThread);
      op.collective = CollectiveRow(args, segment);
      return segment.AddOp(op);
    }
    case Kind::kRuntime:
    case Kind::kDriver: {
      trace::ApiArgs api;
      api.correlation = args.Int(ArgKey::kCorrelation);
      api.external_id = ExternalId(args);
      api.kernel = args.Text(ArgKey::kKernel);
      api.config = ConfigRow(args, segment);
      api.stream = args.Int(ArgKey::kStream);
      return segment.AddApi(api);
    }
    case Kind::kKernel:
    case Kind::kMemcpy:
    case Kind::kMemset:
    case Kind::kGraph: {
      trace::DeviceArgs device;
      device.correlation = args.Int(ArgKey::kCorrelation);
      device.external_id = ExternalId(args);
      device.device = args.Int(ArgKey::kDevice);
      device.context = args.Int(ArgKey::kContext);
      device.stream = args.Int(ArgKey::kStream);
      device.queue = args.Int(ArgKey::kQueue);
      device.bytes = args.Int(ArgKey::kBytes);
      device.graph_id = args.Int(ArgKey::kGraphId);
      device.graph_node_id = args.Int(ArgKey::kGraphNodeId);
      device.config = ConfigRow(args, segment);
      device.collective = CollectiveRow(args, segment);
      return segment.AddDevice(device);
    }
    case Kind::kOther: {
      // XLA writes it on calls and on their work, and no category.
      if (args.Has(ArgKey::kCorrelationId)) {
        trace::ApiArgs api;
        api.correlation = args.Int(ArgKey::kCorrelationId);
        return segment.AddApi(api);
      }
      if (!args.Has(ArgKey::kCorrelation) || !args.Has(ArgKey::kStream))
        return trace::kNoRow;
      trace::SyncRecord sync;
      sync.correlation = args.Int(ArgKey::kCorrelation);
      sync.device = args.Int(ArgKey::kDevice);
      sync.stream = args.Int(ArgKey::kStream);
      sync.source_stream = args.Int(ArgKey::kWaitOnStream);
      sync.source_record = args.Int(ArgKey::kWaitOnRecord);
      return trace::AddSync(sync, segment);
    }
    default:
      return trace::kNoRow;
  }
}

// Row of an allocation; kNoRow for an instant that is none.
template <class Args>
uint32_t MemoryRow(const Args& args, trace::Segment& segment) {
  if (!args.Has(ArgKey::kMemoryBytes)) return trace::kNoRow;
  trace::MemoryArgs memory;
  memory.bytes = args.Int(ArgKey::kMemoryBytes);
  memory.total_allocated = args.Int(ArgKey::kTotalAllocated);
  memory.total_reserved = args.Int(ArgKey::kTotalReserved);
  memory.address = args.Int(ArgKey::kAddress);
  const auto small = [&](ArgKey key) {
    const int64_t value = args.Int(key);
    return value >= -1 && value < 1 << 20 ? static_cast<int32_t>(value) : -1;
  };
  memory.device_type = small(ArgKey::kDeviceType);
  memory.device_id = small(ArgKey::kDeviceId);
  return segment.AddMemory(memory);
}

}  // namespace lamina::ingest
