// SPDX-License-Identifier: Apache-2.0
//
// Partial results in a folder, one per trace. A run that was killed goes on
// where it stopped; many runs, on many machines, may fill one folder together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/load.h"
#include "dist/partial.h"

namespace lamina::dist {

class PartialStore {
 public:
  // Makes the folder. `rules_dir` as in LoadOptions: partials that other rules
  // made do not count.
  static Result<PartialStore> Open(const std::string& folder,
                                   const std::string& rules_dir);

  // The summaries of a trace: from the folder, unless the trace or the rules
  // have changed since or the partial is damaged; else made and kept there.
  // Traces that cannot be read are tried again each time.
  std::vector<RankSummary> Load(const std::string& path, uint64_t file_number,
                                const LoadOptions& options) const;

  // Where the partial of a trace lies.
  std::string PathOf(const std::string& path) const;

 private:
  std::string folder_;
  uint64_t rules_ = 0;  // fingerprint
};

// Files of share `share` (from 0) of `shares`: the largest first, dealt out to
// and fro, so that shares are about equal in bytes.
std::vector<size_t> ShareOfFiles(const std::vector<std::string>& files,
                                 size_t share, size_t shares);

}  // namespace lamina::dist
