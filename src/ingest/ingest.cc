// SPDX-License-Identifier: Apache-2.0
#include "ingest/ingest.h"

#include <vector>

#include "ingest/common/database.h"

#define LAMINA_FORMAT(name)        \
  namespace lamina::ingest::name { \
  FormatInfo Format();             \
  }
#include "formats.inc"
#undef LAMINA_FORMAT

namespace lamina::ingest {

std::span<const FormatInfo> Formats() {
  static const std::vector<FormatInfo> formats = {
#define LAMINA_FORMAT(name) name::Format(),
#include "formats.inc"
#undef LAMINA_FORMAT
  };
  return formats;
}

Result<trace::Trace> ReadTrace(const std::string& path,
                               const ReadOptions& options) {
  Input input(path);
  LAMINA_TRY(input.Look());
  if (input.piped() && input.head().starts_with(kSqliteMagic)) {
    return Fail(InputError(path,
                           "this is a database, which cannot be read from a "
                           "pipe",
                           "give the database file itself"));
  }
  const FormatInfo* best = nullptr;
  int best_score = 0;
  for (const FormatInfo& format : Formats()) {
    const int score = format.sniff(input);
    if (score > best_score) {
      best = &format;
      best_score = score;
    }
  }
  if (best == nullptr) {
    if (input.directory()) {
      return Fail(InputError(path, "is a directory, expected a trace file",
                             "name one file inside it"));
    }
    Error error =
        InputErrorAt(path, 0, "is no trace that lamina knows",
                     "give the file that the profiler wrote (lamina list "
                     "formats)");
    const size_t first = input.head().find_first_not_of(" \t\r\n");
    if (first != std::string::npos && input.head()[first] == '<')
      error.hint = "this looks like HTML: download the trace file itself";
    return Fail(error);
  }
  LAMINA_ASSIGN(trace::Trace trace, best->read(input, options));
  if (!best->has_torch_options) trace.info.format_lacks = best->lacks;
  return trace;
}

}  // namespace lamina::ingest
