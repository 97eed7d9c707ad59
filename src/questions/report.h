// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lamina/engine.h"
#include "questions/answer.h"
#include "questions/asker.h"

namespace lamina::questions {

struct ReportParams {
  std::string trace;
  ReportOptions report;
  double short_kernel_us = 10;
  double micro_idle_us = 0;
  std::string roofline;
  size_t html_max_events = 2'000'000;
  int64_t rank = -1;  // layout hta: the first
  std::vector<std::string> compiled;
  // Without what to change next, which takes longest: a note says that it
  // follows.
  bool findings_later = false;
  bool full = false;  // tables and sentences on a terminal, too
};

Result<Answer> AskReport(const ReportParams& options, Asker& asker);

}  // namespace lamina::questions
