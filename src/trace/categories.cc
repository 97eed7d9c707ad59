// SPDX-License-Identifier: Apache-2.0
#include "trace/categories.h"

#include <array>
#include <string>

#include "trace/os_records.h"

namespace lamina::trace {

Kind KindOfCategory(std::string_view category) {
  struct Row {
    std::string_view category;
    Kind kind;
  };
  static constexpr std::array<Row, 20> kRows = {{
      {"cpu_op", Kind::kOp},
      {"operator", Kind::kOp},
      {"runtime", Kind::kRuntime},
      {"hpu_op", Kind::kRuntime},  // calls of the host, by its name in Kineto
      {"driver", Kind::kDriver},
      {"kernel", Kind::kKernel},
      {"concurrent_kernel", Kind::kKernel},
      {"gpu_memcpy", Kind::kMemcpy},
      {"gcu_memcpy", Kind::kMemcpy},
      {"memcpy", Kind::kMemcpy},
      {"gpu_memset", Kind::kMemset},
      {"gcu_memset", Kind::kMemset},
      {"memset", Kind::kMemset},
      {"python_function", Kind::kPython},
      {"user_annotation", Kind::kAnnotation},
      {"step", Kind::kAnnotation},  // kStepCategory
      {"gpu_user_annotation", Kind::kGpuAnnotation},
      {"gcu_user_annotation", Kind::kGpuAnnotation},
      {"overhead", Kind::kOverhead},
      {"trace", Kind::kProfiler},
  }};
  // Profilers changed the case of categories over the years.
  if (category.size() > 32) return Kind::kOther;
  std::string lower(category);
  for (char& c : lower)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const Row& row : kRows) {
    if (row.category == lower) return row.kind;
  }
  // Kineto names the calls of a vendor's runtime and driver by the device.
  static constexpr std::array<std::string_view, 12> kDevices = {
      "cuda", "hip", "xpu",  "musa", "mlu",         "gcu",
      "npu",  "hpu", "mtia", "glow", "privateuse1", "rocm"};
  for (const std::string_view device : kDevices) {
    if (!lower.starts_with(device)) continue;
    const std::string_view rest = std::string_view(lower).substr(device.size());
    if (rest == "_runtime") return Kind::kRuntime;
    if (rest == "_driver") return Kind::kDriver;
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
  if (category == kCounterRangeCategory) {
    return "Ranges of counters of the device: counter_kernels has their values "
           "by "
           "kernel.";
  }
  if (category == kOsCallCategory) {
    return "Calls of the operating system: the causes of idle time (host) say "
           "in "
           "which of them the launching thread was.";
  }
  if (category == kThreadStateCategory) {
    return "Whether threads were on a processor: the causes of idle time "
           "(host) "
           "say what the launching thread did.";
  }
  return {};
}

Kind KindOfEvent(Kind of_category, std::string_view name) {
  if (of_category != Kind::kOp) return of_category;
  return name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.") ||
                 name.starts_with("enumerate(DataLoader)")
             ? Kind::kAnnotation
             : of_category;
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
