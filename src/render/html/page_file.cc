// SPDX-License-Identifier: Apache-2.0
#include "render/html/page_file.h"

namespace lamina::render {

Status WritePageFile(Page& page, const std::string& output, int threads) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  LAMINA_TRY(WritePage(page, *sink, threads));
  return sink->Close();
}

}  // namespace lamina::render
