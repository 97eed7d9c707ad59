// SPDX-License-Identifier: Apache-2.0
//
// Which files are traces: the ranks of a job, captures, replays.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace lamina::engine {

// Traces that the arguments name: a file as itself, the traces in a folder and
// below it, by the ends of their names, the files of a pattern
// ("run/rank*.json.gz"). Files of one argument come in natural order (rank2
// before rank10), none twice, and none may be replaced by an output. Errors: an
// argument that names nothing.
Result<std::vector<std::string>> FindTraces(
    const std::vector<std::string>& arguments);

// "rank2" before "rank10": runs of digits compare as numbers.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace lamina::engine
