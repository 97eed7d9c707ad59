// SPDX-License-Identifier: Apache-2.0
//
// Facts about a recording in the form that PyTorch's profiler gives them.
#pragma once

#include <string_view>

#include "trace/trace.h"

namespace lamina::ingest {

// The list "deviceProperties" and the object "distributedInfo", as JSON text.
// False when the text has another form; what is unknown in it is skipped.
bool ReadDeviceProperties(std::string_view json, trace::Info& info);
bool ReadDistributedInfo(std::string_view json, trace::Info& info);

}  // namespace lamina::ingest
