// SPDX-License-Identifier: Apache-2.0
//
// The build tool reads data files only; it holds none.
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
