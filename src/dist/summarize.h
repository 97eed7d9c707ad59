// SPDX-License-Identifier: Apache-2.0
//
// A trace file to the summary of its rank: its collectives, and what the rank
// did in the time before each of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/context.h"
#include "base/interval_set.h"
#include "dist/rank_summary.h"
#include "rules/catalog.h"

namespace lamina::dist {

// What a rank did in the time before each of its collectives.

using NamedTimes = std::vector<std::pair<std::string_view, int64_t>>;

struct Gap {
  uint32_t previous = kNoIndex;  // the call that ended last before
  int64_t start_ns = 0;          // its end, or the start of the recording
  int64_t idle_ns = 0;
  NamedTimes device;  // by op, longest first
  // Of the launching thread while the device was idle, since the launch before.
  NamedTimes host;
};

class GapFinder {
 public:
  // `lanes`: rows of Trace::streams that are this rank's. `calls` by start;
  // context and calls must outlive the finder.
  GapFinder(const analysis::Context& context, const std::vector<bool>& lanes,
            const std::vector<analysis::Collective>& calls);

  Gap Before(uint32_t call) const;

 private:
  NamedTimes HostTimes(uint32_t call, const std::vector<Interval>& idle) const;

  const analysis::Context& context_;
  const std::vector<analysis::Collective>& calls_;
  std::vector<uint32_t> previous_;
  std::vector<tree::NodeId> launch_before_;  // of another call, same thread
  std::vector<trace::SliceId> work_;  // device work without communication
  std::vector<int64_t> latest_end_;   // of work_ up to here
};

// One trace to the summary of its rank.

// The work of one device of one process: rows of Trace::streams.
using Lanes = std::vector<bool>;

// A trace may hold several ranks (one process with many devices, or all
// processes of a node): the lanes of each that communicates, by process and
// device. One with all lanes if at most one does.
std::vector<Lanes> FindRanks(const analysis::Context& context);

// The base of the times of a trace, 0 where it has none or it is unusable.
int64_t BaseOf(const trace::Trace& trace);

// The step of a device slice in RankSummary::steps, whose last entry is what
// lies outside of all steps.
uint32_t StepIndex(const analysis::Context& context, trace::SliceId slice);

// The collectives of a rank by start, as RankSummary::calls.
std::vector<analysis::Collective> CollectivesOf(
    const analysis::Context& context, const Lanes& lanes);

// Near-linear in the number of slices. Sets everything but the file and its
// number. `rank` decides which end of a transfer this is.
RankSummary Summarize(const analysis::Context& context, const Lanes& lanes,
                      int64_t rank);

// The rank that a file name speaks of: the number after "rank" ("rank-12",
// "Rank_3"), else the only number in the name when it is all of it or stands
// behind a word that ranks go by ("trace7", "worker-2"). Nothing for any other
// name.
std::optional<int64_t> RankOfName(const std::string& path);

}  // namespace lamina::dist

namespace lamina::engine {

// A trace file to the summary of its rank.

class Origins;
struct OpenOptions;
class Session;

}  // namespace lamina::engine

namespace lamina::dist {

struct LoadOptions {
  int threads = 1;
  std::string rules_dir;
  std::shared_ptr<const rules::Catalog> catalog;
  // For a page: how many device events of a rank that are no collective.
  std::optional<uint64_t> others;
  engine::Origins* origins = nullptr;
  // Opens a trace, for who wants to keep it open; called from any thread. The
  // session is let go on the same thread. `open` is how it would be opened.
  std::function<Result<std::shared_ptr<engine::Session>>(
      const std::string& path, uint64_t file_number,
      const engine::OpenOptions& open)>
      open;
  // Sees every rank of every trace before the trace is closed; called from any
  // thread.
  std::function<void(const analysis::Context& context, const Lanes& lanes,
                     uint64_t file_number, uint64_t part)>
      inspect;
};

// The ranks in a file, mostly one. A file that cannot be used gives one with
// `error` set. The rank is the one that the trace says, else that of the file
// name; else it is only a position, and so it is of the ranks of a file with
// several.
std::vector<RankSummary> LoadRanks(const std::string& path,
                                   uint64_t file_number,
                                   const LoadOptions& options);

}  // namespace lamina::dist
