// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

namespace lamina::trace {

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kOp:
      return "op";
    case Kind::kRuntime:
      return "runtime";
    case Kind::kDriver:
      return "driver";
    case Kind::kKernel:
      return "kernel";
    case Kind::kMemcpy:
      return "memcpy";
    case Kind::kMemset:
      return "memset";
    case Kind::kGraph:
      return "graph";
    case Kind::kPython:
      return "python";
    case Kind::kAnnotation:
      return "annotation";
    case Kind::kGpuAnnotation:
      return "gpu_annotation";
    case Kind::kOverhead:
      return "overhead";
    case Kind::kProfiler:
      return "profiler";
    case Kind::kOther:
      return "other";
  }
  return "other";
}

uint64_t Trace::bytes() const {
  return slices.start_ns.capacity_bytes() + slices.dur_ns.capacity_bytes() +
         slices.name.capacity_bytes() + slices.kind.capacity_bytes() +
         slices.category.capacity_bytes() + slices.track.capacity_bytes() +
         slices.uid.capacity_bytes() + slices.offset.capacity_bytes() +
         slices.detail.capacity_bytes() + ops.capacity_bytes() +
         api_calls.capacity_bytes() + device.capacity_bytes() +
         python.capacity_bytes() + collectives.capacity_bytes() +
         memory.capacity_bytes() + graph_nodes.capacity_bytes() +
         flows.id.capacity_bytes() * 4 + instants.time_ns.capacity_bytes() * 3 +
         strings.bytes();
}

}  // namespace lamina::trace
