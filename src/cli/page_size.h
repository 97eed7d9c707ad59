// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cli/command.h"

namespace lamina::cli {

// The option --html-max-mb.
struct PageSize {
  double max_mb = 25;

  void AddTo(questions::Description& args) {
    args.Add("--html-max-mb", max_mb,
             "Size above which a page leaves out detail, in MB")
        .Within(0.001, 2000.0)
        .ShowDefault();
  }
  uint64_t max_bytes() const { return static_cast<uint64_t>(max_mb * 1e6); }
};

}  // namespace lamina::cli
