// SPDX-License-Identifier: Apache-2.0
//
// The roofline plot of a report.
#pragma once

#include "engine/session.h"

namespace lamina::engine {

// SVG text from the table op_efficiency of a report. Errors: kUsage when the
// device is not known.
Result<std::string> DrawRoofline(Session& session, const Table& op_efficiency);

}  // namespace lamina::engine
