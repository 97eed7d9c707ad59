// SPDX-License-Identifier: Apache-2.0
//
// Other programs as children, with a time limit and without a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina {

struct ProcessResult {
  int status = 0;          // exit status; 128 + N after signal N
  bool timed_out = false;  // it was ended at the limit
  std::string output;      // its stdout and stderr, at most 64 KiB
};

// Path of a program on PATH; empty if there is none.
std::string FindProgram(std::string_view name);

// Runs `arguments[0]` (a path) with nothing on stdin and waits for its end, at
// most `limit_s` seconds; then it is killed with the children of its group.
// Errors: it cannot be started.
Result<ProcessResult> RunProcess(const std::vector<std::string>& arguments,
                                 double limit_s);

}  // namespace lamina
