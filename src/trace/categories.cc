// SPDX-License-Identifier: Apache-2.0
#include "trace/categories.h"

#include <array>

namespace lamina::trace {

Kind KindOfCategory(std::string_view category) {
  struct Row {
    std::string_view category;
    Kind kind;
  };
  static constexpr std::array<Row, 22> kRows = {{
      {"cpu_op", Kind::kOp},
      {"Operator", Kind::kOp},
      {"operator", Kind::kOp},
      {"cuda_runtime", Kind::kRuntime},
      {"Runtime", Kind::kRuntime},
      {"hip_runtime", Kind::kRuntime},
      {"privateuse1_runtime", Kind::kRuntime},
      {"xpu_runtime", Kind::kRuntime},
      {"cuda_driver", Kind::kDriver},
      {"privateuse1_driver", Kind::kDriver},
      {"kernel", Kind::kKernel},
      {"Kernel", Kind::kKernel},
      {"gpu_memcpy", Kind::kMemcpy},
      {"Memcpy", Kind::kMemcpy},
      {"gpu_memset", Kind::kMemset},
      {"Memset", Kind::kMemset},
      {"python_function", Kind::kPython},
      {"user_annotation", Kind::kAnnotation},
      {"step", Kind::kAnnotation},  // kStepCategory
      {"gpu_user_annotation", Kind::kGpuAnnotation},
      {"overhead", Kind::kOverhead},
      {"Trace", Kind::kProfiler},
  }};
  for (const Row& row : kRows) {
    if (row.category == category) return row.kind;
  }
  return Kind::kOther;
}

bool IsGraphLaunch(std::string_view call) {
  return call.find("GraphLaunch") != std::string_view::npos;
}

std::string_view WhyUnused(std::string_view category) {
  if (category == "cuda_sync") {
    return "Waits of the host for the device; the calls that wait are in the "
           "tables of calls.";
  }
  if (category == "cuda_profiler_range") {
    return "Ranges of counters of the device; the kernels in them are in the "
           "tables of kernels.";
  }
  return {};
}

std::string_view CategoryOf(Kind kind) {
  switch (kind) {
    case Kind::kOp:
      return "cpu_op";
    case Kind::kRuntime:
      return "cuda_runtime";
    case Kind::kDriver:
      return "cuda_driver";
    case Kind::kKernel:
    case Kind::kGraph:
      return "kernel";
    case Kind::kMemcpy:
      return "gpu_memcpy";
    case Kind::kMemset:
      return "gpu_memset";
    case Kind::kPython:
      return "python_function";
    case Kind::kAnnotation:
      return "user_annotation";
    case Kind::kGpuAnnotation:
      return "gpu_user_annotation";
    case Kind::kOverhead:
      return "overhead";
    case Kind::kProfiler:
      return "Trace";
    case Kind::kOther:
      break;
  }
  return "";
}

}  // namespace lamina::trace
