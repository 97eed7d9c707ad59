// SPDX-License-Identifier: Apache-2.0
//
// Inside of the formula language: its functions by what they look at.
#pragma once

#include <vector>

#include "cost/formula.h"

namespace lamina::cost {

// Of the call: arguments, name, step.
std::vector<Function> CallFunctions();
// Of numbers, lists and shapes.
std::vector<Function> ValueFunctions();

double Product(const std::vector<double>& list);

}  // namespace lamina::cost
