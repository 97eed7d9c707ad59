// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables about ops, with what they mean.
#pragma once

#include "lamina/table.h"

namespace lamina::analysis::ops {

Schema CategoriesSchema();
Schema OpsSchema();
Schema ShapesSchema();
Schema LaunchersSchema();

}  // namespace lamina::analysis::ops
