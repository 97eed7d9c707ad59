// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "questions/description.h"

namespace lamina::mcp {

// What `lamina mcp` is begun with.
struct Front {
  std::vector<std::string> allow;
  std::vector<std::string> captures;  // of the graphs of all traces
  std::string allow_write;
  std::vector<std::string> tools;
  std::vector<std::string> calls;
  std::string text = "plain";
  double memory_gb = 4;
  double time_limit_s = 60;
  double patience_s = 20;
  int64_t max_tokens = 6000;
  int threads = 1;

  // `thread_count`: where the option --threads goes; 0 is all cores.
  void Describe(questions::Description& args, int& thread_count);
  // Answers until its input ends; the exit status.
  Result<int> Run() const;
};

}  // namespace lamina::mcp
