// SPDX-License-Identifier: Apache-2.0
//
// The library in three calls: open a trace and report on it, look at the
// tables, write them.
//
//   auto document = lamina::MakeReport("trace.json.gz", {});
//   if (!document) return Say(document.error().ToString());
//   const lamina::Table* kernels = document->result.Find("kernels");
//   lamina::WriteDocument(*document, "csv", "tables");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/result.h"
#include "lamina/status.h"

namespace lamina {

// What `lamina report` does; see its --help.
struct ReportOptions {
  std::string layout = "native";  // or "tracelens", "tracelens-inference"
  std::vector<std::string> only;  // names of tables; empty: all
  bool recompute = false;         // split by activation recomputation
  bool python_stacks = false;     // Python frames are in the call tree
  // Launches are joined to device work by correlation ("auto") or by ac2g flows
  // only ("flow"). Empty: by correlation in lamina's own tables; by flows in
  // the layouts of TraceLens, as it does, where the trace has any.
  std::string link;
  bool overlaps = false;             // TraceLens's sheets *_kl_overlap, too
  int64_t short_kernel_ns = 10'000;  // kernels below this are short
  // Idle time is split into gaps below this and the others; empty: not split.
  std::optional<int64_t> micro_idle_ns;
  // Tokens of one step on one device, for tokens per second; empty: what the
  // shapes of embeddings show.
  std::optional<int64_t> tokens;
  // Name or file; empty: what the trace says. The layouts of TraceLens have
  // columns of rooflines when one is named.
  std::string device;
  int threads = 0;        // 0 or less: all cores
  std::string rules_dir;  // data files that extend the built-in ones
  // Traces, or folders of them, in which the replayed graphs were captured.
  std::vector<std::string> captures;

  friend bool operator==(const ReportOptions&, const ReportOptions&) = default;
};

// Reads a trace of any known format ("-": standard input) and reports on it.
// Errors: kUsage for an unknown layout, table or device, kInput for a file
// (trace, capture, rules) that cannot be read or holds nothing usable. The
// result does not depend on the number of threads.
LAMINA_API Result<Document> MakeReport(const std::string& trace,
                                       const ReportOptions& options);

// Writes a document as "table", "csv", "json", "markdown", "xlsx" or "html" to
// a file. "-" is standard output; csv to a name that ends in neither .csv nor
// .csv.gz makes a directory with one file per table. A file of this name is
// replaced when all is written. Errors: kUsage for an unknown format and for
// xlsx to standard output, kInput for a file that cannot be written.
LAMINA_API Status WriteDocument(const Document& document,
                                std::string_view format,
                                const std::string& output, int threads = 0);

}  // namespace lamina
