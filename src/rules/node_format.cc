// SPDX-License-Identifier: Apache-2.0
#include "rules/embedded.h"

namespace lamina::rules {

void AppendU32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    out += static_cast<char>((value >> shift) & 0xFF);
}

void AppendText(std::string& out, std::string_view text) {
  AppendU32(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

void AppendNode(std::string& out, const Node& node) {
  out += static_cast<char>(node.kind);
  AppendU32(out, node.line);
  AppendU32(out, node.column);
  switch (node.kind) {
    case Node::Kind::kNull:
      break;
    case Node::Kind::kScalar:
      AppendText(out, node.text);
      break;
    case Node::Kind::kList:
      AppendU32(out, static_cast<uint32_t>(node.items.size()));
      for (const Node& item : node.items) AppendNode(out, item);
      break;
    case Node::Kind::kMap:
      AppendU32(out, static_cast<uint32_t>(node.items.size()));
      for (size_t i = 0; i < node.items.size(); ++i) {
        AppendNode(out, node.keys[i]);
        AppendNode(out, node.items[i]);
      }
      break;
  }
}

}  // namespace lamina::rules
