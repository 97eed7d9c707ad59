// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "ingest/common/format.h"

namespace lamina::ingest {

// All formats, sorted by name.
std::span<const FormatInfo> Formats();

// Finds the format by content and reads the file.
Result<trace::Trace> ReadTrace(const std::string& path,
                               const ReadOptions& options);

}  // namespace lamina::ingest
