// SPDX-License-Identifier: Apache-2.0
//
// Any document as a page: its notes, its tables, and the views that need no
// events. The page of a report holds events too and is written by the engine.
#include "render/html/page.h"
#include "report/common/writer.h"

namespace lamina::report::html {
namespace {

Status Write(const Document& document, const WriteOptions& options) {
  render::Page page(document);
  if (!options.words.empty()) {
    page.commands = {{document.command,
                      options.words,
                      render::TableNames(document.result),
                      {}}};
  }
  page.redact = options.redact;
  return render::WritePageFile(page, options.output, options.threads);
}

}  // namespace

WriterInfo Info() {
  return {"html", "one page to look at, with everything in one file", &Write};
}

}  // namespace lamina::report::html
