// SPDX-License-Identifier: Apache-2.0
#include "ingest/pftrace/kinds.h"

#include <array>

#include "trace/categories.h"

namespace lamina::ingest::pftrace {

using trace::Kind;

namespace {

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// Names such as cudaLaunchKernel, hipMemcpyAsync; cuLaunchKernel is a driver
// call.
Kind ApiOf(std::string_view name) {
  if (name.starts_with("cuda") && name.size() > 4 && IsUpper(name[4]))
    return Kind::kRuntime;
  if (name.starts_with("hip") && name.size() > 3 && IsUpper(name[3]))
    return Kind::kRuntime;
  if (name.starts_with("cu") && name.size() > 2 && IsUpper(name[2]))
    return Kind::kDriver;
  if (name.starts_with("hsa_")) return Kind::kDriver;
  return Kind::kOther;
}

}  // namespace

Kind KindOfCategory(std::string_view category) {
  struct Row {
    std::string_view category;
    Kind kind;
  };
  static constexpr std::array<Row, 7> kRows = {{
      {"hip_api", Kind::kRuntime},
      {"hsa_api", Kind::kDriver},
      {"rccl_api", Kind::kRuntime},
      {"marker_api", Kind::kAnnotation},
      {"kernel_dispatch", Kind::kKernel},
      {"memory_copy", Kind::kMemcpy},
      {"cuda_api", Kind::kRuntime},
  }};
  for (const Row& row : kRows) {
    if (row.category == category) return row.kind;
  }
  return trace::KindOfCategory(category);
}

Kind KindOfEvent(std::string_view name, const Hints& hints) {
  const Kind api = ApiOf(name);
  if (api != Kind::kOther) return api;
  if (hints.python || name.starts_with("nn.Module: ")) return Kind::kPython;
  if (name.starts_with("ProfilerStep#")) return Kind::kAnnotation;
  if (hints.stream || hints.grid) {
    if (name.starts_with("Memcpy")) return Kind::kMemcpy;
    if (name.starts_with("Memset")) return Kind::kMemset;
    if (hints.grid || hints.correlation) return Kind::kKernel;
  }
  if (hints.shapes || hints.external_id) return Kind::kOp;
  return Kind::kOther;
}

}  // namespace lamina::ingest::pftrace
