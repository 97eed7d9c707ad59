// SPDX-License-Identifier: Apache-2.0
//
// The causes of idle time in a report.
#pragma once

#include "analysis/common/context.h"
#include "lamina/result.h"
#include "rules/document.h"

namespace lamina::engine {

// Adds the table idle_causes, and to the sentences about idle time what caused
// it. Errors: data files that cannot be used.
Status AddIdleCauses(const analysis::Context& context,
                     const rules::DataSet& data, ResultSet& result);

// The table idle_gaps of the longest `most` gaps. Errors as above.
Result<Table> LongestIdleGaps(const analysis::Context& context,
                              const rules::DataSet& data, size_t most);

}  // namespace lamina::engine
