// SPDX-License-Identifier: Apache-2.0
//
// Findings that a project knows and accepts.
#pragma once

#include <string>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

struct Suppressions {
  std::vector<Suppression> all;
  std::string file;  // where they are from; empty: nowhere
  // A file that would have served but belongs to another user: who lays one
  // beside a trace must not decide what a gate lets pass.
  std::string refused;
};

// Reads a list of {rule or id, anchor, max_share, reason}. Without a name the
// nearest .lamina-findings.yaml of this user or of root: beside the trace, or
// in a folder above it up to the root of its repository; none is no error.
// Errors: with their place.
Result<Suppressions> LoadSuppressions(const std::string& file,
                                      const std::string& trace);

}  // namespace lamina::findings
