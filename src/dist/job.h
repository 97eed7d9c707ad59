// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a job together: from files to joined and measured collectives.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/host/model.h"
#include "analysis/path/joined.h"
#include "base/timer.h"
#include "dist/channel.h"
#include "dist/clocks.h"
#include "dist/measure.h"
#include "dist/rank_summary.h"
#include "dist/summarize.h"
#include "engine/session.h"

namespace lamina::dist {

struct JobOptions {
  LoadOptions load;
  bool raw_clocks = false;
  StageTimes* times = nullptr;
  // Makes the summaries of a file; LoadRanks if empty.
  std::function<std::vector<RankSummary>(const std::string& path,
                                         uint64_t file_number,
                                         const LoadOptions& options)>
      load_ranks;
  // Called after each file, from any thread.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Told on process 0 of each rank that was read, without its calls.
  std::function<void(const RankSummary& rank)> read;
};

struct Job {
  // In the order of the files, without calls; some with an error.
  std::vector<RankSummary> ranks;
  Clocks clocks;
  Measured measured;  // groups by key
  // For a page, by number and part of the file; empty without
  // LoadOptions::others.
  std::map<std::pair<uint64_t, uint64_t>, RankEvents> events;
};

// Reads the files, shared out over the processes of the channel; `files` are
// the same on all. The result is whole on process 0 and empty elsewhere, and
// does not depend on the number of processes or threads.
std::optional<Job> RunJob(Channel& channel,
                          const std::vector<std::string>& files,
                          const JobOptions& options);

// Several ranks opened together, on one clock and joined through their
// collectives, for the chain of last arrivals (analysis/path/joined.h).

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
