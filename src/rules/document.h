// SPDX-License-Identifier: Apache-2.0
//
// Data files as trees of nodes that know their place, so that an error in a
// user's rule names file, line and column and shows the line with a caret.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace lamina::rules {

class Node {
 public:
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  uint32_t line = 0;        // 1-based
  uint32_t column = 0;      // 1-based
  std::string text;         // kScalar
  std::vector<Node> items;  // kList; kMap: values
  std::vector<Node> keys;   // kMap: keys, parallel to items

  bool IsMap() const { return kind == Kind::kMap; }
  bool IsList() const { return kind == Kind::kList; }
  bool IsScalar() const { return kind == Kind::kScalar; }
  // The value of a key of a map; null if absent.
  const Node* Find(std::string_view key) const;
};

// A parsed file. `name` is what messages show: a path, or "builtin:kernels/
// types.yaml" for embedded files.
struct DataFile {
  std::string name;
  std::string text;  // empty for embedded files
  Node root;

  // An error at a node, with the line and a caret when the text is known.
  Error ErrorAt(const Node& node, const std::string& what,
                std::string hint = {}) const;
};

Result<DataFile> ParseYaml(std::string name, std::string text);

// Reading of typed members; each says what it expected where.
class Members {
 public:
  // `allowed` lists the keys the map may have; another one is an error that
  // names the nearest allowed key.
  static Result<Members> Of(const DataFile& file, const Node& node,
                            std::span<const std::string_view> allowed);

  Result<std::string> Text(std::string_view key) const;
  std::string TextOr(std::string_view key, std::string_view missing) const;
  Result<double> Number(std::string_view key) const;
  Result<std::optional<double>> OptionalNumber(std::string_view key) const;
  Result<bool> BoolOr(std::string_view key, bool missing) const;
  // A list of scalars, or one scalar as a list of one; empty when absent.
  Result<std::vector<std::string>> Texts(std::string_view key) const;
  const Node* Find(std::string_view key) const { return node_->Find(key); }
  Error ErrorAt(const std::string& what) const {
    return file_->ErrorAt(*node_, what);
  }

 private:
  Members(const DataFile& file, const Node& node)
      : file_(&file), node_(&node) {}
  const DataFile* file_;
  const Node* node_;
};

// The nearest of `names` to `word` by edit distance, when near enough to be a
// likely typing error; empty otherwise.
std::string_view Nearest(std::string_view word,
                         std::span<const std::string_view> names);

// --- the data of the program ---

// All data files of a folder of data/ ("kernels"): the embedded ones, then
// those of the overlay directory, in order of name. An overlay file with the
// name of an embedded one replaces it.
class DataSet {
 public:
  // `overlay` is the directory of --rules, or empty.
  explicit DataSet(std::string overlay = {}) : overlay_(std::move(overlay)) {}

  Result<std::vector<std::shared_ptr<const DataFile>>> Load(
      std::string_view folder) const;
  const std::string& overlay() const { return overlay_; }

 private:
  std::string overlay_;
};

}  // namespace lamina::rules
