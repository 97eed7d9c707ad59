// SPDX-License-Identifier: Apache-2.0
#include "base/packed.h"
#include "rules/embedded.h"

namespace lamina::rules {
namespace {

void Append(std::string& out, const Node& node, uint32_t& line) {
  out += static_cast<char>(node.kind);
  // Nearly all stand on the line of the one before or behind it.
  const auto behind = static_cast<int32_t>(node.line - line);
  AppendVarint(out, static_cast<uint32_t>(behind) << 1 ^
                        static_cast<uint32_t>(behind >> 31));
  line = node.line;
  AppendVarint(out, node.column);
  switch (node.kind) {
    case Node::Kind::kNull:
      break;
    case Node::Kind::kScalar:
      AppendVarint(out, static_cast<uint32_t>(node.text.size()));
      out += node.text;
      break;
    case Node::Kind::kList:
      AppendVarint(out, static_cast<uint32_t>(node.items.size()));
      for (const Node& item : node.items) Append(out, item, line);
      break;
    case Node::Kind::kMap:
      AppendVarint(out, static_cast<uint32_t>(node.items.size()));
      for (size_t i = 0; i < node.items.size(); ++i) {
        Append(out, node.keys[i], line);
        Append(out, node.items[i], line);
      }
      break;
  }
}

}  // namespace

void AppendNode(std::string& out, const Node& node) {
  uint32_t line = 0;
  Append(out, node, line);
}

}  // namespace lamina::rules
