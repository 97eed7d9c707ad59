// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary text through the reader of transform logs. What was read is written
// as summary lines and read again.
#include "base/status.h"
#include "graph/passes/log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto log = graph::ParseTransformLog("fuzz", text);
  if (!log) return 0;
  std::string lines;
  for (const graph::LogEntry& entry : log->entries)
    lines += graph::SummaryLine(entry, {1, 2, 3}) + "\n";
  const auto again = graph::ParseTransformLog("again", lines);
  LAMINA_CHECK(again.has_value());
  LAMINA_CHECK(again->entries.size() == log->entries.size());
  for (size_t i = 0; i < log->entries.size(); ++i) {
    const graph::LogEntry& written = log->entries[i];
    const graph::LogEntry& read = again->entries[i];
    LAMINA_CHECK(
        read.stage == written.stage && read.transform == written.transform &&
        read.occurrence == written.occurrence &&
        read.status == written.status && read.matches == written.matches);
  }
  return 0;
}
