// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "questions/description.h"

namespace lamina::serve {

// What `lamina serve` is begun with.
struct Front {
  std::vector<std::string> traces;
  int64_t port = 0;
  std::string unix_socket;
  std::vector<std::string> hosts;
  std::string token_file;
  int64_t sessions = 16;
  double memory_gb = 4;
  double time_limit_s = 10;
  double page_mb = 100;
  int64_t page_events = 2'000'000;
  // Findings of a smaller trace take no time that anyone would wait for.
  double late_findings_mb = 32;
  std::vector<std::string> compiled, captures;
  bool no_mcp = false;
  bool follow_links = false;
  std::string worker_page;  // this process is a worker
  std::vector<std::string> worker_files;
  int threads = 1;

  // `thread_count`: where the option --threads goes; 0 is all cores.
  void Describe(questions::Description& args, int& thread_count);
  // Serves until it is ended; the exit status.
  Result<int> Run() const;
};

}  // namespace lamina::serve
