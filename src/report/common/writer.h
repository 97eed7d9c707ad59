// SPDX-License-Identifier: Apache-2.0
//
// A writer turns a Document into bytes. Each lives in a folder of its own and
// is listed by the build; a writer knows tables and notes, never traces.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lamina/result.h"

namespace lamina::render {
struct Secrets;
}

namespace lamina::report {

struct WriteOptions {
  std::string output = "-";  // "-" or a path
  int width = 100;           // terminal columns
  bool color = false;        // ANSI styles
  size_t top = 0;  // rows per table on a terminal; 0: the writer's choice
  int threads = 1;
  // The command line that makes the document again, behind "lamina"; empty:
  // not known.
  std::vector<std::string> words;
  // What stands before all in Markdown, as Markdown; in JSON as "answer", as a
  // JSON value. Empty: none.
  std::string answer;
  // What a page must not show; other formats have all.
  const render::Secrets* redact = nullptr;
};

struct WriterInfo {
  std::string_view name;  // as given to --format
  std::string_view doc;
  Status (*write)(const Document& document, const WriteOptions& options);
};

}  // namespace lamina::report
