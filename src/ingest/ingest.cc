// SPDX-License-Identifier: Apache-2.0
#include "ingest/ingest.h"

#include <vector>

#include "base/escape.h"
#include "ingest/common/database.h"
#include "ingest/common/input.h"
#include "ingest/other_documents.h"

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

namespace {

// A row for each file of an archive that is not read.
void NoteOthers(const std::vector<OtherMember>& others,
                trace::Diagnostics& diagnostics) {
  constexpr size_t kMostRows = 20;
  uint64_t bytes = 0;
  for (size_t i = 0; i < others.size(); ++i) {
    const OtherMember& other = others[i];
    if (i >= kMostRows) {
      bytes += other.bytes;
      continue;
    }
    diagnostics.Add(
        other.document ? trace::Effect::kInfo : trace::Effect::kLost,
        "archive_member_" + std::to_string(i + 2),
        "The archive also holds '" + Shorten(other.name, 200) +
            "', which is not read" +
            (other.document ? "." : ": unpack it and give it by itself."),
        trace::Diagnostics::kNoOffset, 1, other.bytes);
  }
  if (others.size() > kMostRows) {
    diagnostics.Add(trace::Effect::kLost, "archive_members",
                    "The archive holds more files, which are not read: unpack "
                    "it and give them one by one.",
                    trace::Diagnostics::kNoOffset, others.size() - kMostRows,
                    bytes);
  }
}

}  // namespace

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
  if (auto other = RefuseOther(input)) return Fail(*std::move(other));
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
        InputErrorAt(path, 0, "is not a trace that lamina reads",
                     "give the file that the profiler wrote (⟨lamina⟩ list "
                     "formats)");
    const size_t first = input.head().find_first_not_of(" \t\r\n");
    const std::string_view head = input.head();
    if (head.find("openxmlformats") != std::string_view::npos) {
      error.what = "is a workbook, not a trace";
      error.hint =
          "give the trace itself, or a report of it in JSON (report TRACE "
          "⟨output⟩ "
          "x.json)";
    } else if (first != std::string::npos && head[first] == '<')
      error.hint = "this looks like HTML: download the trace file itself";
    return Fail(error);
  }
  auto read = best->read(input, options);
  ForgetUnpackedCopy();
  if (options.Stopped()) return Fail(CancelledError());
  LAMINA_ASSIGN(trace::Trace trace, std::move(read));
  NoteOthers(input.others(), trace.diagnostics);
  if (!best->has_torch_options && trace.info.format_lacks.empty())
    trace.info.format_lacks = best->lacks;
  return trace;
}

}  // namespace lamina::ingest
