// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables about layers, with what they mean.
#pragma once

#include "analysis/layers/layers.h"
#include "lamina/table.h"

namespace lamina::analysis::layers {

Schema PassSchema();
Schema LayerSchema();
Schema TypeSchema();
Schema StackSchema();
Schema StageSchema();
Schema OrphanSchema();
Schema CheckSchema();

}  // namespace lamina::analysis::layers
