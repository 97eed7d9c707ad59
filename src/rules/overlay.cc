// SPDX-License-Identifier: Apache-2.0
#include "rules/overlay.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/byte_source.h"
#include "base/files_below.h"
#include "rules/document.h"
#include "rules/embedded.h"

namespace lamina::rules {
namespace {

constexpr size_t kMaxDataFile = size_t{16} << 20;

// What the files of one folder of data/ look like.
struct Layout {
  std::map<std::string, Node::Kind, std::less<>> keys;  // and their form
  std::set<std::string, std::less<>> tables;            // values of "table"
};
using Layouts = std::map<std::string, Layout, std::less<>>;

const Layouts& TheLayouts() {
  static const Layouts* const layouts = [] {
    auto* const all = new Layouts;
    for (const std::string& name : EmbeddedNames()) {
      if (!name.ends_with(".yaml")) continue;
      Layout& layout = (*all)[name.substr(0, name.find('/'))];
      const auto file = LoadEmbedded(name);
      const Node& root = file->root;
      for (size_t i = 0; i < root.keys.size(); ++i) {
        layout.keys[root.keys[i].text] = root.items[i].kind;
        if (root.keys[i].text == "table")
          layout.tables.insert(root.items[i].text);
      }
    }
    return all;
  }();
  return *layouts;
}

template <typename Names>
std::string ListOf(const Names& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// "did you mean 'x'?", or all of them.
template <typename Names>
std::string Nearly(std::string_view word, const Names& names) {
  std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view near = Nearest(word, views);
  return near.empty() ? "known are " + ListOf(names)
                      : "did you mean '" + std::string(near) + "'?";
}

std::vector<std::string> KeysOf(const Layout& layout) {
  std::vector<std::string> keys;
  for (const auto& [key, kind] : layout.keys) keys.push_back(key);
  return keys;
}

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const auto& [folder, layout] : TheLayouts()) folders.push_back(folder);
  return folders;
}

// The folders whose files have such a key, or such a table.
std::vector<std::string> FoldersWith(const DataFile& file) {
  std::vector<std::string> folders;
  const Node* const table = file.root.Find("table");
  for (const auto& [folder, layout] : TheLayouts()) {
    const bool fits =
        table != nullptr
            ? layout.tables.contains(table->text)
            : !file.root.keys.empty() &&
                  std::all_of(file.root.keys.begin(), file.root.keys.end(),
                              [&layout = layout](const Node& key) {
                                return layout.keys.contains(key.text);
                              });
    if (fits) folders.push_back(folder);
  }
  return folders;
}

std::string_view FormOf(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "keys and values";
    default:
      return "text";
  }
}

Status CheckContent(const DataFile& file, const std::string& folder) {
  const Layout& layout = TheLayouts().find(folder)->second;
  const Node& root = file.root;
  const auto elsewhere = [&]() -> std::string {
    const auto others = FoldersWith(file);
    if (others.empty() ||
        std::find(others.begin(), others.end(), folder) != others.end())
      return {};
    return "files with these keys belong in " + ListOf(others) + "/";
  };
  if (!root.IsMap()) {
    return Fail(file.ErrorAt(
        root, "expected keys and values",
        "keys of files in " + folder + "/: " + ListOf(KeysOf(layout))));
  }
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const Node& key = root.keys[i];
    const Node& value = root.items[i];
    const auto known = layout.keys.find(key.text);
    if (known == layout.keys.end()) {
      const std::string other = elsewhere();
      return Fail(file.ErrorAt(
          key, "files in " + folder + "/ have no key '" + key.text + "'",
          other.empty() ? Nearly(key.text, KeysOf(layout)) : other));
    }
    if (value.kind != known->second && value.kind != Node::Kind::kNull) {
      return Fail(file.ErrorAt(value, "expected " +
                                          std::string(FormOf(known->second)) +
                                          " as '" + key.text + "'"));
    }
    if (key.text == "table" && !layout.tables.contains(value.text)) {
      const std::string other = elsewhere();
      return Fail(file.ErrorAt(
          value, "files in " + folder + "/ have no table '" + value.text + "'",
          other.empty() ? Nearly(value.text, layout.tables) : other));
    }
  }
  if (!layout.tables.empty() && root.Find("table") == nullptr) {
    return Fail(file.ErrorAt(
        root, "the key 'table' is missing",
        "tables of files in " + folder + "/: " + ListOf(layout.tables)));
  }
  return {};
}

}  // namespace

Status CheckOverlay(const std::string& folder) {
  namespace fs = std::filesystem;
  bool any = false;
  for (const std::string& path : FilesBelow(folder)) {
    const fs::path inside = fs::path(path).lexically_relative(folder);
    const std::string name = inside.filename().string();
    if (name.ends_with(".yml")) {
      return Fail(InputError(path, "is not read: data files end in .yaml",
                             "rename it to .yaml"));
    }
    // Notes and backups beside the files.
    if (!name.ends_with(".yaml") || name.starts_with('.')) continue;
    any = true;
    const std::string parent = inside.parent_path().string();
    if (!TheLayouts().contains(parent)) {
      LAMINA_ASSIGN(std::string text, ReadAll(path, kMaxDataFile));
      LAMINA_ASSIGN(const DataFile file, ParseYaml(path, std::move(text)));
      const auto fitting = FoldersWith(file);
      return Fail(
          InputError(path,
                     parent.empty() ? "stands in none of the folders of data/"
                                    : "'" + parent + "' is no folder of data/",
                     fitting.empty() ? Nearly(parent, Folders())
                                     : "put it into " + ListOf(fitting) + "/"));
    }
    LAMINA_ASSIGN(std::string text, ReadAll(path, kMaxDataFile));
    LAMINA_ASSIGN(const DataFile file, ParseYaml(path, std::move(text)));
    LAMINA_TRY(CheckContent(file, parent));
  }
  if (!any) {
    return Fail(UsageError("⟨rules⟩: '" + folder + "' holds no data file",
                           "give a folder laid out like data/: " +
                               ListOf(Folders()) + ", with files in .yaml"));
  }
  return {};
}

}  // namespace lamina::rules
