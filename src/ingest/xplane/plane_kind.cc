// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/plane_kind.h"

#include "base/decimal.h"
#include "base/text.h"

namespace lamina::ingest::xplane {

PlaneKind PlaneKindOf(std::string_view name) {
  if (name.starts_with("/host:metadata") || name == "Task Environment")
    return PlaneKind::kMetadata;
  if (name.starts_with("/host:")) return PlaneKind::kHost;
  if (Contains(name, "/stream:")) return PlaneKind::kSkipped;
  if (name.starts_with("/device:GPU:")) return PlaneKind::kGpu;
  if (name.starts_with("/device:TPU:")) {
    return Contains(name, "SparseCore") ? PlaneKind::kSkipped : PlaneKind::kTpu;
  }
  if (name.starts_with("/device:")) return PlaneKind::kCustom;
  return PlaneKind::kSkipped;
}

int64_t DeviceNumber(std::string_view plane) {
  const size_t at = plane.rfind(':');
  if (at != std::string_view::npos) plane.remove_prefix(at + 1);
  return ParseInt(plane).value_or(0);
}

}  // namespace lamina::ingest::xplane
