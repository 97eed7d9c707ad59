// SPDX-License-Identifier: Apache-2.0
//
// Facts about a recording in the form that PyTorch's profiler gives them.
#pragma once

#include <string>

#include "trace/trace.h"

namespace lamina::emit {

// The list "deviceProperties"; empty when no device is known.
std::string DevicePropertiesJson(const trace::Info& info);
// The object "distributedInfo"; empty without a rank.
std::string DistributedJson(const trace::Info& info);

}  // namespace lamina::emit
