// SPDX-License-Identifier: Apache-2.0
//
// Paths in texts: of POSIX and Windows, with blanks in them, in frames of
// Python ("/home/a/model.py(12): forward"), in raw JSON. A module path
// ("model/layers.0") and a scope ("jit(f)/mlp/dot") are no file paths, even
// with a slash in front.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::render {

// Bytes of words: letters, digits, and what is no ASCII.
constexpr bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

// Whether a list, " a b c ", has a word.
inline bool IsOneOf(std::string_view list, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  const std::string between = " " + std::string(word) + " ";
  return list.find(between) != std::string_view::npos;
}

struct FoundPath {
  size_t end = 0;         // behind its last byte
  std::string canonical;  // with one slash between names: "C:/Users/a"
  // By its root, by a home in it or by its extension; others are paths when
  // their first folder is that of one that is certain.
  bool certain = false;
};

// The path that begins at `pos` of the text, if one does.
std::optional<FoundPath> PathAt(std::string_view text, size_t pos);

// "/acme" of "/acme/run/model.py"; empty for other forms.
std::string_view RootOf(std::string_view canonical);

// Names of accounts that a path says: /home/NAME, C:/Users/NAME, ~NAME and
// torchinductor_NAME.
std::vector<std::string_view> UsersOf(std::string_view canonical);

// Where the part begins that everybody knows: all of "/usr/lib/libc.so", and
// of ".../site-packages/torch/x.py" what comes behind the folder of packages.
// The size of the path when there is none.
size_t PublicPart(std::string_view canonical);

// ".json.gz" of "a/trace.json.gz"; empty when the extension is not a known one.
std::string_view ExtensionOf(std::string_view path);

}  // namespace lamina::render
