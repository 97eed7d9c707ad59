// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

namespace lamina::trace {

std::string Trace::DeviceName(const Stream& stream) const {
  std::string name =
      stream.device == kNoInt ? "?" : std::to_string(stream.device);
  const std::string_view pid = Text(stream.pid);
  if (pid != name) name.insert(0, std::string(pid) + ":");
  return name;
}

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
