// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/efficiency/rows.h"
#include "lamina/table.h"

namespace lamina::analysis::efficiency {

// One table per family: the parameters of its models, in order of first use.
std::vector<Table> FamilyTables(const Context& context,
                                const std::vector<Row>& all);

}  // namespace lamina::analysis::efficiency
