// SPDX-License-Identifier: Apache-2.0
//
// The tables of a comparison.
#pragma once

#include "lamina/table.h"

namespace lamina::analysis::diff {

Schema TotalsSchema();
Schema CausesSchema();
Schema OpsSchema();
Schema KernelsSchema();
Schema BySchema();
Schema CallsSchema();
Schema MovedSchema();

}  // namespace lamina::analysis::diff
