// SPDX-License-Identifier: Apache-2.0
//
// The findings of two recordings side by side.
#pragma once

#include <array>

#include "findings/findings.h"

namespace lamina::findings {

// Table finding_changes, by the id of a finding:
//   fixed       found in the first, and its rule looked at the second in vain
//   new         the other way round
//   better, worse  its time differs by more than a tenth and one point of the
//               window of the first; where units are known per unit, else only
//               where its share of the window says the same
//   same
//   lost_sight  found in the first; its rule could not look at the second
//   unseen      found in the second; its rule could not look at the first
// and a note that holds the gains of what was fixed against the change of the
// window, or of a unit. Both diagnoses are those with all findings
// (Options::all). `units`: steps or passes of each; below 2: not known.
ResultSet Compare(const Diagnosis& first, const Diagnosis& second,
                  const std::array<size_t, 2>& units);

}  // namespace lamina::findings
