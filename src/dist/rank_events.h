// SPDX-License-Identifier: Apache-2.0
//
// Events of all ranks for a page: of each its collectives and its longest
// other device events, kept while its trace is open. A page of one process
// only: traces that other processes read leave nothing behind but summaries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dist/job.h"
#include "dist/summarize.h"
#include "lamina/result.h"

namespace lamina::dist {

struct PageOptions {
  std::string output = "-";
  int threads = 1;
  uint64_t max_bytes = uint64_t{25} << 20;
};

class RankEvents {
 public:
  // Fewer other events of each where `max_bytes` or many files ask for it.
  // Families are those of the catalog that all traces are read with.
  RankEvents(std::shared_ptr<const rules::Catalog> catalog, size_t files,
             uint64_t max_bytes);

  // Keeps the events of one rank of an open trace; from any thread.
  void Keep(const analysis::Context& context, const Lanes& lanes,
            uint64_t file_number, uint64_t part);

  // The page of the job that these ranks are of.
  Status Write(const Job& job, Document document,
               const PageOptions& options) const;

 private:
  class Columns;

  struct Event {
    int64_t start_ns = 0;  // of the rank's clock
    int64_t dur_ns = 0;
    uint32_t kernel = 0;  // text
    uint32_t op = 0;      // text
    uint32_t family = 0;
    uint32_t uid = 0;
    uint32_t call = kNoIndex;  // of RankSummary::calls
  };
  struct Lane {
    std::string process;
    int64_t device = kNoInt;
    int64_t stream = kNoInt;
    std::vector<Event> events;  // by start
  };
  struct Rank {
    std::vector<std::string> texts;
    std::vector<Lane> lanes;
    int64_t end_of_uids = 0;
    uint64_t others = 0;  // device events that are no collective
    uint64_t kept = 0;    // of them
  };

  std::shared_ptr<const rules::Catalog> catalog_;
  uint64_t most_others_;
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, Rank> ranks_;  // by file and part
};

}  // namespace lamina::dist
