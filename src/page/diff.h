// SPDX-License-Identifier: Apache-2.0
//
// The page of a comparison: its tables, and the events of both traces on one
// axis of time, each with the rows of the tables that count it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "compare/diff/diff.h"

namespace lamina::render {
struct Secrets;
}

namespace lamina::page {

struct DiffPageOptions {
  std::string output = "-";
  int threads = 1;
  // Detail is left out of a page that would be larger, in a fixed order.
  uint64_t max_bytes = uint64_t{25} << 20;
  std::vector<std::string> words;  // of the command line; empty: not known
  const render::Secrets* redact = nullptr;  // what the page must not show
};

// `members` are those of the comparison whose tables `document` holds; what the
// page adds to it is in it afterwards.
Status WriteDiffPage(const analysis::Context& a, const analysis::Context& b,
                     const analysis::layers::Rules& rules,
                     const analysis::diff::Members& members, Document& document,
                     const DiffPageOptions& options);

}  // namespace lamina::page
