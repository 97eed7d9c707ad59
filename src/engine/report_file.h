// SPDX-License-Identifier: Apache-2.0
//
// A report that was written with --format json, read back.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "lamina/result.h"

namespace lamina::engine {

// The tables of a report; nothing when the file is something else (a trace).
// Errors: kInput for a report that cannot be read.
Result<std::optional<ResultSet>> ReadReportFile(const std::string& path);

}  // namespace lamina::engine
