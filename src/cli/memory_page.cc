// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_page.h"

#include "cli/host.h"
#include "page/memory.h"

namespace lamina::cli {

Status WriteMemory(Document& document, const engine::Recordings& recordings,
                   const Common& common) {
  if (common.format != "html" || recordings.empty())
    return Write(document, common);
  LAMINA_TRY(engine::KeepOnly(document.result, common.only));
  page::MemoryPageOptions options;
  options.output = common.output;
  options.threads = common.ThreadCount();
  if (!common.given.ReadsStdin()) options.words = common.given.Words();
  const auto secrets = common.SecretsOf(document.inputs);
  options.redact = secrets.get();
  std::vector<const memory::Recording*> shown;
  for (const memory::Recording& one : recordings) shown.push_back(&one);
  LAMINA_TRY(page::WriteMemoryPage(shown, document, options));
  if (common.host != nullptr) common.host->take(std::move(document));
  return {};
}

}  // namespace lamina::cli
