// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "questions/asker.h"
#include "sql/database.h"

namespace lamina::questions {

// The tables of a trace, or of all ranks in a folder, under a name. The path
// joins `inputs`.
Result<sql::SchemaInput> OpenSchema(const std::string& name,
                                    const std::string& path, Asker& asker,
                                    std::vector<std::string>& inputs);

}  // namespace lamina::questions
