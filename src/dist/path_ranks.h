// SPDX-License-Identifier: Apache-2.0
//
// Several ranks opened together, on one clock and joined through their
// collectives, for the chain of last arrivals (analysis/path/joined.h).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "analysis/host/model.h"
#include "analysis/path/joined.h"
#include "engine/session.h"

namespace lamina::dist {

class PathRanks {
 public:
  // Opens a trace of each rank; all of them stay in memory. Errors: a file that
  // cannot be used or holds several ranks, a rank twice, ranks that share no
  // collective and so neither clock nor path. `layers`: find those of each
  // rank, for path_segments.
  static Result<PathRanks> Open(const std::vector<std::string>& files,
                                const engine::OpenOptions& open,
                                const analysis::host::Options& options,
                                bool layers);

  analysis::path::JoinedView View() const {
    return {*joined_, ranks_, first_ns_};
  }

 private:
  std::vector<std::unique_ptr<engine::Session>> sessions_;
  std::deque<analysis::host::HostModel> models_;
  std::deque<analysis::path::Graph> graphs_;
  std::deque<analysis::host::WorkLayers> layers_;
  std::vector<analysis::path::JoinedRank> ranks_;
  std::unique_ptr<analysis::path::Graph> joined_;
  int64_t first_ns_ = 0;
};

}  // namespace lamina::dist
