// SPDX-License-Identifier: Apache-2.0
//
// Data files as trees of nodes with their places, the compact form in which the
// program holds them, and the files of --rules held against the layout of
// data/.

#include "rules/document.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"
#include "base/packed.h"
#include "base/status.h"
#include "rules/embedded.h"

namespace lamina::rules {

// A folder of --rules is laid out like data/. What stands elsewhere, or under
// another name, would never be read: that is an error, not a silence.

// Holds the files of a folder against those of data/: they stand in folders of
// the same names, and each begins with keys that files of its folder have, of
// the same form, and names a table that they know. Errors: the first file that
// does not, with the nearest right name; a folder without any data file.
Status CheckOverlay(const std::string& folder);

namespace {

constexpr size_t kMaxDataFile = size_t{16} << 20;
constexpr int kMaxYamlDepth = 64;
// Aliases (*name) repeat what stands once in the file; a few lines of them can
// stand for more than any memory.
constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Of a message that quotes the input.
constexpr size_t kMaxMessage = 1000;

std::string_view LineOf(std::string_view text, uint32_t line) {
  for (uint32_t i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string Excerpt(std::string_view text, uint32_t line, uint32_t column) {
  const std::string_view source = LineOf(text, line);
  if (source.empty()) return {};
  const size_t at = std::min<size_t>(column - 1, source.size());
  // A window of the line, so that long lines stay readable.
  const size_t begin = at > 80 ? at - 80 : 0;
  const std::string before = EscapeTerminal(source.substr(begin, at - begin));
  const std::string after = EscapeTerminal(
      source.substr(at, std::min<size_t>(source.size() - at, 80)));
  return "  " + before + after + "\n  " +
         std::string(DisplayWidth(before), ' ') + "^";
}

// Nodes of yaml-cpp to ours, aliases written out.
class Converter {
 public:
  explicit Converter(const DataFile& file) : file_(file) {}
  Result<Node> Run(const YAML::Node& from, int depth);

 private:
  Status Fill(const YAML::Node& from, int depth, Node& node);

  const DataFile& file_;
  size_t nodes_ = 0;
  size_t text_bytes_ = 0;
};

Result<Node> Converter::Run(const YAML::Node& from, int depth) {
  Node node;
  if (from.Mark().line >= 0) {
    node.line = static_cast<uint32_t>(from.Mark().line) + 1;
    node.column = static_cast<uint32_t>(from.Mark().column) + 1;
  }
  if (depth > kMaxYamlDepth)
    return Fail(file_.ErrorAt(node, "nested too deeply"));
  if (from.IsScalar()) text_bytes_ += from.Scalar().size();
  if (++nodes_ > kMaxNodes || text_bytes_ > kMaxTextBytes) {
    return Fail(file_.ErrorAt(node, "too much, with every alias written out",
                              "write fewer aliases (*name)"));
  }
  LAMINA_TRY(Fill(from, depth, node));
  return node;
}

Status Converter::Fill(const YAML::Node& from, int depth, Node& node) {
  switch (from.Type()) {
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
    case YAML::NodeType::Scalar:
      node.kind = Node::Kind::kScalar;
      node.text = from.Scalar();
      break;
    case YAML::NodeType::Sequence:
      node.kind = Node::Kind::kList;
      for (const YAML::Node& item : from) {
        LAMINA_ASSIGN(Node child, Run(item, depth + 1));
        node.items.push_back(std::move(child));
      }
      break;
    case YAML::NodeType::Map: {
      node.kind = Node::Kind::kMap;
      std::unordered_set<std::string> seen;
      for (const auto& member : from) {
        LAMINA_ASSIGN(Node key, Run(member.first, depth + 1));
        LAMINA_ASSIGN(Node value, Run(member.second, depth + 1));
        if (!seen.insert(key.text).second) {
          return Fail(
              file_.ErrorAt(key, "the key '" + key.text + "' occurs twice"));
        }
        node.keys.push_back(std::move(key));
        node.items.push_back(std::move(value));
      }
      break;
    }
  }
  return {};
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

Error DataFile::ErrorAt(const Node& node, const std::string& what,
                        std::string hint) const {
  Error error = InputError(name, Shorten(what, kMaxMessage), std::move(hint));
  error.line = node.line;
  error.column = node.column;
  if (!text.empty() && node.line > 0)
    error.excerpt = Excerpt(text, node.line, node.column);
  return error;
}

Result<DataFile> ParseYaml(std::string name, std::string text) {
  DataFile file;
  file.name = std::move(name);
  file.text = std::move(text);
  // yaml-cpp throws; nothing of that leaves this function.
  try {
    const YAML::Node root = YAML::Load(file.text);
    LAMINA_ASSIGN(file.root, Converter(file).Run(root, 0));
  } catch (const YAML::Exception& e) {
    Node place;
    if (e.mark.line >= 0) {
      place.line = static_cast<uint32_t>(e.mark.line) + 1;
      place.column = static_cast<uint32_t>(e.mark.column) + 1;
    }
    return Fail(file.ErrorAt(place, "not valid YAML: " + e.msg));
  } catch (const std::exception& e) {
    return Fail(
        InputError(file.name, "not valid YAML: " + std::string(e.what())));
  }
  return file;
}

std::string_view Nearest(std::string_view word,
                         std::span<const std::string_view> names) {
  constexpr size_t kMostBytes = 100;
  if (word.size() > kMostBytes) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

Result<Members> Members::Of(const DataFile& file, const Node& node,
                            std::span<const std::string_view> allowed) {
  if (!node.IsMap())
    return Fail(file.ErrorAt(node, "expected keys and values"));
  for (const Node& key : node.keys) {
    if (std::find(allowed.begin(), allowed.end(), key.text) != allowed.end())
      continue;
    const std::string_view near = Nearest(key.text, allowed);
    std::string hint;
    if (!near.empty()) hint = "did you mean '" + std::string(near) + "'?";
    return Fail(file.ErrorAt(key, "unknown key '" + key.text + "'", hint));
  }
  return Members(file, node);
}

Result<std::string> Members::Text(std::string_view key) const {
  const Node* value = node_->Find(key);
  if (value == nullptr) {
    return Fail(file_->ErrorAt(
        *node_, "the key '" + std::string(key) + "' is missing"));
  }
  if (!value->IsScalar()) return Fail(file_->ErrorAt(*value, "expected text"));
  return value->text;
}

std::string Members::TextOr(std::string_view key,
                            std::string_view missing) const {
  const Node* value = node_->Find(key);
  return value != nullptr && value->IsScalar() ? value->text
                                               : std::string(missing);
}

Result<double> Members::Number(std::string_view key) const {
  LAMINA_ASSIGN(const std::string text, Text(key));
  const auto number = ParseDouble(text);
  if (!number) {
    return Fail(file_->ErrorAt(*node_->Find(key),
                               "expected a number, found '" + text + "'"));
  }
  return *number;
}

Result<std::optional<double>> Members::OptionalNumber(
    std::string_view key) const {
  if (node_->Find(key) == nullptr) return std::optional<double>();
  LAMINA_ASSIGN(const double number, Number(key));
  return std::optional<double>(number);
}

Result<bool> Members::BoolOr(std::string_view key, bool missing) const {
  const Node* value = node_->Find(key);
  if (value == nullptr) return missing;
  if (value->text == "true") return true;
  if (value->text == "false") return false;
  return Fail(file_->ErrorAt(*value, "expected true or false"));
}

Result<std::vector<std::string>> Members::Texts(std::string_view key) const {
  std::vector<std::string> out;
  const Node* value = node_->Find(key);
  if (value == nullptr || value->kind == Node::Kind::kNull) return out;
  if (value->IsScalar()) {
    out.push_back(value->text);
    return out;
  }
  if (!value->IsList()) return Fail(file_->ErrorAt(*value, "expected a list"));
  for (const Node& item : value->items) {
    if (!item.IsScalar()) return Fail(file_->ErrorAt(item, "expected text"));
    out.push_back(item.text);
  }
  return out;
}

Result<std::vector<std::shared_ptr<const DataFile>>> DataSet::Load(
    std::string_view folder) const {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string>> overlays;  // name, path
  if (!overlay_.empty()) {
    std::error_code error;
    if (!fs::is_directory(overlay_, error)) {
      return Fail(UsageError("⟨rules⟩: '" + overlay_ + "' is no directory",
                             "give a folder laid out like data/"));
    }
    LAMINA_TRY(CheckOverlay(overlay_));
    const fs::path directory = fs::path(overlay_) / folder;
    if (fs::is_directory(directory, error)) {
      for (const auto& entry : fs::directory_iterator(directory, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".yaml"))
          overlays.emplace_back(name, entry.path().string());
      }
      std::sort(overlays.begin(), overlays.end());
    }
  }
  std::vector<std::shared_ptr<const DataFile>> files;
  const std::string prefix = std::string(folder) + "/";
  // A user's file comes first: in ordered tables its rules win.
  for (const auto& [name, path] : overlays) {
    LAMINA_ASSIGN(std::string text, ReadAll(path, kMaxDataFile));
    LAMINA_ASSIGN(DataFile file, ParseYaml(path, std::move(text)));
    files.push_back(std::make_shared<const DataFile>(std::move(file)));
  }
  for (const std::string& name : EmbeddedNames()) {
    if (!name.starts_with(prefix)) continue;
    const std::string file_name = name.substr(prefix.size());
    const bool replaced = std::any_of(
        overlays.begin(), overlays.end(),
        [&](const auto& overlay) { return overlay.first == file_name; });
    if (!replaced) files.push_back(LoadEmbedded(name));
  }
  return files;
}

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

namespace {

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
