// SPDX-License-Identifier: Apache-2.0
#include "rules/embedded.h"

#include <cstring>
#include <map>
#include <mutex>

#include "base/packed.h"

// The pack that lamina_pack_data made from data/ (see CMakeLists.txt). No list
// of headers names it: a cache of objects must not keep this one.
asm(".section .rodata\n"
    ".global lamina_data_begin\n"
    ".global lamina_data_end\n"
    ".balign 16\n"
    "lamina_data_begin:\n"
    ".incbin \"" LAMINA_DATA_PACK
    "\"\n"
    "lamina_data_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char lamina_data_begin[];
extern const char lamina_data_end[];
}

namespace lamina::rules {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  uint8_t U8() {
    LAMINA_CHECK(pos_ < bytes_.size());
    return static_cast<uint8_t>(bytes_[pos_++]);
  }
  uint32_t U32() {
    LAMINA_CHECK(pos_ + 4 <= bytes_.size());
    uint32_t value = 0;
    for (int i = 3; i >= 0; --i)
      value = value << 8 |
              static_cast<uint8_t>(bytes_[pos_ + static_cast<size_t>(i)]);
    pos_ += 4;
    return value;
  }
  std::string_view Text() {
    const uint32_t size = U32();
    LAMINA_CHECK(pos_ + size <= bytes_.size());
    const std::string_view text = bytes_.substr(pos_, size);
    pos_ += size;
    return text;
  }
  void Read(Node& node) {
    node.kind = static_cast<Node::Kind>(U8());
    node.line = U32();
    node.column = U32();
    if (node.kind == Node::Kind::kScalar) {
      node.text = Text();
    } else if (node.kind == Node::Kind::kList) {
      node.items.resize(U32());
      for (Node& item : node.items) Read(item);
    } else if (node.kind == Node::Kind::kMap) {
      const uint32_t count = U32();
      node.items.resize(count);
      node.keys.resize(count);
      for (uint32_t i = 0; i < count; ++i) {
        Read(node.keys[i]);
        Read(node.items[i]);
      }
    }
  }

 private:
  std::string_view bytes_;
  size_t pos_ = 0;
};

struct File {
  std::string_view packed;
  std::once_flag once;
  std::string content;  // from the first use on
};

struct Files {
  std::vector<std::string> names;
  std::map<std::string, File, std::less<>> files;

  Files() {
    Cursor cursor({lamina_data_begin,
                   static_cast<size_t>(lamina_data_end - lamina_data_begin)});
    const uint32_t count = cursor.U32();
    for (uint32_t i = 0; i < count; ++i) {
      std::string name(cursor.Text());
      files[name].packed = cursor.Text();
      names.push_back(std::move(name));
    }
  }
};

Files& TheFiles() {
  static Files files;
  return files;
}

}  // namespace

const std::vector<std::string>& EmbeddedNames() { return TheFiles().names; }

std::string_view EmbeddedText(std::string_view name) {
  const auto it = TheFiles().files.find(name);
  LAMINA_CHECK(it != TheFiles().files.end());
  File& file = it->second;
  std::call_once(file.once, [&] { file.content = Unpack(file.packed); });
  return file.content;
}

std::shared_ptr<const DataFile> LoadEmbedded(std::string_view name) {
  auto file = std::make_shared<DataFile>();
  file->name = "builtin:" + std::string(name);
  Cursor(EmbeddedText(name)).Read(file->root);
  return file;
}

}  // namespace lamina::rules
