// SPDX-License-Identifier: Apache-2.0
//
// Inside of the rule files: one fusion rule from its YAML, every fault with its
// place in the file.
#pragma once

#include <string>
#include <vector>

#include "graph/pattern/rule.h"
#include "rules/document.h"

namespace lamina::graph {

// `warnings` may be null.
Result<Rule> ReadRule(const rules::DataFile& file, const rules::Node& node,
                      std::vector<std::string>* warnings);

}  // namespace lamina::graph
