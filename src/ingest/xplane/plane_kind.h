// SPDX-License-Identifier: Apache-2.0
//
// What a plane is, by its name.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina::ingest::xplane {

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

}  // namespace lamina::ingest::xplane
