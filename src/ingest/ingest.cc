// SPDX-License-Identifier: Apache-2.0
#include "ingest/ingest.h"

#include <filesystem>
#include <vector>

#include "base/byte_source.h"

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
  Probe probe;
  probe.path = path;
  std::error_code ignored;
  probe.directory = std::filesystem::is_directory(path, ignored);
  // Standard input cannot be read twice; it holds the format of most traces.
  const bool piped = path == "-";
  if (!probe.directory && !piped) {
    LAMINA_ASSIGN(probe.head, ReadHead(path, kHeadBytes));
  }
  const FormatInfo* best = nullptr;
  int best_score = 0;
  for (const FormatInfo& format : Formats()) {
    const int score =
        piped ? (format.name == "kineto" ? 1 : 0) : format.sniff(probe);
    if (score > best_score) {
      best = &format;
      best_score = score;
    }
  }
  if (best == nullptr) {
    if (probe.directory) {
      return Fail(InputError(path, "is a directory, expected a trace file",
                             "name one file inside it"));
    }
    Error error =
        InputErrorAt(path, 0, "is no trace that lamina knows",
                     "give the file that the profiler wrote (lamina list "
                     "formats)");
    const size_t first = probe.head.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && probe.head[first] == '<')
      error.hint = "this looks like HTML: download the trace file itself";
    return Fail(error);
  }
  LAMINA_ASSIGN(trace::Trace trace, best->read(path, options));
  trace.info.format_lacks = best->lacks;
  return trace;
}

}  // namespace lamina::ingest
