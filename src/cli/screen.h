// SPDX-License-Identifier: Apache-2.0
//
// The first screen of a report: the answer over a trace on a terminal.
#pragma once

#include <string>

#include "findings/answer.h"

namespace lamina::cli {

struct ScreenOptions {
  int width = 100;          // columns
  bool color = false;       // ANSI styles
  bool true_color = false;  // 24 bit; else 16 colours
  bool ascii = false;       // the terminal shows no UTF-8
  std::string input;        // as it was named, for the command of the last line
};

inline constexpr size_t kScreenLines = 20;

// At most kScreenLines lines, none wider than the terminal.
std::string FormatScreen(const findings::TraceAnswer& answer,
                         const ScreenOptions& options);

// What the environment says of stdout.
ScreenOptions ScreenOfTerminal();

}  // namespace lamina::cli
