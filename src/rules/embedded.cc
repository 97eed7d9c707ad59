// SPDX-License-Identifier: Apache-2.0
#include "rules/embedded.h"

#include "base/packed.h"
#include "base/status.h"

// What lamina_pack_data made from data/ (see CMakeLists.txt).
LAMINA_EMBED(data, LAMINA_DATA_PACK)

namespace lamina::rules {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  void Read(Node& node) {
    node.kind = static_cast<Node::Kind>(TakeBytes(bytes_, 1)[0]);
    const uint32_t behind = TakeVarint(bytes_);
    node.line = line_ += behind >> 1 ^ -(behind & 1);
    node.column = TakeVarint(bytes_);
    if (node.kind == Node::Kind::kNull) return;
    const uint32_t size = TakeVarint(bytes_);
    switch (node.kind) {
      case Node::Kind::kScalar:
        node.text = TakeBytes(bytes_, size);
        break;
      case Node::Kind::kList:
        node.items.resize(size);
        for (Node& item : node.items) Read(item);
        break;
      default:
        node.items.resize(size);
        node.keys.resize(size);
        for (uint32_t i = 0; i < size; ++i) {
          Read(node.keys[i]);
          Read(node.items[i]);
        }
    }
  }

 private:
  std::string_view bytes_;
  uint32_t line_ = 0;
};

const PackedFiles& TheFiles() {
  static const PackedFiles files({lamina_data_begin, lamina_data_end});
  return files;
}

}  // namespace

const std::vector<std::string>& EmbeddedNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& file : TheFiles().files()) out.emplace_back(file.first);
    return out;
  }();
  return names;
}

std::string_view EmbeddedText(std::string_view name) {
  const auto text = TheFiles().Find(name);
  LAMINA_CHECK(text.has_value());
  return *text;
}

std::shared_ptr<const DataFile> LoadEmbedded(std::string_view name) {
  auto file = std::make_shared<DataFile>();
  file->name = "builtin:" + std::string(name);
  Cursor(EmbeddedText(name)).Read(file->root);
  return file;
}

}  // namespace lamina::rules
