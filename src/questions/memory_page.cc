// SPDX-License-Identifier: Apache-2.0
#include "questions/memory_page.h"

#include "page/memory.h"

namespace lamina::questions {

Answer MemoryAnswer(Document document, engine::Recordings recordings,
                    const Asker& asker) {
  Answer answer(std::move(document));
  if (recordings.empty()) return answer;
  answer.page = [recordings = std::make_shared<const engine::Recordings>(
                     std::move(recordings)),
                 &asker](Document& shown, const PageRequest& request) {
    page::MemoryPageOptions options;
    options.output = request.output;
    options.threads = asker.ThreadCount();
    if (!request.words.ReadsStdin()) options.words = request.words.Words();
    options.redact = request.redact;
    std::vector<const memory::Recording*> all;
    for (const memory::Recording& one : *recordings) all.push_back(&one);
    return page::WriteMemoryPage(all, shown, options);
  };
  return answer;
}

}  // namespace lamina::questions
