// SPDX-License-Identifier: Apache-2.0
//
// One diagnosis of many ranks.
#pragma once

#include <utility>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

// Joins diagnoses of ranks by the ids of findings: gains are means over all
// ranks, owned times sums, sentences and evidence those of the rank that a
// finding costs most, with the number of ranks that show it. A rule could not
// look when it could not on any rank. `ranks` is not empty; its diagnoses are
// those with all findings and of all rules (Options::all, no Options::only):
// one that is not asked for may lower the trust in those that are.
// `job`: what rules over all of them found.
Diagnosis JoinRanks(std::vector<std::pair<int64_t, Diagnosis>> ranks,
                    Diagnosis job, const Options& options);

}  // namespace lamina::findings
