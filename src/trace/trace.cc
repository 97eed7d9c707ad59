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

}  // namespace lamina::trace
