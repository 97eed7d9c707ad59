// SPDX-License-Identifier: Apache-2.0
//
// Agents as rocprofv3 describes them, in its JSON and in the column extdata of
// its databases.
#pragma once

#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::ingest::rocm {

// Members of an object; nothing when they are absent or of another type.
std::optional<int64_t> IntAt(simdjson::dom::element object,
                             std::string_view key);
std::string TextAt(simdjson::dom::element object, std::string_view key);

// The device that an agent is.
trace::DeviceInfo DeviceOf(simdjson::dom::element agent, int64_t number);

}  // namespace lamina::ingest::rocm
