// SPDX-License-Identifier: Apache-2.0
//
// Findings that a project knows and accepts.
#pragma once

#include <string>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

// Reads a list of {rule or id, anchor, max_share, reason}. Without a name the
// first .lamina-findings.yaml beside the trace or in a folder above it, up to
// the root of its repository; none is no error. Errors: with their place.
Result<std::vector<Suppression>> LoadSuppressions(const std::string& file,
                                                  const std::string& trace);

}  // namespace lamina::findings
