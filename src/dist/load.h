// SPDX-License-Identifier: Apache-2.0
//
// A trace file to the summary of its rank.
#pragma once

#include <memory>
#include <string>

#include "dist/rank_summary.h"
#include "rules/catalog.h"

namespace lamina::dist {

struct LoadOptions {
  int threads = 1;
  std::string rules_dir;
  std::shared_ptr<const rules::Catalog> catalog;
};

// A file that cannot be used gives a summary with `error` set. The rank is the
// one that the trace says, else that of the file name, else the number of the
// file.
RankSummary LoadRank(const std::string& path, uint64_t file_number,
                     const LoadOptions& options);

}  // namespace lamina::dist
