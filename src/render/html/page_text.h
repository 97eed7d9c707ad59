// SPDX-License-Identifier: Apache-2.0
//
// The one way of texts into a page: as they are, or redacted. A page that is
// redacted learns all of its texts first.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "render/html/page.h"
#include "render/redact/redactor.h"

namespace lamina::render {

class PageText {
 public:
  // Of a page with all its tables, strings and facts.
  explicit PageText(const Page& page);

  std::string operator()(std::string_view text);
  std::string File(const std::string& path);
  // A word of a command line, which may be a file.
  std::string Argument(const std::string& word);
  // A JSON value with its texts replaced; keys, and what the engine itself
  // writes, stay.
  std::string Json(std::string_view json);

  bool redacted() const { return redactor_.has_value(); }
  // What the page says about names in it, when all texts have passed.
  std::string Privacy() const;

 private:
  std::optional<Redactor> redactor_;
};

}  // namespace lamina::render
