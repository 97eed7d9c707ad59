// SPDX-License-Identifier: Apache-2.0
//
// The files of data/ inside the program. YAML is parsed once, when lamina is
// built; the program holds the parsed trees in a compact form that loads in
// microseconds, because parsing at each start would cost more than a small
// report may take.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rules/document.h"

namespace lamina::rules {

// Paths below data/, sorted.
const std::vector<std::string>& EmbeddedNames();
// An embedded tree by its path; the program stops when there is none.
std::shared_ptr<const DataFile> LoadEmbedded(std::string_view name);
// An embedded file that is not YAML, as text.
std::string_view EmbeddedText(std::string_view name);

// --- the form ---
// PackedFiles (base/packed.h). Content of YAML: one node = u8 kind, then as
// varints how many lines behind the node before (zigzag), column, and for a
// scalar the size of its text, which follows, for a list the count of nodes,
// which follow, for a map that of pairs of key and value nodes.
void AppendNode(std::string& out, const Node& node);

}  // namespace lamina::rules
