// SPDX-License-Identifier: Apache-2.0
//
// The build tool reads data files only; it holds none.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/packed.h"
#include "rules/document.h"
#include "rules/embedded.h"

namespace lamina::rules {

const std::vector<std::string>& EmbeddedNames() {
  static const std::vector<std::string> none;
  return none;
}

std::shared_ptr<const DataFile> LoadEmbedded(std::string_view) {
  return std::make_shared<DataFile>();
}

std::string_view EmbeddedText(std::string_view) { return {}; }

}  // namespace lamina::rules

// Build tool: packs the files of data/ for embedding, and the programs of the
// pages. An error in a data file stops the build with its place.
//   lamina_pack_data DIR OUT FILE...    (files relative to DIR)

int main(int argc, char** argv) {
  using namespace lamina;
  if (argc < 3) {
    std::fprintf(stderr, "usage: lamina_pack_data DIR OUT FILE...\n");
    return 2;
  }
  const std::filesystem::path directory(argv[1]);
  std::vector<std::string> names(argv + 3, argv + argc);
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& name : names) {
    const std::string path = (directory / name).string();
    auto text = ReadAll(path, size_t{64} << 20);
    if (!text) {
      std::fprintf(stderr, "%s\n", text.error().ToString().c_str());
      return 1;
    }
    std::string content;
    if (name.ends_with(".yaml")) {
      const auto file = rules::ParseYaml(path, std::move(*text));
      if (!file) {
        std::fprintf(stderr, "%s\n", file.error().ToString().c_str());
        return 1;
      }
      rules::AppendNode(content, file->root);
    } else {
      content = std::move(*text);
    }
    files.emplace_back(name, std::move(content));
  }
  if (const Status written = WriteFile(argv[2], PackFiles(files)); !written) {
    std::fprintf(stderr, "%s\n", written.error().ToString().c_str());
    return 1;
  }
  return 0;
}
