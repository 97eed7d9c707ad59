// SPDX-License-Identifier: Apache-2.0
//
// Which rule says the family of each device event of a page.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/common/context.h"
#include "lamina/table.h"

namespace lamina::page {

struct FamilyRuleRows {
  Table table;  // family_rules
  // By row of device arguments: row + 1 of the table.
  std::vector<uint32_t> row_of;
};
FamilyRuleRows FindFamilyRules(const analysis::Context& context);

}  // namespace lamina::page
