// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"

namespace lamina::serve {

struct WorkerOptions {
  std::string page;                 // the file to write
  std::vector<std::string> traces;  // one, or two that are compared
  // The numbers of open files, one for each trace: what is read, whatever
  // stands under the names by now. Empty: the names are opened.
  std::vector<int> files;
  std::chrono::milliseconds time_limit{10'000};  // of a query
  double page_mb = 100;                          // at most, of the page
  int64_t page_events = 2'000'000;    // above, it holds some events alone
  std::vector<std::string> compiled;  // code of a compiler
  std::vector<std::string> captures;  // of replayed graphs
  int threads = 1;
  // Of files above this the page is there before its findings.
  uint64_t late_findings_bytes = UINT64_MAX;
};

// The process that has a trace open for `lamina serve`: opens it, writes its
// page, says what it is, and answers queries until its input ends; see
// serve/worker.h. Does not return.
Result<int> RunServeWorker(const WorkerOptions& options);

}  // namespace lamina::serve
