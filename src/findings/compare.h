// SPDX-License-Identifier: Apache-2.0
//
// The findings of two recordings side by side.
#pragma once

#include "findings/findings.h"

namespace lamina::findings {

// Table finding_changes, by the id of a finding:
//   fixed       found in the first, and its rule looked at the second in vain
//   new         the other way round
//   better, worse  the share differs by more than a tenth and one point
//   same
//   lost_sight  found in the first; its rule could not look at the second
//   unseen      found in the second; its rule could not look at the first
// and a note that holds the gains of what was fixed against the change of the
// window. Both diagnoses are those with all findings (Options::all).
ResultSet Compare(const Diagnosis& first, const Diagnosis& second);

}  // namespace lamina::findings
