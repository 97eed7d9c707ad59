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
// pack: u32 count, then per file {name, content, packed (base/packed.h)}; texts
// are u32 length and bytes. Content of YAML: one node = u8 kind, u32 line, u32
// column, then for a scalar its text, for a list u32 count and nodes, for a map
// u32 count and key, value nodes.
void AppendNode(std::string& out, const Node& node);
void AppendText(std::string& out, std::string_view text);
void AppendU32(std::string& out, uint32_t value);

}  // namespace lamina::rules
