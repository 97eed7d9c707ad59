// SPDX-License-Identifier: Apache-2.0
//
// Which files are the ranks of a job.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace lamina::dist {

// Traces that the arguments name: a file as itself, the traces in a folder and
// below it, the files of a pattern ("run/rank*.json.gz"). Files of one argument
// come in natural order (rank2 before rank10), none twice. Errors: an argument
// that names nothing.
Result<std::vector<std::string>> FindTraces(
    const std::vector<std::string>& arguments);

// "rank2" before "rank10": runs of digits compare as numbers.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace lamina::dist
