// SPDX-License-Identifier: Apache-2.0
//
// What kind of work a mined form is, by its ops and by what stands close to it.
#pragma once

#include <vector>

#include "graph/fusion/mining.h"

namespace lamina::fusion {

FormKind KindOfForm(const graph::Graph& graph, const ClassedOps& ops,
                    const std::vector<graph::NodeId>& nodes);

}  // namespace lamina::fusion
