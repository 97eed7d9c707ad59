// SPDX-License-Identifier: Apache-2.0
//
// Tables that add up single device events: by stage and type, and those in no
// layer. Each holds every event it is about once.
#pragma once

#include <cstdint>

#include "analysis/layers/details.h"
#include "analysis/layers/labels.h"

namespace lamina::analysis::layers {

// `total_ns` is the device time of the trace; `labels` are by our own tables.
Table StageTable(const Details& in, Labels& labels, int64_t total_ns);
Table OrphanTable(const Details& in, int64_t total_ns);

}  // namespace lamina::analysis::layers
