// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compare/cudagraph/annotate.h"

namespace lamina::cudagraph {

// The launches of graphs in a trace in order of their start, each with its
// device work. `batch`: that of all launches; else as ranges around them say.
std::vector<Replay> FindReplays(const analysis::Context& context,
                                std::optional<int64_t> batch);

}  // namespace lamina::cudagraph
