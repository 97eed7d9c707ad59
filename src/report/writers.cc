// SPDX-License-Identifier: Apache-2.0
#include "report/writers.h"

#include <vector>

// One `WriterInfo Info()` per folder, declared here and nowhere else.
#define LAMINA_WRITER(name)        \
  namespace lamina::report::name { \
  WriterInfo Info();               \
  }
#include "writers.inc"
#undef LAMINA_WRITER

namespace lamina::report {

std::span<const WriterInfo> Writers() {
  static const std::vector<WriterInfo> writers = {
#define LAMINA_WRITER(name) name::Info(),
#include "writers.inc"
#undef LAMINA_WRITER
  };
  return writers;
}

const WriterInfo* FindWriter(std::string_view name) {
  for (const WriterInfo& writer : Writers()) {
    if (writer.name == name) return &writer;
  }
  return nullptr;
}

}  // namespace lamina::report
