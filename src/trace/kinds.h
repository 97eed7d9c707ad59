// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina::trace {

// What a slice is, whatever profiler recorded it.
enum class Kind : uint8_t {
  kOp,             // framework operator on the host (cpu_op)
  kRuntime,        // runtime API call: cuda*, hip*
  kDriver,         // driver API call: cu*, hsa*
  kKernel,         // device: kernel
  kMemcpy,         // device: copy
  kMemset,         // device: fill
  kGraph,          // device: a whole graph launch recorded as one activity
  kPython,         // Python frame or nn.Module call
  kAnnotation,     // user range on the host: record_function, NVTX, steps
  kGpuAnnotation,  // the same range, projected onto the device
  kOverhead,       // the profiler's own work
  kProfiler,       // the profiler's own spans ("Trace")
  kOther,
};
inline constexpr int kKinds = 13;

constexpr bool IsDevice(Kind kind) {
  return kind >= Kind::kKernel && kind <= Kind::kGraph;
}
constexpr bool IsApiCall(Kind kind) {
  return kind == Kind::kRuntime || kind == Kind::kDriver;
}
constexpr bool IsHostTree(Kind kind) {
  return kind <= Kind::kDriver || kind == Kind::kPython;
}

// snake_case name of a kind, as in tables.
std::string_view KindName(Kind kind);

}  // namespace lamina::trace
