// SPDX-License-Identifier: Apache-2.0
//
// Which files are traces: the ranks of a job, captures, replays.
#pragma once

#include <string>
#include <string_view>
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
// The same with memory snapshots, which end in .pickle.
Result<std::vector<std::string>> FindTracesAndSnapshots(
    const std::vector<std::string>& arguments);
bool HasSnapshotName(std::string_view path);

// "rank2" before "rank10": runs of digits compare as numbers.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace lamina::engine
