// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "report/common/writer.h"

namespace lamina::report {

// All writers, sorted by name.
std::span<const WriterInfo> Writers();
const WriterInfo* FindWriter(std::string_view name);

}  // namespace lamina::report
