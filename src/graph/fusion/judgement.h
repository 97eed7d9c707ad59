// SPDX-License-Identifier: Apache-2.0
//
// What speaks for a candidate and against it, and what to do with it.
#pragma once

#include "graph/fusion/candidates.h"

namespace lamina::fusion {

// Whether the transform of a candidate is known and does not run.
bool IsSwitchedOff(const Candidate& c);

// Fill in_log, strengths, weaknesses, risks and the recommendation of a
// candidate whose worth is known. `log` may be null.
void JudgeKnown(const graph::Rule& rule, const graph::TransformLog* log,
                Candidate& c);
void JudgeMined(const graph::Graph& graph, const Form& form, size_t min_layers,
                Candidate& c);

}  // namespace lamina::fusion
